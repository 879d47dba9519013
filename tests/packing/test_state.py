"""Nodes, pods, classes and experiments of the cluster state."""

from __future__ import annotations

import numpy as np
import pytest

from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState, PackingError, StaleClassError
from holokube.packing.counters import SpreadMatcher
from tests.packing.filters.tables import feasible, state_of
from tests.packing.objects import affinity_term, make_node, make_pod, pod_anti_affinity


def test_free_is_what_pods_leave() -> None:
    state = state_of(make_node("n", cpu="4", memory="8Gi", pods="10"))
    state.add_pod(make_pod(node="n", requests={"cpu": "1500m", "memory": "2Gi", "example.com/gpu": "1"}))
    assert state.free(state.node_names["n"]) == {
        "cpu": 2500, "memory": 6 * 2**30 * 1000, "ephemeral-storage": 0, "pods": 9000, "example.com/gpu": -1000,
    }  # fmt: skip


def test_scores_see_assumed_requests() -> None:
    state = state_of(make_node("n"), pods=(make_pod(node="n"),))
    assert state.nodes.used_nonzero[0].tolist() == [100, 200 * 2**20 * 1000]


def test_a_pod_may_come_before_its_node_and_outlive_it() -> None:
    state = ClusterState()
    state.add_pod(make_pod(node="n", requests={"cpu": "4"}))
    row = state.add_node(make_node("n"))
    assert state.free(row)["cpu"] == 0
    state.remove_node("n")
    assert state.add_node(make_node("n")) == row
    assert state.free(row)["cpu"] == 0


def test_a_finished_pod_takes_no_room() -> None:
    state = state_of(make_node("n"), pods=(make_pod(node="n", requests={"cpu": "4"}),))
    done = {**make_pod(node="n", requests={"cpu": "4"}), "status": {"phase": "Succeeded"}}
    assert state.add_pod(done) is False
    assert state.free(0)["cpu"] == 4000
    assert not state.pods


def test_more_nodes_than_rows_make_the_table_grow() -> None:
    state = ClusterState()
    pod = make_pod(requests={"cpu": "1"}, affinity=pod_anti_affinity(affinity_term("a", "kubernetes.io/hostname")))
    cls = state.class_of(pod)
    for i in range(200):
        state.add_node(make_node(f"n{i}"))
        assert int(state.feasible(cls).sum()) == i + 1
    state.add_pod(make_pod("p", node="n150", labels={"app": "a"}))
    assert not state.feasible(cls)[state.node_names["n150"]]


def test_an_answer_is_not_changed_by_what_happens_later() -> None:
    state = state_of(make_node("n", cpu="1"))
    cls = state.class_of(make_pod(requests={"cpu": "1"}))
    before = state.feasible(cls)
    state.place(cls, 0)
    assert before[0]
    assert not state.feasible(cls)[0]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = False


def test_a_heartbeat_changes_no_verdict_and_costs_no_recomputation() -> None:
    state = state_of(make_node("n"))
    cls = state.class_of(make_pod())
    before = state.feasible(cls)
    node = make_node("n")
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    state.update_node(node)
    assert state.feasible(cls) is before
    assert state.node(0) is node


def test_equal_requests_in_other_words_are_one_class() -> None:
    state = ClusterState()
    tenth = state.class_of(make_pod("a", requests={"cpu": "0.1"}))
    assert tenth is state.class_of(make_pod("b", requests={"cpu": "100m"}))
    assert state.class_of(make_pod(requests={"cpu": "1"})) is not state.class_of(make_pod(requests={"cpu": "2"}))


def test_a_bound_pod_is_of_the_class_it_had_while_it_was_pending() -> None:
    state = state_of(make_node("n"), pods=(make_pod("a", node="n"),))
    placed = state.pod("default/a")
    assert placed is not None
    assert placed.cls is state.class_of(make_pod("b"))


def test_labels_part_classes_only_once_a_selector_asks_for_them() -> None:
    state = state_of(make_node("n", {"zone": "1"}))
    first, second = make_pod("a", labels={"index": "0"}), make_pod("b", labels={"index": "1"})
    cls = state.class_of(first)
    assert state.class_of(second) is cls
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"index": "0"}}}
    state.add_pod(make_pod("hermit", node="n", affinity=pod_anti_affinity(term)))
    with pytest.raises(StaleClassError):
        state.feasible(cls)
    assert feasible(state, first) == set()
    assert feasible(state, second) == {"n"}


def test_classify_gives_classes_that_are_valid_together() -> None:
    state = ClusterState()
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"index": "0"}}}
    pods = [make_pod("a", labels={"index": "0"}), make_pod("b", labels={"index": "1"}),
            make_pod("c", affinity=pod_anti_affinity(term))]  # fmt: skip
    classes = state.classify(pods)
    assert len(set(classes)) == 3
    assert not any(cls.is_stale for cls in classes)


def test_experiments_nest() -> None:
    state = state_of(make_node("n"))
    cls = state.class_of(make_pod(requests={"cpu": "1"}))
    state.fork()
    state.place(cls, 0)
    state.fork()
    state.place(cls, 0)
    state.rollback()
    assert state.free(0)["cpu"] == 3000
    state.fork()
    state.place(cls, 0)
    state.commit()
    assert state.free(0)["cpu"] == 2000
    state.rollback()
    assert state.free(0)["cpu"] == 4000
    assert not state.pods


def test_what_is_committed_outside_any_experiment_stays() -> None:
    state = state_of(make_node("n"))
    state.fork()
    state.add_node(make_node("m"))
    state.commit()
    with pytest.raises(PackingError, match="nothing to rollback"):
        state.rollback()
    assert set(state.node_names) == {"n", "m"}


def test_room_counts_pods_by_resources_alone() -> None:
    state = state_of(make_node("n", cpu="4", pods="3"), make_node("m", cpu="2500m"), make_node("o", cpu="0"))
    room = state.room(state.class_of(make_pod(requests={"cpu": "1"})))
    assert room[state.rows].tolist() == [3, 2, 0]


def test_explain_counts_nodes_by_reason() -> None:
    state = state_of(make_node("n", cpu="1"), make_node("m", cpu="1", memory="1Gi"), make_node("o", unschedulable=True))
    assert state.explain(state.class_of(make_pod(requests={"cpu": "2", "memory": "2Gi"}))) == {
        "node(s) were unschedulable": 1, "Insufficient cpu": 2, "Insufficient memory": 1,
    }  # fmt: skip


def test_mistakes_are_named() -> None:
    state = state_of(make_node("n"), pods=(make_pod("a", node="n"),))
    cls = state.class_of(make_pod())
    with pytest.raises(PackingError, match="row 7 has no node"):
        state.place(cls, 7)
    with pytest.raises(PackingError, match='no node "x"'):
        state.remove_node("x")
    with pytest.raises(PackingError, match='no pod "default/x"'):
        state.remove_pod("default/x")
    with pytest.raises(PackingError, match='pod "default/p" has no node'):
        state.add_pod(make_pod())
    with pytest.raises(PackingError, match='"default/a" is already on node "n"'):
        state.assume_pod(make_pod("a"), 0)
    with pytest.raises(PackingError, match="not a kind"):
        state.put_storage({"kind": "Secret", "metadata": {"name": "s"}})


def test_an_assumed_pod_becomes_the_bound_one() -> None:
    state = state_of(make_node("n"))
    state.assume_pod(make_pod("a", requests={"cpu": "1"}), 0)
    state.add_pod(make_pod("a", node="n", requests={"cpu": "1"}))
    assert state.used("cpu")[0] == 1000
    assert np.array_equal(state.allocatable("cpu")[state.rows], [4000])


def test_requests_of_the_pod_as_a_whole_leave_nothing_to_assume() -> None:
    both = make_pod("a", node="n", resources={"requests": {"cpu": "2", "memory": "1Gi"}})
    only_cpu = make_pod("b", node="n", resources={"requests": {"cpu": "2"}})
    state = state_of(make_node("n"), pods=(both, only_cpu))
    assert state.nodes.used_nonzero[0].tolist() == [4000, (2**30 + 200 * 2**20) * 1000]


def test_pods_with_other_preferences_are_another_class() -> None:
    state = state_of(make_node("n"))
    wish = {"weight": 1, "podAffinityTerm": affinity_term("web", "zone")}
    liking = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    plain, fond = state.classify([make_pod("a"), make_pod("b", affinity=liking)])
    assert plain is not fond
    assert [term.weight for term, sign in fond.pulls if sign == 1] == [1]


def test_what_was_counted_for_a_class_is_dropped_with_it() -> None:
    state = ClusterState(remember=1)
    state.add_node(make_node("n", {"zone": "1"}))
    state.add_pod(make_pod("a", node="n", labels={"app": "web"}))
    cls, other = state.classify([make_pod("b"), make_pod("c", requests={"cpu": "1"})])
    matcher = SpreadMatcher("default", LabelSelector.parse("app=web"))
    assert state.tally(cls, matcher, "zone").counts.sum() == 1
    assert state.tally(cls, matcher, "zone", affinity=cls.node_affinity).counts.sum() == 1
    assert state.pods_per_row(cls, matcher)[0] == 1
    state.add_pod(make_pod("d", node="n", labels={"app": "web"}))
    assert state.tally(cls, matcher, "zone").counts.sum() == 2
    assert state.pods_per_row(cls, matcher)[0] == 2
    assert state.counters._counters
    state.feasible(other)
    assert not state.counters._counters
    assert not state.counters._tallies


def test_a_resource_that_no_node_has_is_there_in_no_amount() -> None:
    state = ClusterState()
    row = state.add_node(make_node("a"))
    assert state.allocatable("example.com/gadget")[row] == 0
    assert state.used("example.com/widget")[row] == 0
