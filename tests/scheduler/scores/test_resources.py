"""Scores by how full nodes are."""

from __future__ import annotations

from holokube.scheduler.scores import ScoreProfile
from tests.packing.filters.tables import state_of
from tests.packing.objects import make_node, make_pod
from tests.scheduler.scores.questions import points

FIT = "NodeResourcesFit"
BALANCE = "NodeResourcesBalancedAllocation"


def test_the_emptier_node_is_better() -> None:
    there = make_pod("p", requests={"cpu": "2", "memory": "4Gi"}, node="a")
    state = state_of(make_node("a"), make_node("b"), pods=(there,))
    pod = make_pod(requests={"cpu": "1", "memory": "2Gi"})
    # a: (4-3)/4 of cpu and (8-6)/8 of memory are left.
    assert points(state, pod, FIT) == {"a": 25, "b": 75}


def test_shares_are_rounded_down_before_they_are_averaged() -> None:
    state = state_of(make_node("a", cpu="3", memory="7"))
    pod = make_pod(requests={"cpu": "1", "memory": "1"})
    assert points(state, pod, FIT) == {"a": (66 + 85) // 2}


def test_containers_without_requests_are_assumed_to_need_a_little() -> None:
    state = state_of(make_node("a", cpu="1", memory="2000Mi"))
    assert points(state, make_pod(), FIT) == {"a": 90}


def test_a_node_that_takes_more_than_it_has_gets_nothing_for_it() -> None:
    there = make_pod("p", requests={"cpu": "6", "memory": "4Gi"}, node="a")
    state = state_of(make_node("a"), pods=(there,))
    assert points(state, make_pod(requests={"cpu": "1", "memory": "4Gi"}), FIT) == {"a": 0}


def test_a_resource_that_a_node_lacks_is_left_out_of_the_mean() -> None:
    state = state_of(make_node("a", memory="0"))
    assert points(state, make_pod(requests={"cpu": "1"}), FIT) == {"a": 75}


def test_requests_of_the_pod_as_a_whole_count_only_once_it_is_there() -> None:
    state = state_of(make_node("a", cpu="10", memory="2000Mi"))
    pod = make_pod(resources={"requests": {"cpu": "4", "memory": "1000Mi"}})
    before = points(state, pod, FIT)
    assert before == {"a": (99 + 90) // 2}
    state.assume_pod(pod, state.node_names["a"])
    # Now 4.1 of 10 cpu and 1200 of 2000 MiB.
    assert points(state, make_pod("other"), FIT) == {"a": (59 + 40) // 2}


def test_extended_resources_count_if_the_profile_says_so() -> None:
    gpu = {"example.com/gpu": "4"}
    state = state_of(make_node("a", **gpu), make_node("b"))
    profile = ScoreProfile(fit_resources=(("example.com/gpu", 1),))
    pod = make_pod(requests={"example.com/gpu": "1"})
    assert points(state, pod, FIT, profile) == {"a": 75, "b": 0}
    assert points(state, make_pod(), FIT, profile) == {"a": 0, "b": 0}


def test_the_fuller_node_is_better_if_the_profile_packs() -> None:
    there = make_pod("p", requests={"cpu": "2", "memory": "4Gi"}, node="a")
    state = state_of(make_node("a"), make_node("b"), make_node("c", memory="0"), pods=(there,))
    pod = make_pod(requests={"cpu": "1", "memory": "2Gi"})
    assert points(state, pod, FIT, ScoreProfile(fit_strategy="MostAllocated")) == {"a": 75, "b": 25, "c": 25}


def test_a_node_cannot_be_fuller_than_full() -> None:
    there = make_pod("p", requests={"cpu": "6", "memory": "4Gi"}, node="a")
    state = state_of(make_node("a"), pods=(there,))
    pod = make_pod(requests={"cpu": "1", "memory": "2Gi"})
    assert points(state, pod, FIT, ScoreProfile(fit_strategy="MostAllocated")) == {"a": (100 + 75) // 2}


def test_evening_out_is_good_and_tilting_is_bad() -> None:
    there = (
        make_pod("p1", requests={"cpu": "2"}, node="a"),
        make_pod("p2", requests={"memory": "4Gi"}, node="b"),
    )
    state = state_of(make_node("a"), make_node("b"), make_node("c"), pods=there)
    pod = make_pod(requests={"memory": "4Gi"})
    # a goes from a deviation of 0.25 to none, c the other way, and so does b from 0.25 to 0.5.
    assert points(state, pod, BALANCE) == {"a": 87, "b": 62, "c": 62}


def test_pods_without_requests_have_no_opinion_on_balance() -> None:
    assert points(state_of(make_node("a")), make_pod(), BALANCE) is None


def test_three_resources_are_balanced_by_their_standard_deviation() -> None:
    state = state_of(make_node("a", **{"example.com/gpu": "4"}))
    profile = ScoreProfile(balanced_resources=("cpu", "memory", "example.com/gpu"))
    pod = make_pod(requests={"cpu": "4", "example.com/gpu": "4"})
    # Fractions 1, 0, 1: the deviation is the root of 2/9, so 52 instead of 100.
    assert points(state, pod, BALANCE, profile) == {"a": 50 + (50 + 52 - 100) // 2}
