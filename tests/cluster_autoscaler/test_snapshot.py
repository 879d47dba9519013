"""The cluster to experiment on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot, SnapshotError
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import owned_pod
from tests.packing.objects import affinity_term, make_node, make_pod, pod_anti_affinity


def snapshot_of(*nodes: JsonObject, pods: tuple[JsonObject, ...] = ()) -> ClusterSnapshot:
    snapshot = ClusterSnapshot()
    snapshot.set_cluster_state(nodes, pods)
    return snapshot


def names(pods: list[JsonObject]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def test_pods_come_back_as_the_objects_they_were() -> None:
    bound, waiting = make_pod("bound", node="n"), make_pod("waiting")
    snapshot = snapshot_of(make_node("n"), pods=(bound,))
    assert snapshot.schedule_pod(waiting, "n")
    assert snapshot.pods_on("n")[0] is bound
    assert snapshot.pods_on("n")[1] is waiting
    assert snapshot.node_info("n").pods == (bound, waiting)


def test_pods_of_unknown_nodes_and_finished_pods_are_left_out_and_nominated_ones_are_in() -> None:
    nominated = {**make_pod("nominated", requests={"cpu": "1"}), "status": {"nominatedNodeName": "n"}}
    done = {**make_pod("done", node="n"), "status": {"phase": "Succeeded"}}
    snapshot = snapshot_of(make_node("n"), pods=(make_pod("lost", node="gone"), nominated, done))
    assert names(snapshot.pods_on("n")) == ["nominated"]
    assert snapshot.state.free(snapshot.row("n"))["cpu"] == 3000


def test_the_search_begins_behind_the_last_match_and_goes_round() -> None:
    snapshot = snapshot_of(*(make_node(f"n{i}") for i in range(3)))
    found = [snapshot.schedule_pod_on_any_node(make_pod(f"p{i}", requests={"cpu": "3"})) for i in range(4)]
    assert found == ["n1", "n2", "n0", None]


def test_a_named_node_does_not_move_the_place_of_the_last_match() -> None:
    snapshot = snapshot_of(*(make_node(f"n{i}") for i in range(3)))
    assert snapshot.schedule_pod(make_pod("a"), "n2")
    assert snapshot.schedule_pod_on_any_node(make_pod("b")) == "n1"


def test_the_place_of_the_last_match_outlives_rollbacks_and_turns() -> None:
    nodes = [make_node(f"n{i}") for i in range(4)]
    snapshot = snapshot_of(*nodes)
    with snapshot.trial():
        assert snapshot.schedule_pod_on_any_node(make_pod("a")) == "n1"
    assert snapshot.schedule_pod_on_any_node(make_pod("a")) == "n2"
    snapshot.set_cluster_state(nodes, ())
    assert snapshot.schedule_pod_on_any_node(make_pod("a")) == "n3"


def test_the_place_is_a_number_and_not_a_node() -> None:
    snapshot = snapshot_of(*(make_node(f"n{i}") for i in range(3)))
    assert snapshot.schedule_pod_on_any_node(make_pod("a")) == "n1"
    snapshot.remove_node("n0")
    assert snapshot.schedule_pod_on_any_node(make_pod("b")) == "n1"


def test_a_place_beyond_the_last_node_wraps() -> None:
    snapshot = snapshot_of(make_node("n0"), make_node("n1"))
    with snapshot.trial():
        snapshot.add_node(NodeInfo(make_node("n2")))
        assert snapshot.schedule_pod_on_any_node(make_pod("a"), allowed="n2".__eq__) == "n2"
    assert snapshot.schedule_pod_on_any_node(make_pod("b")) == "n1"


def test_a_search_passes_over_cordoned_nodes_even_for_pods_that_tolerate_it() -> None:
    snapshot = snapshot_of(make_node("n", unschedulable=True))
    tolerant = make_pod("p", tolerations=[{"operator": "Exists"}])
    assert snapshot.schedule_pod_on_any_node(tolerant) is None
    assert snapshot.try_pod(tolerant, "n") == ()
    assert snapshot.schedule_pod(tolerant, "n")


def test_only_allowed_nodes_are_searched() -> None:
    snapshot = snapshot_of(*(make_node(f"n{i}") for i in range(4)))
    assert snapshot.schedule_pod_on_any_node(make_pod("a"), allowed={"n0", "n3"}.__contains__) == "n3"
    assert snapshot.schedule_pod_on_any_node(make_pod("b"), allowed={"n0", "n3"}.__contains__) == "n0"
    assert snapshot.schedule_pod_on_any_node(make_pod("c"), allowed=lambda name: False) is None


def test_why_a_pod_does_not_fit_is_told_in_the_schedulers_words() -> None:
    snapshot = snapshot_of(make_node("n", cpu="1"))
    assert snapshot.try_pod(make_pod(requests={"cpu": "2"}), "n") == ("Insufficient cpu",)
    assert not snapshot.schedule_pod(make_pod(requests={"cpu": "2"}), "n")
    assert snapshot.pods_on("n") == []


def test_where_a_pod_is_bound_to_does_not_matter_to_where_it_could_go() -> None:
    moving = make_pod("p", node="a")
    snapshot = snapshot_of(make_node("a"), make_node("b"), pods=(moving,))
    snapshot.remove_pod(moving)
    assert snapshot.try_pod(moving, "b") == ()
    assert snapshot.schedule_pod(moving, "b")
    assert snapshot.pods_on("a") == [] and snapshot.pods_on("b") == [moving]
    snapshot.remove_pod(moving)
    assert snapshot.pods_on("b") == []


def test_a_pod_may_be_there_twice_and_is_taken_from_the_node_that_is_meant() -> None:
    there = make_pod("p", node="a")
    again = make_pod("p")
    snapshot = snapshot_of(make_node("a"), make_node("b"), pods=(there,))
    snapshot.force_add_pod(again, "b")
    assert snapshot.pods_on("a") == [there] and snapshot.pods_on("b") == [again]
    snapshot.remove_pod(again, "b")
    assert snapshot.pods_on("a") == [there] and snapshot.pods_on("b") == []
    with pytest.raises(SnapshotError, match='no pod "default/p" on node "b"'):
        snapshot.remove_pod(again, "b")


def test_nodes_keep_their_order_and_added_ones_come_last() -> None:
    snapshot = snapshot_of(*(make_node(name) for name in "cab"))
    snapshot.fork()
    snapshot.add_node(NodeInfo(make_node("z"), (make_pod("daemon"),)))
    snapshot.remove_node("a")
    snapshot.replace_node(make_node("c", {"new": "label"}))
    assert list(snapshot.node_names) == ["c", "b", "z"]
    assert snapshot.node("c")["metadata"]["labels"]["new"] == "label"
    assert names(snapshot.pods_on("z")) == ["daemon"]
    snapshot.rollback()
    assert list(snapshot.node_names) == ["c", "a", "b"]
    assert "new" not in snapshot.node("c")["metadata"]["labels"]
    assert not snapshot.has_node("z") and len(snapshot) == 3


def test_what_is_committed_can_be_taken_back_by_an_outer_experiment() -> None:
    snapshot = snapshot_of(make_node("a"), make_node("b"))
    snapshot.fork()
    snapshot.fork()
    snapshot.remove_node("a")
    snapshot.commit()
    assert list(snapshot.node_names) == ["b"]
    snapshot.rollback()
    assert list(snapshot.node_names) == ["a", "b"]
    with pytest.raises(SnapshotError, match="nothing to commit"):
        snapshot.commit()


def test_a_removed_node_takes_its_pods_with_it() -> None:
    pod = make_pod("p", node="a", requests={"cpu": "1"})
    snapshot = snapshot_of(make_node("a"), make_node("b"), pods=(pod,))
    with snapshot.trial():
        snapshot.remove_node("a")
        snapshot.add_node(NodeInfo(make_node("a")))
        assert snapshot.pods_on("a") == []
        assert list(snapshot.node_names) == ["b", "a"]
    assert snapshot.pods_on("a") == [pod]


def test_a_node_cannot_be_added_twice_and_an_unknown_one_cannot_be_asked_about() -> None:
    snapshot = snapshot_of(make_node("a"))
    with pytest.raises(SnapshotError, match="already in the snapshot"):
        snapshot.add_node(NodeInfo(make_node("a")))
    with pytest.raises(SnapshotError, match='no node "b"'):
        snapshot.pods_on("b")


def test_a_new_turn_forgets_what_was_tried() -> None:
    nodes, bound = [make_node("a"), make_node("b")], make_pod("bound", node="a")
    snapshot = snapshot_of(*nodes, pods=(bound,))
    snapshot.schedule_pod(make_pod("tried"), "a")
    snapshot.fork()
    snapshot.remove_node("b")
    snapshot.add_node(NodeInfo(make_node("upcoming")))
    snapshot.set_cluster_state(nodes, [bound])
    assert list(snapshot.node_names) == ["a", "b"]
    assert snapshot.pods_on("a") == [bound]


def test_storage_and_namespaces_outlive_the_turn_but_not_an_experiment() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": {}}
    wants = make_pod("p", claims=["c"])
    snapshot = snapshot_of(make_node("n"))
    assert snapshot.try_pod(wants, "n") == ('persistentvolumeclaim "c" not found',)
    with snapshot.trial():
        snapshot.put_storage(claim)
        assert snapshot.try_pod(wants, "n") == ("pod has unbound immediate PersistentVolumeClaims",)
    assert snapshot.try_pod(wants, "n") == ('persistentvolumeclaim "c" not found',)
    snapshot.set_storage([claim])
    snapshot.set_namespaces([{"metadata": {"name": "default", "labels": {"team": "a"}}}])
    snapshot.set_cluster_state([make_node("n")], ())
    assert snapshot.try_pod(wants, "n") == ("pod has unbound immediate PersistentVolumeClaims",)
    assert snapshot.state.counters.namespaces == {"default": {"team": "a"}}
    snapshot.set_storage([])
    snapshot.set_namespaces([])
    snapshot.set_cluster_state([make_node("n")], ())
    assert snapshot.try_pod(wants, "n") == ('persistentvolumeclaim "c" not found',)
    assert snapshot.state.counters.namespaces == {}


def test_a_pod_in_the_middle_of_a_resize_counts_with_its_larger_size() -> None:
    growing = make_pod("p", node="n", requests={"cpu": "1"})
    larger = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
    same = {"name": "c", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}
    snapshot = snapshot_of(make_node("n"), pods=({**growing, "status": {"containerStatuses": [larger]}},))
    assert snapshot.state.free(snapshot.row("n"))["cpu"] == 1000
    snapshot = snapshot_of(make_node("n"), pods=({**growing, "status": {"containerStatuses": [same]}},))
    assert snapshot.state.free(snapshot.row("n"))["cpu"] == 3000


def _cluster(draw: st.DrawFn) -> tuple[list[JsonObject], list[JsonObject]]:
    nodes = [make_node(f"n{i}", {"v": str(draw(st.integers(0, 1)))}) for i in draw(st.permutations(range(4)))]
    nodes = nodes[: draw(st.integers(0, 4))]
    pods = []
    for i in range(draw(st.integers(0, 6))):
        apart = pod_anti_affinity(affinity_term("a", "kubernetes.io/hostname")) if draw(st.booleans()) else {}
        pods.append(owned_pod(
            f"p{i}", f"rs{draw(st.integers(0, 1))}", node=f"n{draw(st.integers(0, 4))}", labels={"app": "a"},
            requests={"cpu": f"{draw(st.integers(1, 3))}"}, affinity=apart, deleted=draw(st.booleans()),
        ))  # fmt: skip
    return nodes, pods


_clusters = st.composite(_cluster)()


@settings(max_examples=60, deadline=None)
@given(st.lists(_clusters, min_size=2, max_size=4), st.booleans())
def test_a_turn_costs_what_changed_and_is_the_same_as_a_new_snapshot(
    turns: list[tuple[list[JsonObject], list[JsonObject]]], keep_objects: bool
) -> None:
    snapshot = ClusterSnapshot()
    seen: dict[str, JsonObject] = {}
    for nodes, pods in turns:
        if keep_objects:
            # Objects that did not change are the same objects in the next turn, as from a cache.
            pods = [seen.setdefault(str(pod), pod) for pod in pods]
            nodes = [seen.setdefault(str(node), node) for node in nodes]
        snapshot.set_cluster_state(nodes, pods)
        fresh = snapshot_of(*nodes, pods=tuple(pods))
        assert snapshot.node_names == fresh.node_names
        for name in fresh.node_names:
            assert sorted(names(snapshot.pods_on(name))) == sorted(names(fresh.pods_on(name)))
        for probe in (make_pod("x", requests={"cpu": "1"}), *pods[:2]):
            ours, theirs = snapshot.class_of(probe), fresh.class_of(probe)
            assert np.array_equal(snapshot.acceptable(ours), fresh.acceptable(theirs))
        if nodes:
            snapshot.schedule_pod_on_any_node(make_pod("tried", labels={"app": "a"}))
            snapshot.fork()
            snapshot.remove_node(nodes[0]["metadata"]["name"])


def test_labels_that_nodes_have_are_known_at_any_time() -> None:
    snapshot = ClusterSnapshot()
    snapshot.set_cluster_state([make_node("n0"), make_node("n1", labels={"gpu": ""})], ())
    assert snapshot.has_label("gpu")
    with snapshot.trial():
        snapshot.remove_node("n1")
        assert not snapshot.has_label("gpu")
    assert snapshot.has_label("gpu")
    snapshot.set_cluster_state([make_node("n0")], ())
    assert not snapshot.has_label("gpu")
