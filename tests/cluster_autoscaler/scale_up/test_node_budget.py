"""How many nodes an estimate may use."""

from __future__ import annotations

import pytest

from holokube.cluster_autoscaler.scale_up.node_budget import NodeBudget, node_limit
from tests.cluster_autoscaler.scale_up.objects import group


@pytest.mark.parametrize(
    ("per_scale_up", "total", "current", "limit"),
    [
        (1000, 0, 0, 7), (5, 0, 0, 5), (0, 0, 0, 7), (1000, 10, 6, 4), (1000, 6, 6, -1), (1000, 5, 6, -1),
        (-1, 0, 0, -1), (1000, -3, 0, -1),
    ],
)
def test_the_strictest_limit_holds(per_scale_up: int, total: int, current: int, limit: int) -> None:
    mine = group("a", target=3, most=10)
    assert node_limit(mine, [], per_scale_up=per_scale_up, nodes_total=total, current_nodes=current) == limit


def test_similar_groups_add_their_room() -> None:
    others = [group("b", target=2, most=4), group("c", target=9, most=4)]
    found = node_limit(group("a", target=9), others, per_scale_up=0, nodes_total=0, current_nodes=0)
    assert found == 3


def test_groups_without_room_allow_nothing() -> None:
    full = group("a", target=10, most=10)
    assert node_limit(full, [], per_scale_up=1000, nodes_total=0, current_nodes=0) == -1


def test_a_budget_is_used_up() -> None:
    budget = NodeBudget(5)
    assert [budget.take(), budget.take(3), budget.take(3), budget.take()] == [1, 3, 1, 0]
    assert budget.refusal == "limited to 5 nodes"


def test_a_budget_without_limit_never_ends() -> None:
    assert NodeBudget(0).take(10**6) == 10**6


def test_time_runs_out_once_it_has_passed() -> None:
    now = [100.0]
    budget = NodeBudget(0, duration_s=10, clock_s=lambda: now[0])
    now[0] = 110.0
    assert budget.take() == 1
    now[0] = 110.1
    assert budget.take() == 0
    assert budget.refusal == "estimate took longer than 10s"
