"""Pods and nodes that live by Stages."""

from __future__ import annotations

from typing import Any

from holokube.hollow import pod_life
from holokube.hollow.draws import KeyedDraws
from holokube.hollow.pod_state import NEVER_S, DeletePod, EmitEvent, PatchStatus, PodLife, Step
from holokube.hollow.profile import FAST
from holokube.hollow.stages.lives import StageBook, StagedNodeLife, StagedPodLife, StagedPodRun
from holokube.hollow.stages.playing import StageRun
from tests.hollow.stages.samples import (
    COMPLETE,
    DELETE,
    HEARTBEAT,
    INITIALIZE,
    START,
    pending_pod,
    stage,
    stages,
)
from tests.hollow.worlds import FakeHost

DRAW = KeyedDraws(3)
FOREVER = stage("again", "selector: {matchLabels: {a: b}}\nnext: {statusTemplate: 'phase: Running'}")


class World:
    """One pod; patches are taken over, the version moves with each."""

    def __init__(self, pod: dict[str, Any], *documents: str, host: FakeHost | None = None) -> None:
        self.pod = pod
        self.book = StageBook(stages(*documents))
        self.life = StagedPodLife(self.book, start_s=0.0)
        self.now_s = 1000.0
        self.host = host or FakeHost()
        self.run: StagedPodRun = self.life.begin(pod, FAST, self.host, self.now_s, DRAW)

    def step(self, after_s: float = 0.0) -> Step:
        self.now_s += after_s
        result = self.life.step(self.pod, self.run, self.now_s, DRAW)
        for command in result.commands:
            if isinstance(command, PatchStatus) and isinstance(command.patch, dict):
                self.change(status={**self.pod["status"], **command.patch.get("status", {})})
        return result

    def change(self, **fields: Any) -> None:
        meta = self.pod["metadata"]
        meta = {**meta, **fields.pop("metadata", {}), "resourceVersion": str(int(meta["resourceVersion"]) + 1)}
        self.pod = {**self.pod, **fields, "metadata": meta}


def test_both_ways_of_life_fit_the_same_place() -> None:
    lives: list[PodLife] = [pod_life, StagedPodLife(StageBook(), start_s=0.0)]
    assert [life.looks_after_writes for life in lives] == [False, True]


def test_a_pod_goes_through_its_stages() -> None:
    world = World(pending_pod(ownerReferences=[{"kind": "Job"}]), START, COMPLETE, DELETE)
    waiting = world.step()
    assert waiting.commands == () and 1001.0 <= waiting.next_due_s < 1005.0
    event, patch = world.step(5).commands
    assert event == EmitEvent("Normal", "Created", "Created container")
    assert isinstance(patch, PatchStatus) and (patch.type, patch.subresource) == ("strategic", "status")
    assert patch.patch == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:16:45Z"}],
            "containerStatuses": [
                {"image": "i", "name": "c", "ready": True, "restartCount": 0,
                 "state": {"running": {"startedAt": "1970-01-01T00:16:45Z"}}}],
            "hostIP": "100.64.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}], "phase": "Running",
        },
    }  # fmt: skip
    world.step()
    assert world.pod["status"]["phase"] == "Succeeded"
    assert world.step() == Step((), NEVER_S)
    world.change(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert world.step().commands == (DeletePod("u1"),)


def test_one_version_of_an_object_is_played_once() -> None:
    world = World(pending_pod(deletionTimestamp="2026-01-01T00:00:00Z"), DELETE)
    assert world.step().commands == (DeletePod("u1"),)
    assert world.step(100) == Step((), NEVER_S)


def test_what_could_not_be_written_is_played_again() -> None:
    world = World(pending_pod(deletionTimestamp="2026-01-01T00:00:00Z"), DELETE)
    world.step()
    world.life.failed(world.run)
    assert world.step(5).commands == (DeletePod("u1"),)


def test_a_failed_write_does_not_wait_out_the_delay_again() -> None:
    world = World(pending_pod(), START)
    world.step()
    pending = world.pod
    assert len(world.step(5).commands) == 2
    world.pod = pending
    world.life.failed(world.run)
    assert len(world.step().commands) == 2


def test_a_change_starts_the_delay_anew() -> None:
    world = World(pending_pod(), START)
    first = world.step().next_due_s
    world.change()
    assert world.step(0.9).next_due_s >= first - 4 + 0.9 and world.step().commands == ()


def test_a_stage_that_never_ends_is_held_to_one_a_second() -> None:
    world = World(pending_pod(labels={"a": "b"}), FOREVER)
    assert len(world.step().commands) == 1
    assert world.step() == Step((), 1001.0)
    assert len(world.step(1).commands) == 1


def test_the_address_is_taken_once_and_survives_a_restart() -> None:
    world = World(pending_pod(), START, host=FakeHost(free=["10.1.0.7", "10.1.0.8"]))
    world.step(), world.step(5)
    assert world.run.addresses == ("10.1.0.7",) and world.host.free == ["10.1.0.8"]
    again = world.life.begin(world.pod, FAST, world.host, world.now_s, DRAW)
    assert again.addresses == ("10.1.0.7",) and again.containers is not None


def test_a_pod_without_an_address_waits_for_one() -> None:
    host = FakeHost(free=[])
    world = World(pending_pod(), START, host=host)
    world.step()
    result = world.step(5)
    (event,) = result.commands
    assert isinstance(event, EmitEvent) and event.reason == "StageFailed" and "no IP addresses" in event.message
    assert result.next_due_s == world.now_s + 10
    host.free.append("10.1.0.9")
    world.step(10)
    assert world.pod["status"]["podIP"] == "10.1.0.9"


def test_host_network_pods_show_the_nodes_address() -> None:
    pod = pending_pod()
    world = World({**pod, "spec": {**pod["spec"], "hostNetwork": True}}, START)
    world.step(), world.step(5)
    assert world.pod["status"]["podIP"] == "100.64.0.1" and world.host.free == ["10.1.0.1"]


def test_a_template_that_fails_is_reported_once_for_each_state() -> None:
    broken = stage("b", "selector: {matchLabels: {a: b}}\nnext: {statusTemplate: '{{ index .none 1 }}'}")
    world = World(pending_pod(labels={"a": "b"}), broken)
    (event,) = world.step().commands
    assert isinstance(event, EmitEvent)
    assert event.message == "stage b of sample.yaml: line 1: index: there is nothing to index: the value is nil"
    assert world.step(60) == Step((), NEVER_S)


STEPS = stage(
    "steps",
    """
selector: {matchLabels: {a: b}}
next:
  finalizers: {add: [{value: example.com/f}]}
  patches:
  - {root: metadata, template: 'annotations: {x: {{ .metadata.name | Quote }}}', type: merge}
  - {root: status, subresource: status, type: json, template: '[{op: add, path: /reason, value: r}]'}
  statusTemplate: 'phase: Running'
  statusPatchAs: {username: someone}
steps:
- {event: {type: Warning, reason: Gone, message: m}, delete: true}
- {patch: {template: 'metadata: {}'}}
- {event: {reason: After}}
""",
)


def test_all_kinds_of_steps_come_in_their_order() -> None:
    test = {"op": "test", "path": "/metadata/uid", "value": "u1"}
    finalizers = {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]}
    assert World(pending_pod(labels={"a": "b"}), STEPS).step().commands == (
        PatchStatus([test, finalizers], "json", ""),
        PatchStatus({"metadata": {"annotations": {"x": "p"}, "uid": "u1"}}, "merge", ""),
        PatchStatus([test, {"op": "add", "path": "/status/reason", "value": "r"}], "json", "status"),
        PatchStatus({"metadata": {"uid": "u1"}, "status": {"phase": "Running"}}, username="someone"),
        EmitEvent("Warning", "Gone", "m"),
        DeletePod("u1"),
        EmitEvent("Normal", "After", ""),
    )


def test_nodes_are_initialized_and_then_beat() -> None:
    life, run = StagedNodeLife(StageBook(stages(INITIALIZE, HEARTBEAT)), start_s=0.0), StageRun()
    node: dict[str, Any] = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}}
    (patch,) = life.step(node, run, 1000.0, DRAW, addresses=["192.0.2.1"], port=10250).commands
    assert isinstance(patch, PatchStatus) and isinstance(patch.patch, dict)
    status = patch.patch["status"]
    assert [c["type"] for c in status["conditions"]] == [
        "Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"]  # fmt: skip
    assert status["addresses"] == [
        {"address": "192.0.2.1", "type": "InternalIP"}, {"address": "n", "type": "Hostname"}]  # fmt: skip
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert status["capacity"] == {"cpu": "1k"} and status["nodeInfo"]["kubeletVersion"].startswith("sample-")
    node = {"metadata": {**node["metadata"], "resourceVersion": "2"}, "status": status}
    waiting = life.step(node, run, 1000.0, DRAW, addresses=["192.0.2.1"], port=10250)
    assert waiting.commands == () and waiting.next_due_s == 1020.0
    (beat,) = life.step(node, run, 1020.0, DRAW, addresses=["192.0.2.1"], port=10250).commands
    assert isinstance(beat, PatchStatus) and isinstance(beat.patch, dict)
    assert beat.patch["status"]["conditions"][0]["lastHeartbeatTime"] == "1970-01-01T00:17:00Z"


def as_object(body: dict[str, Any], name: str = "cr") -> dict[str, Any]:
    spec = {"resourceRef": {"kind": "Pod"}, **body}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def test_stages_of_the_cluster_come_and_go() -> None:
    world = World(pending_pod(labels={"a": "b"}))
    assert world.step() == Step((), NEVER_S)
    body = {"selector": {"matchLabels": {"a": "b"}}, "next": {"delete": True}}
    assert world.book.see(as_object(body)) == ""
    assert world.step().commands == (DeletePod("u1"),)
    problem = world.book.see(as_object({**body, "next": {"sing": True}}))
    assert "cluster: stage cr: " in problem and "unknown field `sing`" in problem
    assert world.book.of_kind("Pod") == []
    world.book.see(as_object(body))
    world.book.gone("cr")
    assert world.step(10) == Step((), NEVER_S)
