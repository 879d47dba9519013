"""DaemonSets on virtual time: nodes that come and go, updates, history."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.client.faulty import Faults
from holokube.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from holokube.kube.types import JsonObject
from holokube.workloads import daemon_set_controller
from tests.builders import pod
from tests.workloads.world import STORM, World

BUILDS = [daemon_set_controller.build]


def make(name: str = "agent", *, template: JsonObject | None = None, **spec: Any) -> JsonObject:
    pod_spec = {**pod()["spec"], **(template or {})}
    return {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec}, **spec,
        },
    }  # fmt: skip


def set_image(world: World, image: str) -> None:
    world.patch(DAEMON_SETS, "agent", {"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": image}
    ]}}}})  # fmt: skip


def nodes_of(world: World, **labels: str) -> list[str]:
    return sorted(p["spec"].get("nodeName", "") for p in world.pods(**labels))


def images(world: World) -> set[str]:
    return {p["spec"]["containers"][0]["image"] for p in world.pods()}


def is_ready(found: JsonObject) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", ()))


def test_every_node_gets_one_pod_and_the_status_says_so() -> None:
    with World(BUILDS) as world:
        world.create(DAEMON_SETS, make())
        world.pass_time()
        assert nodes_of(world) == ["node-0", "node-1", "node-2"]
        found = world.get(DAEMON_SETS, "agent")
        assert found["status"] == {
            "currentNumberScheduled": 3, "numberMisscheduled": 0, "desiredNumberScheduled": 3,
            "numberReady": 3, "observedGeneration": 1, "updatedNumberScheduled": 3, "numberAvailable": 3,
        }  # fmt: skip
        (revision,) = world.list(CONTROLLER_REVISIONS)
        digest = revision["metadata"]["labels"]["controller-revision-hash"]
        assert revision["metadata"]["name"] == f"agent-{digest}" and revision["revision"] == 1
        assert revision["data"]["spec"]["template"]["$patch"] == "replace"
        each = world.pods()[0]
        assert each["metadata"]["labels"] == {
            "app": "agent", "controller-revision-hash": digest, "pod-template-generation": "1",
        }  # fmt: skip
        required = each["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert required["nodeSelectorTerms"] == [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [each["spec"]["nodeName"]]}
        ]}]  # fmt: skip
        tolerated = {(t["key"], t["effect"]) for t in each["spec"]["tolerations"]}
        assert tolerated == {
            ("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/unreachable", "NoExecute"),
            ("node.kubernetes.io/disk-pressure", "NoSchedule"),
            ("node.kubernetes.io/memory-pressure", "NoSchedule"),
            ("node.kubernetes.io/pid-pressure", "NoSchedule"),
            ("node.kubernetes.io/unschedulable", "NoSchedule"),
        }  # fmt: skip


def test_pods_follow_nodes_labels_and_taints() -> None:
    with World(BUILDS) as world:
        world.create(DAEMON_SETS, make(template={"nodeSelector": {"disk": "ssd"}}))
        world.pass_time()
        assert world.pods() == []
        world.patch(NODES, "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
        world.add_node("late", disk="ssd")
        world.pass_time()
        assert nodes_of(world) == ["late", "node-1"]
        world.patch(NODES, "late", {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})
        world.pass_time()
        # It does not tolerate the taint, but only NoExecute would send it away.
        assert nodes_of(world) == ["late", "node-1"]
        # As upstream has it, such a taint is counted when the controller next has something to do.
        status = world.get(DAEMON_SETS, "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (2, 0)
        world.patch(DAEMON_SETS, "agent", {"metadata": {"annotations": {"look": "again"}}})
        world.pass_time()
        status = world.get(DAEMON_SETS, "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (1, 1)
        world.patch(NODES, "late", {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
        world.pass_time()
        assert nodes_of(world) == ["node-1"]
        world.patch(NODES, "node-1", {"metadata": {"labels": {"disk": None}}})
        world.pass_time()
        assert world.pods() == []


def test_a_cordoned_node_keeps_and_gets_its_daemons() -> None:
    with World(BUILDS, nodes=1) as world:
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        world.patch(NODES, "node-0", {"spec": {"unschedulable": True, "taints": [taint]}})
        world.create(DAEMON_SETS, make())
        world.pass_time()
        assert nodes_of(world) == ["node-0"]


@pytest.mark.parametrize(("unavailable", "most_missing"), [(1, 1), (2, 2), ("50%", 3)])
def test_a_rolling_update_replaces_so_many_at_a_time(unavailable: int | str, most_missing: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}}
    with World(BUILDS, nodes=6) as world:
        world.create(DAEMON_SETS, make(updateStrategy=strategy))
        world.pass_time()
        set_image(world, "agent:2")
        fewest = 6
        for _ in range(240):
            world.pass_time(0.25)
            ready = sum(map(is_ready, world.pods()))
            assert ready >= 6 - most_missing
            fewest = min(fewest, ready)
        assert fewest == 6 - most_missing
        assert images(world) == {"agent:2"} and len(world.pods()) == 6
        assert world.get(DAEMON_SETS, "agent")["status"]["updatedNumberScheduled"] == 6
        assert sorted(r["revision"] for r in world.list(CONTROLLER_REVISIONS)) == [1, 2]


def test_an_update_with_surge_never_leaves_a_node_without_a_ready_pod() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}}
    with World(BUILDS, nodes=5) as world:
        world.create(DAEMON_SETS, make(updateStrategy=strategy))
        world.pass_time()
        set_image(world, "agent:2")
        most = 0
        for _ in range(240):
            world.pass_time(0.25)
            pods = world.pods()
            ready = {p["spec"]["nodeName"] for p in pods if is_ready(p)}
            assert len(ready) == 5
            most = max(most, len(pods))
        assert most == 7
        assert images(world) == {"agent:2"} and len(world.pods()) == 5


def test_on_delete_updates_only_what_the_user_deletes() -> None:
    with World(BUILDS) as world:
        world.create(DAEMON_SETS, make(updateStrategy={"type": "OnDelete"}))
        world.pass_time()
        set_image(world, "agent:2")
        world.pass_time()
        assert images(world) == {"registry.example/app:1"}
        assert "updatedNumberScheduled" not in world.get(DAEMON_SETS, "agent")["status"]
        world.delete(PODS, world.pods()[0]["metadata"]["name"])
        world.pass_time()
        assert images(world) == {"registry.example/app:1", "agent:2"}
        assert world.get(DAEMON_SETS, "agent")["status"]["updatedNumberScheduled"] == 1


def test_going_back_reuses_the_revision_with_a_new_number_and_old_ones_are_trimmed() -> None:
    with World(BUILDS, nodes=1) as world:
        world.create(DAEMON_SETS, make(revisionHistoryLimit=2))
        world.pass_time()
        for number in range(2, 5):
            set_image(world, f"agent:{number}")
            world.pass_time()

        def numbers() -> dict[str, int]:
            return {
                r["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: r["revision"]
                for r in world.list(CONTROLLER_REVISIONS)
            }

        assert numbers() == {"agent:2": 2, "agent:3": 3, "agent:4": 4}
        set_image(world, "agent:2")
        world.pass_time()
        assert numbers() == {"agent:3": 3, "agent:4": 4, "agent:2": 5}


def test_a_failed_daemon_is_replaced_slower_and_slower() -> None:
    with World(BUILDS, nodes=1) as world:
        world.kubelet.verdict = lambda _pod: "fail"
        world.kubelet.run_s = 0.1
        world.create(DAEMON_SETS, make())
        world.pass_time(300)
        killed = len(world.events("FailedDaemonPod"))
        # Waits of 1, 2, 4, ... seconds, with about three for each pod's life and death.
        assert 5 <= killed <= 9
        world.kubelet.verdict = lambda _pod: "ready"
        world.pass_time(600)
        assert nodes_of(world) == ["node-0"]


def test_pods_meant_for_a_node_that_is_gone_are_removed() -> None:
    with World(BUILDS, nodes=2) as world:
        world.kubelet.verdict = lambda _pod: "ready"
        world.create(DAEMON_SETS, make())
        world.pass_time()
        world.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}})
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        world.patch(NODES, "ghost", {"spec": {"taints": [taint]}})
        world.delete(NODES, "ghost")
        world.pass_time()
        assert nodes_of(world) == ["node-0", "node-1"]
        assert world.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 2


@pytest.mark.parametrize("seed", range(5))
def test_whatever_goes_wrong_every_node_has_one_pod_of_the_last_template(seed: int) -> None:
    with World(BUILDS, nodes=4, seed=seed, faults=STORM) as world:
        world.create(DAEMON_SETS, make())
        world.pass_time(60)
        set_image(world, "agent:2")
        world.pass_time(20)
        world.add_node("late")
        set_image(world, "agent:3")
        world.pass_time(120)
        world.faulty.faults = Faults()
        world.pass_time(1500)
        assert nodes_of(world) == ["late", "node-0", "node-1", "node-2", "node-3"]
        assert images(world) == {"agent:3"}
        assert world.get(DAEMON_SETS, "agent")["status"]["numberAvailable"] == 5


def test_a_node_that_is_deleted_is_counted_until_its_pod_goes() -> None:
    with World(BUILDS) as world:
        world.create(DAEMON_SETS, make())
        world.pass_time()
        (lost,) = [p for p in world.pods() if p["spec"]["nodeName"] == "node-0"]
        world.delete(NODES, "node-0")
        world.pass_time()
        assert world.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 3
        world.delete(PODS, lost["metadata"]["name"], grace_s=0)
        world.pass_time()
        assert world.get(DAEMON_SETS, "agent")["status"]["desiredNumberScheduled"] == 2
