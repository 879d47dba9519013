"""The short way into a pod's life leads to where the state machine leads, to the last byte."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.hollow import pod_life
from holokube.hollow.pod_opening import Openings
from holokube.hollow.pod_state import PatchStatus, PodRun, Rejection, Step
from holokube.hollow.profile import FAST, PodProfile
from tests.hollow.worlds import DRAW, FakeHost

NOW_S = 1_767_600_000.25


class NoOpenings(Openings):
    """Sends every pod through the machine."""

    def take(self, pod: Any, run: PodRun, now_s: float) -> Step | None:
        return None


def sometimes(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.just({}), values)


def field(name: str, *values: Any) -> st.SearchStrategy[dict[str, Any]]:
    return sometimes(st.sampled_from([{name: value} for value in values]))


def merged(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda found: {key: value for part in found for key, value in part.items()})


def rarely(strategy: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.integers(0, 24).flatmap(lambda draw: strategy if draw == 24 else st.just({}))


CONTAINERS = st.lists(
    merged(
        st.sampled_from([{"image": ""}, {"image": "registry.example/web:1"}, {"image": "a@sha256:12"}]),
        field("imagePullPolicy", "Always", "Never", "IfNotPresent"),
        field("resources", {}, {"requests": {"cpu": "1"}}, {"limits": {"memory": "1Gi"}}),
        field("volumeMounts", [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w", "readOnly": True}]),
        field("securityContext", {"runAsUser": 7}, {"runAsUser": 7, "runAsGroup": 8}),
        rarely(field("readinessProbe", {}, {"initialDelaySeconds": 3})),
        rarely(field("startupProbe", {"periodSeconds": 1})),
        rarely(field("restartPolicyRules", [{"action": "RestartAllContainers"}])),
    ),
    min_size=1,
    max_size=3,
).map(lambda listed: [{"name": f"c{number}", **each} for number, each in enumerate(listed)])
SPECS = merged(
    CONTAINERS.map(lambda listed: {"containers": listed}),
    field("restartPolicy", "Always", "Never", "OnFailure"),
    rarely(field("initContainers", [], [{"name": "i", "image": "i"}])),
    rarely(field("ephemeralContainers", [{"name": "e", "image": "e"}])),
    rarely(field("readinessGates", [{"conditionType": "x"}])),
    rarely(field("activeDeadlineSeconds", 5)),
    rarely(field("hostNetwork", True)),
)
ANNOTATIONS = merged(
    rarely(field("holokube.dev/run-time", "10s", "0s", "nonsense")),
    rarely(field("holokube.dev/exit-code", "3")),
    rarely(field("holokube.dev/termination-message", "done")),
    rarely(field("holokube.dev/start-delay", "0s", "2s")),
    rarely(field("holokube.dev/ready-delay", "0s", "2s")),
    rarely(field("holokube.dev/failure", "ErrImagePull", "OOMKilled")),
    rarely(field("pod-create.stage.kwok.x-k8s.io/delay", "1s")),
    rarely(field("pod-complete.stage.kwok.x-k8s.io/delay", "1s")),
)
METADATA = merged(
    st.just({"name": "p", "namespace": "default", "uid": "u1"}),
    field("generation", 1, 2),
    ANNOTATIONS.map(lambda found: {"annotations": found}),
    field("ownerReferences", [{"kind": "ReplicaSet"}], [{"kind": "Job"}]),
    rarely(field("deletionTimestamp", "2026-01-01T00:00:00Z")),
)
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
STATUSES = merged(
    st.just({"phase": "Pending", "conditions": [SCHEDULED]}),
    field("qosClass", "BestEffort"),
    rarely(field("phase", "Unknown", "Running", "Failed")),
    rarely(field("conditions", [], [{**SCHEDULED, "status": "False"}], [SCHEDULED, {"type": "x", "status": "True"}])),
    rarely(field("observedGeneration", 1)),
    rarely(field("hostIP", "100.64.0.1")),
    rarely(field("reason", "Odd")),
)
PODS = st.builds(lambda m, s, t: {"metadata": m, "spec": s, "status": t}, METADATA, SPECS, STATUSES)
PROFILES = merged(
    rarely(field("sandbox", 1.0, "0s")),
    rarely(field("pull", 1.0)),
    rarely(field("start", 1.0, "1s")),
    rarely(field("events", True)),
    rarely(field("crash_rate", 1.0, 0.5)),
    rarely(field("pull_failure_rate", 1.0)),
    rarely(field("pull_always", True)),
    field("admission", False),
    field("ready", 1.0),
).map(lambda changes: msgspec.structs.replace(FAST, **changes))
HOSTS = st.builds(
    lambda ips, refuses, free, slow: (ips, Rejection("No", "no") if refuses else None, free, slow),
    st.sampled_from([("100.64.0.1",), ("100.64.0.1", "fd00::1"), ()]),
    st.integers(0, 9).map(lambda draw: draw == 9),
    st.sampled_from([("10.1.0.1",), ()]),
    st.sampled_from([1.0, 10.0]),
)


def first_step(pod: dict[str, Any], profile: PodProfile, host: Any) -> tuple[Step, PodRun, str]:
    ips, rejection, free, slow = host
    made = FakeHost(ips, slow, rejection, list(free))
    run = pod_life.begin(pod, profile, made, NOW_S, DRAW)
    step = pod_life.step(pod, run, NOW_S, DRAW)
    # By which way it came there is the only thing in which they differ.
    run.opened = None
    patches = [command.patch for command in step.commands if isinstance(command, PatchStatus)]
    return step, run, json.dumps(patches)


@given(PODS, PROFILES, HOSTS)
def test_the_short_way_and_the_machine_agree(pod: dict[str, Any], profile: PodProfile, host: Any) -> None:
    quick = first_step(pod, profile, host)
    # Once more, for what is remembered of the template by now.
    again = first_step(pod, profile, host)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_life, "_openings", NoOpenings())
        slow = first_step(pod, profile, host)
    assert quick == slow
    assert again == slow


def test_a_plain_pod_takes_the_short_way() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u1", "generation": 1},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
        "status": {"phase": "Pending", "conditions": [SCHEDULED]},
    }
    run = pod_life.begin(pod, FAST, FakeHost(), NOW_S, DRAW)
    step = Openings().take(pod, run, NOW_S)
    assert step is not None
    assert run.initialized


def test_templates_are_told_apart_although_their_lists_come_and_go() -> None:
    openings = Openings()
    for number in range(50):
        pod = {
            "metadata": {"name": "p", "namespace": "default", "uid": "u1"},
            "spec": {"containers": [{"name": f"c{number}", "image": "c"}]},
            "status": {"phase": "Pending", "conditions": [SCHEDULED]},
        }
        run = pod_life.begin(pod, FAST, FakeHost(), NOW_S, DRAW)
        assert openings.take(pod, run, NOW_S) is not None
        assert run.containers is not None
        assert [c.name for c in run.containers] == [f"c{number}"]
