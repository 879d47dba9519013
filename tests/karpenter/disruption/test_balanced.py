from __future__ import annotations

import math

import pytest

from holokube.karpenter.disruption import balanced
from holokube.karpenter.disruption.balanced import PoolTotals
from holokube.karpenter.disruption.types import Candidate, DisruptionClass, Score
from holokube.karpenter.scheduling.state_node import StateNode
from tests.karpenter.disruption.objects import daemon, node, pod, pool, view

BALANCED = pool(policy="Balanced")


def candidates(*nodes: StateNode, **more: object) -> list[Candidate]:
    pools = more.pop("pools", [BALANCED])
    return list(view(nodes, pools=pools, **more).scan(DisruptionClass.GRACEFUL).candidates)  # type: ignore[arg-type] # a test's keywords


def test_a_score_is_the_share_saved_for_the_share_disturbed() -> None:
    score = balanced.score_move(1.0, 2.0, PoolTotals(10.0, 10.0))
    assert score.value == 0.5
    assert score.is_approved
    assert not balanced.score_move(0.99, 2.0, PoolTotals(10.0, 10.0)).is_approved


@pytest.mark.parametrize("savings", [0.0, -1.0])
def test_a_move_that_saves_nothing_scores_nothing(savings: float) -> None:
    assert balanced.score_move(savings, 0.0, PoolTotals(10.0, 10.0)).value == 0.0


def test_a_move_that_disturbs_nothing_scores_without_end() -> None:
    assert math.isinf(Score(0.1, 0.0).value)


def test_without_totals_there_is_nothing_to_score() -> None:
    assert not balanced.score_move(1.0, 1.0, PoolTotals(0.0, 10.0)).is_approved


def test_totals_count_nodes_that_are_no_candidates() -> None:
    nodes = [
        node("a", pods=(pod("a1"), pod("a2"))),
        node("b", pods=(pod("b1"), daemon("b2"), pod("b3", phase="Failed")), marked=True),
        node("c", pool="other"),
    ]
    cluster = view(nodes, pools=[BALANCED])
    assert cluster.totals == {"default": PoolTotals(0.4, 5.0)}


def test_the_books_outrank_what_the_nodes_say() -> None:
    nodes = [node("a", pods=(pod("a1"),)), node("b", marked=True)]
    booked = view(nodes, pools=[BALANCED], pool_costs={"default": 3.5})
    assert booked.totals == {"default": PoolTotals(3.5, 3.0)}
    unbooked = view(nodes, pools=[BALANCED], pool_costs={})
    assert unbooked.totals == {"default": PoolTotals(0.2, 3.0)}


def test_a_node_without_a_known_price_adds_nothing_to_the_cost_of_its_pool() -> None:
    nodes = [node("a", pods=(pod("a1"),)), node("b", type="gone"), StateNode(node("c").node)]
    assert view(nodes, pools=[BALANCED]).totals == {"default": PoolTotals(0.2, 4.0)}


def test_savings_are_split_by_what_nodes_cost() -> None:
    other = pool("other", policy="Balanced")
    moved = candidates(
        node("a", pods=(pod("a1"),)), node("b", pool="other", type="large", pods=(pod("b1"),)), pools=[BALANCED, other]
    )
    totals = {"default": PoolTotals(1.0, 10.0), "other": PoolTotals(1.0, 10.0)}
    scores = balanced.scores_of(moved, 0.3, totals)
    assert scores["default"].savings_fraction == pytest.approx(0.1)
    assert scores["other"].savings_fraction == pytest.approx(0.2)
    assert scores["other"].disruption_fraction == 0.2


def test_only_balanced_pools_are_scored() -> None:
    moved = candidates(node("a", pods=(pod("a1"),)), pools=[pool()])
    assert balanced.scores_of(moved, 0.0, {}) == {}
    assert balanced.can_pass(moved[0], {"default": PoolTotals(100.0, 1.0)})


def test_a_candidate_whose_removal_would_not_pass_is_not_worth_a_look() -> None:
    [one] = candidates(node("a", pods=(pod("a1"),)))
    assert not balanced.can_pass(one, {"default": PoolTotals(100.0, 10.0)})
    assert balanced.can_pass(one, {"default": PoolTotals(1.0, 10.0)})
    assert balanced.can_pass(one, {})
    assert balanced.can_pass(one, {"default": PoolTotals(0.0, 10.0)})


def test_a_score_says_what_it_is_made_of() -> None:
    assert str(Score(0.2, 0.1)) == "score 2.00 >= threshold 0.50 (k: 2, savings 20.0%, disruption 10.0%)"
    assert "0.25 < threshold" in str(Score(0.1, 0.4))
