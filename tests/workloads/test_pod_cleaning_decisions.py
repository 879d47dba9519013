from __future__ import annotations

from typing import Any

from holokube.client.cache import Cache
from holokube.workloads.pod_cleaning_decisions import Removal, orphaned, stuck_terminating, surplus_terminated
from tests.workloads.objects import a_pod

JsonObject = dict[str, Any]


def names(removals: list[Removal]) -> list[str]:
    return [removal.pod["metadata"]["name"] for removal in removals]


def test_beyond_the_threshold_the_evicted_go_first_then_the_oldest() -> None:
    evicted = a_pod("evicted", "Failed", age_s=1)
    evicted["status"]["reason"] = "Evicted"
    pods = [a_pod("old", "Succeeded", age_s=90), a_pod("young", "Failed", age_s=5), evicted]
    assert names(surplus_terminated(pods, 1)) == ["evicted", "old"]
    assert surplus_terminated(pods, 3) == [] and surplus_terminated(pods, 0) == []


def test_pods_of_a_lost_node_are_marked_failed_unless_they_ended() -> None:
    running, ended = orphaned([a_pod("r", node="n"), a_pod("e", "Succeeded", node="n")])
    assert (running.fails, ended.fails) == (True, False)
    assert running.disruption == "PodGC: node no longer exists"


def test_deleted_pods_that_no_kubelet_will_finish_are_stuck() -> None:
    nodes = Cache()
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    for name, ready, taints in (("dead", "False", [taint]), ("alive", "True", [taint]), ("late", "False", [])):
        nodes.put(name, {
            "metadata": {"name": name}, "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        })  # fmt: skip
    pods = [a_pod(f"on-{name}", node=name, leaving=True) for name in ("dead", "alive", "late", "unknown")]
    assert names(stuck_terminating([*pods, a_pod("nowhere", leaving=True)], nodes)) == ["on-dead", "nowhere"]
