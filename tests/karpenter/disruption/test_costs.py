from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.karpenter.disruption import costs
from tests.karpenter.disruption.objects import MEDIUM, daemon, pod

OWN, DELETION = "karpenter.sh/disruption-cost", "controller.kubernetes.io/pod-deletion-cost"


def test_an_ordinary_pod_costs_one() -> None:
    assert costs.eviction_cost(pod("a")) == 1.0


def test_annotation_and_priority_change_the_cost() -> None:
    assert costs.eviction_cost(pod("a", annotations={OWN: str(2**27)})) == 2.0
    assert costs.eviction_cost(pod("a", annotations={OWN: str(-(2**28))})) == -1.0
    assert costs.eviction_cost(pod("a", priority=2**26)) == 3.0


def test_the_deletion_cost_counts_only_without_the_other_and_only_where_users_write_it() -> None:
    assert costs.eviction_cost(pod("a", annotations={DELETION: str(2**27)})) == 2.0
    assert costs.eviction_cost(pod("a", annotations={DELETION: str(2**27), OWN: "0"})) == 1.0
    assert costs.eviction_cost(pod("a", annotations={DELETION: str(2**27)}), reads_deletion_cost=False) == 1.0


@pytest.mark.parametrize("text", ["", "many", "1.5", str(2**31), str(-(2**31) - 1)])
def test_what_is_no_32_bit_number_changes_nothing(text: str) -> None:
    assert costs.eviction_cost(pod("a", annotations={OWN: text})) == 1.0


def test_costs_stay_between_minus_ten_and_ten() -> None:
    assert costs.eviction_cost(pod("a", priority=2_000_000_000)) == 10.0
    assert costs.eviction_cost(pod("a", priority=-2_000_000_000)) == -10.0


def test_a_cheap_pod_does_not_make_its_node_cheaper_to_remove() -> None:
    cheap = pod("a", priority=-2_000_000_000)
    assert costs.reschedule_cost([cheap]) == 1.0
    assert costs.reschedule_cost([pod("b"), cheap]) == 2.0


def test_daemons_and_ended_pods_do_not_count_for_a_node_that_is_no_candidate() -> None:
    assert costs.node_cost([pod("a"), daemon("b"), pod("c", phase="Succeeded"), pod("d")]) == 3.0


@given(
    expire_after_s=st.floats(1, 1e7), age_s=st.floats(0, 2e7), created_s=st.floats(0, 1e9)
)
def test_the_remaining_share_of_a_life_falls_from_one_to_zero(
    expire_after_s: float, age_s: float, created_s: float
) -> None:
    share = costs.lifetime_remaining(created_s, expire_after_s, created_s + age_s)
    assert 0.0 <= share <= 1.0
    assert share >= costs.lifetime_remaining(created_s, expire_after_s, created_s + age_s + 10)


def test_a_node_that_never_expires_keeps_its_whole_life() -> None:
    assert costs.lifetime_remaining(0.0, None, 1e9) == 1.0
    assert costs.lifetime_remaining(0.0, 100.0, 25.0) == 0.75
    assert costs.lifetime_remaining(0.0, 0.0, 0.0) == 0.0


def test_the_price_is_that_of_the_place_and_zero_if_unknown() -> None:
    assert costs.offering_price(MEDIUM, "a", "on-demand") == 0.2
    assert costs.offering_price(MEDIUM, "z", "on-demand") == 0.0
    assert costs.offering_price(MEDIUM, "a", "spot") == 0.0
    assert costs.offering_price(None, "a", "on-demand") == 0.0
