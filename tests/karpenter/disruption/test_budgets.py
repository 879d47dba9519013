from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.disruption.budgets import BudgetBook, PoolCount, budget_notices, budgets_of, count_nodes
from holokube.karpenter.disruption.types import Reason
from holokube.karpenter.scheduling.state_node import StateNode
from tests.karpenter.disruption.objects import NOW_S, node, pool, view


def left(budgets: list[dict[str, Any]], nodes: int, reason: Reason = Reason.EMPTY) -> int:
    cluster = view([node(f"n{i}") for i in range(nodes)], pools=[pool(budgets=budgets)])
    return cluster.budget_left(reason)["default"]


def test_a_share_is_rounded_up() -> None:
    assert left([{"nodes": "10%"}], 1) == 1
    assert left([{"nodes": "10%"}], 11) == 2
    assert left([{"nodes": "0%"}], 11) == 0


def test_the_strictest_budget_counts_and_only_for_its_reasons() -> None:
    budgets: list[dict[str, Any]] = [
        {"nodes": "5"}, {"nodes": "2", "reasons": ["Empty"]}, {"nodes": "1", "reasons": ["Drifted"]},
    ]  # fmt: skip
    assert left(budgets, 10, Reason.EMPTY) == 2
    assert left(budgets, 10, Reason.DRIFTED) == 1
    assert left(budgets, 10, Reason.UNDERUTILIZED) == 5


@pytest.mark.parametrize(
    ("schedule", "duration", "expected"),
    [("0 0 * * *", "1h", 0), ("0 22 * * *", "2h1m", 0), ("0 22 * * *", "2h", 10), ("30 0 * * *", "1h", 10)],
)
def test_a_budget_with_a_schedule_counts_within_its_window(schedule: str, duration: str, expected: int) -> None:
    budgets = [{"nodes": "10"}, {"nodes": "0", "schedule": schedule, "duration": duration}]
    assert left(budgets, 10) == expected


def test_a_schedule_that_cannot_be_read_allows_nothing() -> None:
    assert left([{"nodes": "10"}, {"nodes": "5", "schedule": "every day", "duration": "1h"}], 10) == 0


@pytest.mark.parametrize(
    ("spec", "total", "disrupting"),
    [
        ({}, 1, 0),
        ({"marked": True}, 1, 1),
        ({"claim_deleted": True}, 1, 1),
        ({"ready": False}, 1, 1),
        ({"ready": False, "marked": True}, 1, 1),
        ({"initialized": False}, 0, 0),
        ({"initialized": False, "conditions": ("Rebooting",)}, 1, 1),
        ({"conditions": ("InstanceTerminating",)}, 0, 0),
    ],
)
def test_nodes_count_as_they_are(spec: dict[str, Any], total: int, disrupting: int) -> None:
    counts = count_nodes([node("n", **spec)])
    count = counts.get("default")
    assert (count.total, count.disrupting) == (total, disrupting) if count else (total, disrupting) == (0, 0)


def test_nodes_of_others_do_not_count() -> None:
    assert count_nodes([StateNode(node("n").node)]) == {}


def test_what_is_being_disrupted_uses_up_the_budget_but_never_below_zero() -> None:
    busy = [node("a", marked=True), node("b", ready=False), node("c")]
    assert view(busy, pools=[pool(budgets=[{"nodes": "2"}])]).budget_left(Reason.EMPTY) == {"default": 0}
    assert view(busy, pools=[pool(budgets=[{"nodes": "1"}])]).budget_left(Reason.EMPTY) == {"default": 0}
    assert view(busy, pools=[pool(budgets=[{"nodes": "3"}])]).budget_left(Reason.EMPTY) == {"default": 1}


def test_pools_do_not_share_their_budgets() -> None:
    pools = [pool("x", budgets=[{"nodes": "1"}]), pool("y", budgets=[{"nodes": "2"}])]
    nodes = [node("a", pool="x", marked=True), node("b", pool="y")]
    assert view(nodes, pools=pools).budget_left(Reason.EMPTY) == {"x": 0, "y": 2}


def test_a_pool_that_lets_no_node_go_is_told() -> None:
    closed, empty = pool("closed", budgets=[{"nodes": "0"}]), pool("empty", budgets=[{"nodes": "0"}])
    cluster = view([node("a", pool="closed")], pools=[closed, empty])
    [notice] = budget_notices(cluster.pools, cluster.budgets(Reason.EMPTY), Reason.EMPTY)
    assert notice.pool is closed
    assert "reason Empty" in notice.message


def test_what_pools_allow_is_kept_while_pools_and_counts_are_the_same() -> None:
    book, reason = BudgetBook(), Reason.EMPTY
    pools, counts = {"default": pool(budgets=[{"nodes": "10%"}])}, {"default": PoolCount(10, 1)}
    first = book.budgets(pools, counts, NOW_S, reason)
    assert first == budgets_of(pools, counts, NOW_S, reason)
    assert book.budgets(dict(pools), dict(counts), NOW_S + 1, reason) is first
    more = {"default": PoolCount(20, 1)}
    assert book.budgets(pools, more, NOW_S, reason) == budgets_of(pools, more, NOW_S, reason) != first
    assert book.budgets(pools, more, NOW_S, Reason.DRIFTED) == budgets_of(pools, more, NOW_S, Reason.DRIFTED)
    other = {"default": pool(budgets=[{"nodes": "3"}])}
    assert book.budgets(other, more, NOW_S, reason)["default"].allowed == 3


def test_what_pools_allow_by_the_clock_is_not_kept() -> None:
    book, counts = BudgetBook(), {"default": PoolCount(10, 0)}
    pools = {"default": pool(budgets=[{"nodes": "0", "schedule": "0 22 * * *", "duration": "2h1m"}])}
    for now_s in (NOW_S, NOW_S + 60, NOW_S + 86_400):
        assert book.budgets(pools, counts, now_s, Reason.EMPTY) == budgets_of(pools, counts, now_s, Reason.EMPTY)
    allowed = {book.budgets(pools, counts, NOW_S + after_s, Reason.EMPTY)["default"].allowed for after_s in (0, 120)}
    assert len(allowed) == 2, "the window ends in between"
