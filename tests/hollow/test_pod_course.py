"""What is known beforehand of a plain pod's life is what the state machine makes of it, to the last byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow import pod_life
from holokube.hollow.pod_state import DeletePod, Rejection, Stage, Step
from holokube.hollow.profile import FAST, PodProfile
from tests.hollow.test_pod_opening import SCHEDULED, field, merged, rarely
from tests.hollow.worlds import DRAW, FakeHost, PodWorld

CONTAINERS = st.lists(
    merged(
        st.sampled_from([{"image": ""}, {"image": "registry.example/web:1"}]),
        field("resources", {"requests": {"cpu": "1"}}),
        rarely(field("lifecycle", {"preStop": {"sleep": {"seconds": 3}}})),
        rarely(field("restartPolicy", "Always", "Never", "OnFailure")),
    ),
    min_size=1,
    max_size=2,
).map(lambda listed: [{"name": f"c{number}", **each} for number, each in enumerate(listed)])
PODS = st.builds(
    lambda containers, spec, metadata, annotations: {
        "metadata": {"name": "p", "namespace": "default", "annotations": annotations, **metadata},
        "spec": {"containers": containers, **spec},
        "status": {"phase": "Pending", "qosClass": "BestEffort", "conditions": [SCHEDULED]},
    },
    CONTAINERS,
    field("restartPolicy", "Always", "Never", "OnFailure"),
    field("generation", 0, 2),
    merged(
        field("holokube.dev/run-time", "10s", "25s"),
        field("holokube.dev/exit-code", "3"),
        field("holokube.dev/termination-message", "done"),
        rarely(field("holokube.dev/stop-time", "0s", "2s")),
    ),
)
PROFILES = merged(
    rarely(field("final_status", True)),
    rarely(field("stop", 1.0, "0s")),
    rarely(field("stop_exit_code", 4)),
).map(lambda changes: msgspec.structs.replace(FAST, **changes))

Change = Callable[[PodWorld], None]
"""Something that happens to a pod."""


def _status(**fields: Any) -> Change:
    def change(world: PodWorld) -> None:
        world.pod = {**world.pod, "status": {**world.pod["status"], **fields}}

    return change


def _spec(**fields: Any) -> Change:
    def change(world: PodWorld) -> None:
        world.pod = {**world.pod, "spec": {**world.pod["spec"], **fields}}

    return change


def _metadata(**fields: Any) -> Change:
    def change(world: PodWorld) -> None:
        world.pod = {**world.pod, "metadata": {**world.pod["metadata"], **fields}}

    return change


def _condition(kind: str, **fields: Any) -> Change:
    """A condition of that type as somebody else wrote it; without any field it is taken away."""

    def change(world: PodWorld) -> None:
        others = [one for one in world.pod["status"]["conditions"] if one["type"] != kind]
        if fields:
            others.append({"type": kind, "lastTransitionTime": "2026-01-01T00:00:00Z", **fields})
        _status(conditions=others)(world)

    return change


def _twice(kind: str) -> Change:
    """The same condition two times instead of one of the others."""

    def change(world: PodWorld) -> None:
        listed = world.pod["status"]["conditions"]
        again = [one for one in listed if one["type"] == kind]
        _status(conditions=[*listed[1:], *again])(world)

    return change


def _entry(**fields: Any) -> Change:
    def change(world: PodWorld) -> None:
        entries = world.pod["status"].get("containerStatuses") or [{}]
        _status(containerStatuses=[*entries[:-1], {**entries[-1], **fields}])(world)

    return change


def _resize(world: PodWorld) -> None:
    containers = [{**one, "resources": {"requests": {"cpu": "2"}}} for one in world.pod["spec"]["containers"]]
    _spec(containers=containers)(world)
    _metadata(generation=(world.pod["metadata"].get("generation") or 0) + 1)(world)


def _reboot(world: PodWorld) -> None:
    pod_life.reboot(world.pod, world.run, world.now_s, DRAW)


def _preempt(world: PodWorld) -> None:
    pod_life.preempt(world.pod, world.run, world.now_s, DRAW)


def _delete(world: PodWorld) -> None:
    world.delete()


def _fail(world: PodWorld) -> None:
    pod_life.failed(world.run)


def _wait(seconds: float) -> Change:
    def change(world: PodWorld) -> None:
        world.now_s += seconds

    return change


def _other_address(world: PodWorld) -> None:
    world.host.host_ips = ("100.64.0.7",)


USUAL: list[Change] = [
    _wait(0.0), _wait(5.0), _wait(20.0), _delete, _fail, _metadata(finalizers=["x"]),
    _condition("DisruptionTarget", status="True", reason="r", message="m"),
]  # fmt: skip
UNUSUAL: list[Change] = [
    _wait(-2000.0), _resize, _reboot, _preempt, _other_address, _twice("Ready"),
    _status(phase="Pending"), _status(phase="Failed"), _status(reason="Odd"), _status(message="odd"),
    _status(startTime="2026-01-01T00:00:00Z"), _status(observedGeneration=9), _status(hostIP="1.1.1.1"),
    _status(podIP="1.1.1.1"), _status(hostIPs=[]), _status(podIPs=[]), _status(containerStatuses=[]),
    _metadata(generation=7), _spec(activeDeadlineSeconds=3), _spec(ephemeralContainers=[{"name": "e", "image": "e"}]),
    _entry(ready=False), _entry(restartCount=1), _entry(containerID="containerd://x"), _entry(state={}),
    _condition("Ready", status="False"), _condition("Ready", status="True", reason="r"),
    _condition("Ready", status="True", message="m"), _condition("Ready", status="True", observedGeneration=9),
    _condition("Initialized"), _condition("PodScheduled"), _condition("PodScheduled", status="False"),
    _condition("PodResizePending", status="True"),
]  # fmt: skip
CHANGES = st.lists(st.one_of(st.sampled_from(USUAL), st.sampled_from([*USUAL, *UNUSUAL])), max_size=6)


def course(pod: dict[str, Any], profile: PodProfile, changes: list[Change]) -> list[str]:
    """What came of each change: what was decided then, and what the status is after it."""
    host = FakeHost(rejection=None)
    world = PodWorld(pod, profile, host)
    told = []
    for change in (_wait(0.0), *changes):
        change(world)
        host.rejection = Rejection("No", "no") if world.now_s > 1010.0 else None
        patches = len(world.patches)
        world.step()
        new = world.patches[patches:]
        told.append(json.dumps([new, world.pod["status"], world.deleted, world.due_s, world.events]))
    return told


def _by_machine(*_given: Any) -> Step | None:
    return None


@given(PODS, PROFILES, CHANGES)
def test_the_short_way_and_the_machine_agree_on_the_whole_life(
    pod: dict[str, Any], profile: PodProfile, changes: list[Change]
) -> None:
    quick = course(pod, profile, changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_life, "plain_step", _by_machine)
        assert quick == course(pod, profile, changes)


@pytest.mark.parametrize("number", range(len(UNUSUAL)))
@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_every_change_leads_to_the_same_status_and_the_same_end(number: int, policy: str) -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "default", "annotations": {"holokube.dev/run-time": "10s"}},
        "spec": {"containers": [{"name": "c", "image": "c"}], "restartPolicy": policy},
        "status": {"phase": "Pending", "conditions": [SCHEDULED]},
    }
    for later in (_wait(20.0), _delete):
        changes = [UNUSUAL[number], later, _wait(1.0)]
        quick = course(pod, FAST, changes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pod_life, "plain_step", _by_machine)
            assert quick == course(pod, FAST, changes)


def _opened(**spec: Any) -> PodWorld:
    pod = {
        "metadata": {"name": "p", "namespace": "default", "annotations": {"holokube.dev/run-time": "10s"}},
        "spec": {"containers": [{"name": "c", "image": "c"}], **spec},
        "status": {"phase": "Pending", "conditions": [SCHEDULED]},
    }
    return PodWorld(pod).step()


def test_a_plain_pod_is_led_the_short_way_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: Any) -> None:
        raise AssertionError("the machine was asked")

    monkeypatch.setattr(pod_life, "ContainerLife", refuse)
    world = _opened(restartPolicy="Never")
    USUAL[-1](world)
    world.step()
    assert len(world.patches) == 1
    assert world.due_s == world.now_s + 10.0
    world.now_s += 10.0
    world.step()
    assert (world.phase, world.state(), world.run.stage) == ("Succeeded", "Completed", Stage.ENDED)


def test_a_plain_pod_that_is_deleted_goes_at_once_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: Any) -> None:
        raise AssertionError("the machine was asked")

    monkeypatch.setattr(pod_life, "ContainerLife", refuse)
    world = _opened().delete()
    step = pod_life.step(world.pod, world.run, world.now_s, DRAW)
    assert step == Step((DeletePod("u1"),))
    assert pod_life.step(world.pod, world.run, world.now_s, DRAW) == Step(())
    pod_life.failed(world.run)
    assert pod_life.step(world.pod, world.run, world.now_s, DRAW) == step


STOP = {"preStop": {"sleep": {"seconds": 3}}}
CASES: list[tuple[dict[str, Any], dict[str, str], dict[str, Any], str, Change]] = [
    ({"final_status": True}, {}, {}, "Always", _delete),
    ({"stop": 1.0}, {}, {}, "Always", _delete),
    ({}, {"holokube.dev/stop-time": "2s"}, {}, "Always", _delete),
    ({}, {}, {"lifecycle": STOP}, "Always", _delete),
    ({}, {}, {"restartPolicy": "Always"}, "Never", _wait(20.0)),
    ({}, {"holokube.dev/exit-code": "3"}, {}, "OnFailure", _wait(20.0)),
    ({}, {"holokube.dev/exit-code": "3"}, {}, "Never", _wait(20.0)),
    ({}, {"holokube.dev/termination-message": "done"}, {}, "OnFailure", _wait(20.0)),
    ({}, {}, {}, "Never", _spec(containers=[{"name": "c", "image": "other"}])),
    ({}, {}, {}, "Never", _condition("Ready", status="True", observedGeneration=1, reason="r")),
    ({}, {}, {}, "Never", _condition("Ready", status="True", observedGeneration=1, message="m")),
]


@pytest.mark.parametrize(("profile", "annotations", "container", "policy", "change"), CASES)
def test_what_is_special_is_left_to_the_machine(
    profile: dict[str, Any], annotations: dict[str, str], container: dict[str, Any], policy: str, change: Change
) -> None:
    annotations = {"holokube.dev/run-time": "10s", **annotations}
    pod = {
        "metadata": {"name": "p", "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "c", **container}], "restartPolicy": policy},
        "status": {"phase": "Pending", "conditions": [SCHEDULED]},
    }
    chosen, changes = msgspec.structs.replace(FAST, **profile), [change, _wait(1.0), _wait(20.0)]
    quick = course(pod, chosen, changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_life, "plain_step", _by_machine)
        assert quick == course(pod, chosen, changes)
