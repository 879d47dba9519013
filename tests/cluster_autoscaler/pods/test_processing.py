"""From waiting pods to those for which a node might be added."""

from __future__ import annotations

from typing import Any

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.processing import PodProcessor, ProcessedPods
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import NOW_S, owned_pod, waiting
from tests.packing.objects import make_node, make_pod


def processed(
    nodes: list[JsonObject], pods: list[JsonObject], *, bound: tuple[JsonObject, ...] = (), **options: Any
) -> tuple[ProcessedPods, ClusterSnapshot]:
    snapshot = ClusterSnapshot()
    snapshot.set_cluster_state(nodes, bound)
    drained = options.pop("drained_nodes", ())
    answer = PodProcessor().process(snapshot, pods, AutoscalerOptions(**options), NOW_S, drained_nodes=drained)
    return answer, snapshot


def names(pods: list[JsonObject]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def test_pods_for_which_there_is_room_need_no_node_and_keep_their_room() -> None:
    pods = [waiting(owned_pod(f"p{i}", requests={"cpu": "3"})) for i in range(3)]
    answer, snapshot = processed([make_node("a"), make_node("b")], pods)
    assert names(answer.to_help) == ["p2"]
    assert [(status.pod, status.node_name) for status in answer.schedulable] == [(pods[0], "b"), (pods[1], "a")]
    assert snapshot.pods_on("b") == [pods[0]]


def test_the_most_important_pods_come_first() -> None:
    pods = [waiting(make_pod(name, requests={"cpu": "9"}, priority=p)) for name, p in (("a", 1), ("b", 5), ("c", 1))]
    assert names(processed([make_node("n")], pods)[0].to_help) == ["b", "a", "c"]


def test_expendable_pods_and_daemons_get_no_node() -> None:
    pods = [
        waiting(make_pod("expendable", priority=-11, requests={"cpu": "1"})),
        waiting(owned_pod("daemon", kind="DaemonSet", requests={"cpu": "9"})),
        waiting(owned_pod("worthy", requests={"cpu": "9"})),
    ]
    answer, snapshot = processed([make_node("n")], pods)
    assert names(answer.to_help) == ["worthy"]
    assert snapshot.pods_on("n") == []


def test_daemons_take_room_before_they_are_dropped() -> None:
    pods = [
        waiting(owned_pod("daemon", kind="DaemonSet", requests={"cpu": "3"})),
        waiting(owned_pod("other", requests={"cpu": "3"})),
    ]
    answer, _ = processed([make_node("n")], pods)
    assert names(answer.to_help) == ["other"]


def test_pods_of_drained_nodes_need_a_place_however_unimportant() -> None:
    bound = owned_pod("moves", node="drained", requests={"cpu": "4"}, priority=-100)
    cordoned = make_node("drained", unschedulable=True)
    answer, snapshot = processed([cordoned], [], bound=(bound,), drained_nodes=["drained"])
    assert names(answer.to_help) == ["moves"] and "nodeName" not in answer.to_help[0]["spec"]
    answer, snapshot = processed([cordoned, make_node("n")], [], bound=(bound,), drained_nodes=["drained"])
    assert answer.to_help == []
    assert names(snapshot.pods_on("drained")) == names(snapshot.pods_on("n")) == ["moves"]


def test_tpus_stand_in_nobodys_way() -> None:
    pod = waiting(owned_pod("p", requests={"cpu": "1", "cloud-tpus.google.com/v2": "8"}))
    answer, _ = processed([make_node("n")], [pod])
    assert answer.to_help == [] and len(answer.schedulable) == 1


def test_young_pods_are_told_of_apart() -> None:
    old = waiting(owned_pod("old", "a", requests={"cpu": "9"}))
    young = waiting(owned_pod("young", "b", requests={"cpu": "9"}), created="2027-01-15T07:59:50Z")
    answer, _ = processed([make_node("n")], [old, young], new_pod_scale_up_delay_s=30.0)
    assert (names(answer.to_help), names(answer.young)) == (["old"], ["young"])


def test_pods_go_where_they_went_in_the_last_turn() -> None:
    nodes = [make_node(f"n{i}") for i in range(3)]
    pods = [waiting(owned_pod(f"p{i}", requests={"cpu": "1"})) for i in range(2)]
    snapshot, processor = ClusterSnapshot(), PodProcessor()
    found = []
    for _ in range(3):
        snapshot.set_cluster_state(nodes, ())
        answer = processor.process(snapshot, pods, AutoscalerOptions(), NOW_S)
        found.append([status.node_name for status in answer.schedulable])
    assert found == [["n1", "n2"]] * 3
