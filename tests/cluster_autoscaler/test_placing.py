"""Putting many pods on nodes at the cost of counting."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.placing import Placing, RoomLeft, asks_only_for_room
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import owned_pod
from tests.packing.objects import affinity_term, make_node, make_pod, pod_anti_affinity

APART = pod_anti_affinity(affinity_term("a", "kubernetes.io/hostname"))


def snapshot_of(*nodes: JsonObject) -> ClusterSnapshot:
    snapshot = ClusterSnapshot()
    snapshot.set_cluster_state(nodes, ())
    return snapshot


def placing_on(snapshot: ClusterSnapshot) -> Placing:
    return Placing(snapshot, lambda facts: snapshot.class_of(facts.pod), None)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (make_pod(requests={"cpu": "1"}, nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}]), True),
        (make_pod(ports=[{"containerPort": 80, "hostPort": 80}]), False),
        (make_pod(claims=["c"]), False),
        (make_pod(affinity=APART), False),
    ],
)
def test_pods_that_look_at_more_than_room_are_told_apart(pod: JsonObject, expected: bool) -> None:
    assert asks_only_for_room(ClusterSnapshot().class_of(pod)) is expected


def test_the_snapshot_learns_of_pods_at_the_end_in_the_order_they_came() -> None:
    snapshot = snapshot_of(make_node("n"))
    placing = placing_on(snapshot)
    pods = [owned_pod(f"p{i}", f"rs{i % 2}", labels={"rs": str(i % 2)}) for i in range(4)]
    for pod in pods:
        assert placing.put_anywhere(snapshot.kinds.facts_of(pod)) == "n"
    assert snapshot.pods_on("n") == []
    placing.finish()
    assert snapshot.pods_on("n") == pods
    placing.finish()
    assert snapshot.pods_on("n") == pods


def test_a_pod_that_looks_at_others_sees_all_that_were_placed_before_it() -> None:
    snapshot = snapshot_of(make_node("n0"), make_node("n1"))
    placing = placing_on(snapshot)
    plain, picky = owned_pod("plain", labels={"app": "a"}), owned_pod("picky", affinity=APART)
    assert placing.put_anywhere(snapshot.kinds.facts_of(plain)) == "n1"
    assert placing.put_anywhere(snapshot.kinds.facts_of(picky)) == "n0"


def test_a_search_passes_over_cordoned_nodes_that_a_hint_may_name() -> None:
    snapshot = snapshot_of(make_node("n", unschedulable=True))
    placing = placing_on(snapshot)
    facts = snapshot.kinds.facts_of(make_pod("p", tolerations=[{"operator": "Exists"}]))
    assert placing.put_anywhere(facts) is None
    assert placing.put_on(facts, "n")


def test_there_is_no_place_where_there_is_no_node() -> None:
    snapshot = snapshot_of()
    placing = placing_on(snapshot)
    for pod in (make_pod("plain"), make_pod("picky", affinity=APART)):
        facts = snapshot.kinds.facts_of(pod)
        assert placing.put_anywhere(facts) is None
        assert not placing.put_on(facts, "n")


def test_room_is_the_same_however_many_nodes_are_asked() -> None:
    nodes = [make_node(f"n{i}", cpu=str(1 + i % 3)) for i in range(40)]
    snapshot = snapshot_of(*nodes)
    snapshot.force_add_pod(owned_pod("there", requests={"cpu": "1"}), "n39")
    room, wants = RoomLeft(snapshot), [(0, 1000)]
    for _ in range(2):
        taken = [sum(room.take(wants, index) for _ in range(4)) for index in range(40)]
        assert taken == [1 + i % 3 - (i == 39) for i in range(40)]
        room.forget()
        snapshot.force_add_pod(owned_pod("more", requests={"cpu": "0"}), "n1")
