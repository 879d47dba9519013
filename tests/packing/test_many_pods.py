"""Many pods at once are the same as one after the other, and cost next to nothing more to take back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.packing import ClusterState, PackingError, PodClass
from tests.builders import JsonObject
from tests.packing.objects import affinity_term, make_node, make_pod, pod_anti_affinity

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "a"}},
}
PODS = [
    make_pod("plain", requests={"cpu": "500m"}, labels={"app": "a"}),
    make_pod("ports", ports=[{"containerPort": 80, "hostPort": 80}], labels={"app": "b"}),
    make_pod("apart", labels={"app": "a"}, affinity=pod_anti_affinity(affinity_term("a", "kubernetes.io/hostname"))),
    make_pod("spread", labels={"app": "a"}, requests={"example.com/gpu": "1"}, topologySpreadConstraints=[SPREAD]),
]


def new_state() -> ClusterState:
    state = ClusterState()
    for i in range(4):
        state.add_node(make_node(f"n{i}", {"zone": f"z{i % 2}"}, pods="20", **{"example.com/gpu": "3"}))
    return state


def same(left: ClusterState, right: ClusterState) -> bool:
    """Whether two states give the same answers; the first one from what it remembers, and from scratch."""
    for pod in PODS:
        ours, theirs = left.class_of(pod), right.class_of(pod)
        if not np.array_equal(left.feasible(ours), right.feasible(theirs)):
            return False
        if not np.array_equal(left.recompute(ours), right.recompute(theirs)):
            return False
    columns = left.nodes.resource_columns
    return columns == right.nodes.resource_columns and all(
        np.array_equal(ours, theirs)
        for ours, theirs in (
            (left.nodes.used, right.nodes.used),
            (left.nodes.used_nonzero, right.nodes.used_nonzero),
        )
    )


def classes(state: ClusterState) -> list[PodClass]:
    return state.classify(PODS)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)), max_size=8))
def test_placing_many_is_placing_one_after_the_other(placements: list[tuple[int, int, int]]) -> None:
    many, single, untouched = new_state(), new_state(), new_state()
    of_many, of_single = classes(many), classes(single)
    classes(untouched)
    many.fork()
    for which, row, count in placements:
        many.place_many(of_many[which], row, count)
        for _ in range(count):
            single.place(of_single[which], row)
    assert same(many, single)
    many.rollback()
    assert same(many, untouched)
    assert not many.pods


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 3), min_size=1, max_size=6)), max_size=5))
def test_assuming_many_pods_is_assuming_one_after_the_other(batches: list[tuple[int, list[int]]]) -> None:
    many, single, untouched = new_state(), new_state(), new_state()
    of_many = classes(many)
    classes(single), classes(untouched)
    many.fork()
    for number, (which, rows) in enumerate(batches):
        pods = [_named(PODS[which], f"p{number}-{i}") for i in range(len(rows))]
        many.assume_pods(of_many[which], rows, pods, [f"default/{pod['metadata']['name']}" for pod in pods])
        for pod, row in zip(pods, rows, strict=True):
            single.assume_pod(pod, row)
    assert same(many, single)
    for row in range(4):
        assert [p.pod for p in many.pods_on(row)] == [p.pod for p in single.pods_on(row)]
    many.rollback()
    assert same(many, untouched)
    assert not many.pods


def _named(pod: JsonObject, name: str) -> JsonObject:
    return {**pod, "metadata": {**pod["metadata"], "name": name}}


def test_many_pods_are_removed_by_one_key() -> None:
    state = new_state()
    key = state.place_many(classes(state)[0], 1, 5)
    assert state.free(1)["cpu"] == 1500
    state.remove_pod(key)
    assert state.free(1)["cpu"] == 4000


def test_one_of_many_assumed_pods_may_leave_alone() -> None:
    state = new_state()
    cls = classes(state)[0]
    pods = [_named(PODS[0], f"p{i}") for i in range(3)]
    state.fork()
    state.assume_pods(cls, [0, 0, 1], pods, ["a", "b", "c"])
    state.remove_pod("b")
    assert [placed.pod for placed in state.pods_on(0)] == [pods[0]]
    state.rollback()
    assert same(state, new_state()) and not state.pods


def test_reserved_numbers_tell_who_came_first() -> None:
    state = new_state()
    plain, ports, *_ = classes(state)
    first = state.reserve_numbers(2)
    state.assume_pods(ports, [0], [PODS[1]], ["second"], [first + 1])
    state.assume_pods(plain, [0], [PODS[0]], ["first"], [first])
    assert [placed.key for placed in state.pods_on(0)] == ["first", "second"]


def test_pods_come_back_with_their_node() -> None:
    state = new_state()
    state.assume_pods(classes(state)[0], [2, 2], [PODS[0], PODS[0]], ["a", "b"])
    state.place_many(classes(state)[0], 2, 3)
    state.remove_node("n2")
    row = state.add_node(make_node("n2"))
    assert state.free(row)["cpu"] == 1500


def test_wrong_counts_and_keys_are_refused() -> None:
    state = new_state()
    cls = classes(state)[0]
    with pytest.raises(PackingError, match="cannot place 0 pods"):
        state.place_many(cls, 0, 0)
    with pytest.raises(PackingError, match="two pods of the same key"):
        state.assume_pods(cls, [0, 0], [PODS[0], PODS[0]], ["a", "a"])
    with pytest.raises(PackingError, match="row 9 has no node"):
        state.assume_pods(cls, [9], [PODS[0]], ["a"])
    assert not state.pods
