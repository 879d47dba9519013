"""In-place resize, as far as it shows in a pod."""

from __future__ import annotations

from typing import Any

import msgspec

from holokube.hollow.addresses import PodAddresses
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.pod_life import begin
from holokube.hollow.pod_state import Rejection
from holokube.hollow.profile import FAST, KUBELET
from tests.builders import pod
from tests.hollow.worlds import DRAW, FakeHost, PodWorld

TOLD = msgspec.structs.replace(FAST, events=True)
SLOW = msgspec.structs.replace(TOLD, resize=3.0)


def requesting(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}, **fields}


def resized(world: PodWorld, cpu: str, **fields: Any) -> PodWorld:
    """As the resize subresource leaves the pod."""
    meta = {**world.pod["metadata"], "generation": world.pod["metadata"]["generation"] + 1}
    spec = {**world.pod["spec"], "containers": [requesting(cpu, **fields)]}
    world.pod = {**world.pod, "metadata": meta, "spec": spec}
    return world


def conditions(world: PodWorld) -> dict[str, dict[str, Any]]:
    return {c["type"]: c for c in world.pod["status"]["conditions"]}


def cpus(world: PodWorld) -> tuple[str, str]:
    entry = world.container()
    return entry["resources"]["requests"]["cpu"], entry["allocatedResources"]["cpu"]


def test_a_resize_that_fits_is_done_at_once_by_the_fast_profile() -> None:
    world = PodWorld(pod(containers=[requesting("1")]), TOLD).step()
    resized(world, "2").step()
    assert cpus(world) == ("2", "2")
    assert world.pod["status"]["observedGeneration"] == 2
    assert world.events[-2:] == ["ResizeStarted", "ResizeCompleted"]
    assert not {"PodResizePending", "PodResizeInProgress"} & set(conditions(world))
    assert world.container()["restartCount"] == 0
    patches = len(world.patches)
    assert len(world.step().patches) == patches


def test_while_it_is_applied_the_old_amount_is_in_force_and_the_new_one_allocated() -> None:
    world = PodWorld(pod(containers=[requesting("1")]), SLOW).step()
    resized(world, "2").step()
    assert cpus(world) == ("1", "2")
    assert conditions(world)["PodResizeInProgress"]["status"] == "True"
    assert conditions(world)["PodResizeInProgress"]["observedGeneration"] == 2
    world.run_until(2.9)
    assert cpus(world) == ("1", "2")
    world.run_until(3.1)
    assert cpus(world) == ("2", "2") and "PodResizeInProgress" not in conditions(world)


def test_a_resize_that_does_not_fit_waits_and_is_tried_again() -> None:
    host = FakeHost()
    world = PodWorld(pod(containers=[requesting("1")]), TOLD, host).step()
    host.rejection = Rejection("OutOfcpu", "Node didn't have enough resource: cpu")
    resized(world, "8").step()
    pending = conditions(world)["PodResizePending"]
    assert (pending["status"], pending["reason"]) == ("True", "Deferred")
    assert pending["message"] == "Node didn't have enough resource: cpu"
    assert cpus(world) == ("1", "1") and world.events.count("ResizeDeferred") == 1
    world.run_until(25)
    assert world.events.count("ResizeDeferred") == 1
    host.rejection = None
    world.run_until(40)
    assert cpus(world) == ("8", "8") and "PodResizePending" not in conditions(world)


def test_a_resize_taken_back_leaves_nothing_behind() -> None:
    host = FakeHost()
    world = PodWorld(pod(containers=[requesting("1")]), TOLD, host).step()
    host.rejection = Rejection("OutOfcpu", "no")
    resized(world, "8").step()
    resized(world, "1").step()
    assert cpus(world) == ("1", "1") and "PodResizePending" not in conditions(world)
    assert world.run.resize is None


def test_another_size_while_one_is_applied_starts_anew() -> None:
    world = PodWorld(pod(containers=[requesting("1")]), SLOW).step()
    resized(world, "2").step()
    resized(world, "3").step()
    assert cpus(world) == ("1", "3")
    world.run_until(4)
    assert cpus(world) == ("3", "3")


def test_a_container_whose_policy_says_so_is_restarted() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    world = PodWorld(pod(containers=[requesting("1", resizePolicy=policy)]), TOLD).step()
    resized(world, "2", resizePolicy=policy).step()
    assert world.container()["restartCount"] == 1 and world.state() == "running"
    assert world.container()["lastState"]["terminated"]["exitCode"] == 137
    assert "Killing" in world.events and cpus(world) == ("2", "2")


def test_another_process_goes_on_with_a_resize() -> None:
    world = PodWorld(pod(containers=[requesting("1")]), SLOW).step()
    resized(world, "2").step()
    world.run = begin(world.pod, world.profile, world.host, world.now_s, DRAW)
    world.run_until(10)
    assert cpus(world) == ("2", "2") and "PodResizeInProgress" not in conditions(world)


def test_the_kubelet_profile_takes_a_moment() -> None:
    assert KUBELET.resize != 0.0


def record(cpu: str) -> NodeRecord:
    node = {"metadata": {"name": "n", "uid": "u"}, "status": {"allocatable": {"cpu": cpu, "pods": "1"}}}
    return NodeRecord("n", "u", node, (), "", PodAddresses([]), 1.0, {})


def test_a_node_counts_the_new_size_and_refuses_what_it_has_not() -> None:
    host = record("4")
    given = pod(containers=[requesting("1")])
    host.count("default/p", given)
    assert host.resize(pod(containers=[requesting("4")])) is None
    assert host.load.used["cpu"] == 4000
    refused = host.resize(pod(containers=[requesting("5")]))
    assert refused is not None and refused.reason == "OutOfcpu" and host.load.used["cpu"] == 4000
