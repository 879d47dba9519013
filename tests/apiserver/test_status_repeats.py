from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver import status_repeats
from holokube.apiserver.admission.base import Attributes, Plugin
from holokube.apiserver.bodies import Body
from holokube.apiserver.kinds.pods import Pod
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.status_writes import StatusWrites
from holokube.kube.errors import ApiError
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import pod

STRATEGIC = "application/strategic-merge-patch+json"
NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z"
JsonObject = dict[str, Any]


def running(address: str, at: str = NOON, number: int = 1) -> JsonObject:
    """What a kubelet says of a pod that runs."""
    return {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": "10.9.0.1",
        "hostIPs": [{"ip": "10.9.0.1"}], "startTime": at,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
        "containerStatuses": [{
            "name": "c", "image": "registry.example/app:1", "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": at}}, "containerID": f"containerd://{number:064x}",
        }],
    }  # fmt: skip


class Counting:
    """How many patches went the short way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.short = 0
        usual = StatusWrites.make

        async def make(itself: StatusWrites, *args: Any) -> Any:
            result = await usual(itself, *args)
            self.short += result is not None
            return result

        monkeypatch.setattr(StatusWrites, "make", make)


def owned_by(manager: str, made: JsonObject) -> JsonObject:
    found: JsonObject = next(e["fieldsV1"] for e in made["metadata"]["managedFields"] if e["manager"] == manager)
    return found


async def patched(world: World, name: str, status: Any, **more: Any) -> JsonObject:
    return await world.patch("pods", name, {"status": status}, kind=STRATEGIC, subresource="status", **more)


def test_the_same_step_of_another_pod_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)

    async def body(world: World) -> None:
        for number in range(3):
            await world.create("pods", pod(f"p{number}"))
            status = running(f"10.0.0.{number}", NOON if number < 2 else LATER, number)
            made = await patched(world, f"p{number}", status, field_manager="kubelet")
            assert made["status"]["podIP"] == f"10.0.0.{number}"
            assert made["status"]["startTime"] == status["startTime"]
            owned = owned_by("kubelet", made)["f:status"]
            assert list(owned["f:podIPs"]) == [".", f'k:{{"ip":"10.0.0.{number}"}}']
        first, second = (owned_by("kubelet", world.get("pods", name))["f:status"] for name in ("p1", "p2"))
        assert first["f:conditions"] is second["f:conditions"], "what is never changed need not be kept twice"

    in_world(body)
    assert counting.short == 2


def test_values_that_are_equal_elsewhere_make_another_change(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)

    async def body(world: World) -> None:
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": NOON}]
        for name in ("p0", "p1"):
            await world.create("pods", pod(name))
            await patched(world, name, {"conditions": conditions})
        changed = [{"type": "Ready", "status": "False", "lastTransitionTime": LATER}]
        first = await patched(world, "p0", {"conditions": changed}, field_manager="b")
        kept = [{"type": "Ready", "status": "False", "lastTransitionTime": NOON}]
        second = await patched(world, "p1", {"conditions": kept}, field_manager="b")
        owned = [owned_by("b", made) for made in (first, second)]
        assert "f:lastTransitionTime" in str(owned[0]) and "f:lastTransitionTime" not in str(owned[1])

    in_world(body)
    assert counting.short == 1


@pytest.mark.parametrize("status", [
    {"startTime": "2026-02-30T12:00:00Z"}, {"startTime": "soon"},
    {"podIP": "10.0.0.256", "podIPs": [{"ip": "10.0.0.256"}]},
    {"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]},
])  # fmt: skip
def test_a_value_that_is_wrong_is_refused_after_many_that_were_right(status: JsonObject) -> None:
    async def body(world: World) -> None:
        for number in range(3):
            await world.create("pods", pod(f"p{number}"))
        right = {key: NOON if key == "startTime" else "10.0.0.1" for key in status if not key.endswith("s")}
        lists = {key: [{"ip": "10.0.0.1"}] for key in status if key.endswith("s")}
        for number in range(2):
            await patched(world, f"p{number}", {**right, **lists})
        with pytest.raises(ApiError):
            await patched(world, "p2", status)

    in_world(body)


def test_whoever_may_change_the_object_sees_every_patch() -> None:
    class Marking(Plugin):
        resources = frozenset({("", "pods")})
        operations = frozenset({"UPDATE"})
        subresources = frozenset({"status"})

        def mutate(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            attributes.obj["status"]["reason"] = attributes.name

    async def body(world: World) -> None:
        for number in range(2):
            await world.create("pods", pod(f"p{number}"))
            await patched(world, f"p{number}", {"phase": "Running"})
        world.registry.admission.add(Marking())
        for number in range(2):
            assert (await patched(world, f"p{number}", {"phase": "Failed"}))["status"]["reason"] == f"p{number}"

    in_world(body)


def test_the_number_of_changes_that_are_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_repeats, "KEPT", 3)

    async def body(world: World) -> None:
        await world.create("pods", pod("p"))
        for number in range(10):
            made = await patched(world, "p", {"reason": f"r{number}"})
            assert made["status"]["reason"] == f"r{number}"

    in_world(body)


TIMES = st.sampled_from([
    NOON, LATER, "2026-01-31T23:59:59Z", "2026-01-01T12:00:00.5Z", "2024-02-29T00:00:00Z", "x", None, "",
])  # fmt: skip
IPS = st.sampled_from(["10.0.0.1", "10.0.0.2", "9.255.0.1", "fd00::1", "010.0.0.1", "", "10.0.0.300", None])
IDS = st.sampled_from(["containerd://aa", "containerd://bb", "docker://AA", "", "x\"y"])
TEXTS = st.sampled_from(["", "a", "b", "0/3 nodes", 'say "no"', "back\\slash", NOON, "10.0.0.1", "umlaut \u00e4", None])
STATES = st.one_of(
    st.builds(lambda at: {"running": {"startedAt": at}}, TIMES),
    st.builds(lambda at, to, code: {"terminated": {"exitCode": code, "startedAt": at, "finishedAt": to}}, TIMES, TIMES,
              st.integers(0, 1)),
    st.builds(lambda text: {"waiting": {"reason": "r", "message": text}}, TEXTS),
)  # fmt: skip
CONTAINERS = st.builds(
    lambda identity, state, ready: [{
        "name": "c", "image": "i", "imageID": "", "ready": ready, "restartCount": 0, "containerID": identity,
        "state": state,
    }],
    IDS, STATES, st.booleans(),
)  # fmt: skip
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["Ready", "PodScheduled", "example.com/x", "10.0.0.1", "bad type"])},
        optional={
            "status": st.sampled_from(["True", "False"]), "message": TEXTS, "lastTransitionTime": TIMES,
            "observedGeneration": st.integers(0, 2), "$patch": st.sampled_from(["delete", "merge"]),
        },
    ),
    max_size=3,
)  # fmt: skip
ADDRESSES = st.lists(st.builds(lambda ip: {"ip": ip}, IPS), max_size=2)
STATUSES = st.fixed_dictionaries({}, optional={
    "phase": st.sampled_from(["Pending", "Running", "Failed"]), "podIP": IPS, "podIPs": ADDRESSES, "hostIP": IPS,
    "hostIPs": ADDRESSES, "startTime": TIMES, "message": TEXTS, "conditions": CONDITIONS,
    "containerStatuses": CONTAINERS, "nominatedNodeName": st.sampled_from(["n", "bad name", None]),
    "qosClass": st.sampled_from(["BestEffort", "Burstable"]),
    "unknown": TEXTS, "observedGeneration": st.sampled_from([1, 2, -1]),
    "allocatedResources": st.sampled_from([{"cpu": "1000m"}, {"cpu": "1"}, {"cpu": "x"}]),
})  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2), STATUSES, st.sampled_from([STRATEGIC, STRATEGIC, MERGE]), st.sampled_from(["a", "b"]),
        st.sampled_from(["Warn", "Ignore", "Strict"]),
    ),
    max_size=12,
)  # fmt: skip


def outcomes(steps: list[Any], *, repeats: bool, annotated: bool) -> list[Any]:
    async def body(world: World) -> list[Any]:
        for number in range(3):
            made = pod(f"p{number}", node="n" if number == 1 else "")
            if annotated:
                made["metadata"]["annotations"] = {"example.com/a": "b"}
            await world.create("pods", made)
        found: list[Any] = []
        # Each step for all pods: what is learnt from one is used for the others.
        for number, status, kind, manager, validation in steps:
            for name in (f"p{(number + offset) % 3}" for offset in range(3)):
                meta = world.get("pods", name)["metadata"]
                value = {"metadata": {"uid": meta["uid"]}, "status": status}
                served = world.served("pods")
                try:
                    written = await world.registry.patch(
                        served, "default", name, kind, Body(value),
                        WriteOptions(field_manager=manager, field_validation=validation), subresource="status",
                    )  # fmt: skip
                    found.append((written.stored.raw, written.warnings))
                except ApiError as problem:
                    found.append(problem.to_status())
            await world.clock.sleep(1)
        return found

    usual, Pod.repeats_status = Pod.repeats_status, repeats
    try:
        return in_world(body)
    finally:
        Pod.repeats_status = usual


@settings(max_examples=120, deadline=None)
@given(STEPS, st.booleans())
def test_the_short_way_ends_where_the_long_way_ends(steps: list[Any], annotated: bool) -> None:
    assert outcomes(steps, repeats=True, annotated=annotated) == outcomes(steps, repeats=False, annotated=annotated)
