from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.disruption.memory import Mark, Memory
from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
from holokube.karpenter.disruption.types import Decision, Outcome
from holokube.kube.requirements import Requirement
from tests.karpenter.disruption.objects import (
    LARGE,
    MEDIUM,
    SMALL,
    ToldSimulator,
    everything_fits,
    fits_with,
    instance_type,
    node,
    nothing_fits,
    planned,
    pod,
    pool,
    view,
)

ON_DEMAND = Requirement.new("karpenter.sh/capacity-type", "In", ("on-demand",))
NO_MEMORY = Memory()


def row(count: int, **spec: Any) -> list[Any]:
    return [node(f"n{i:03}", pods=(pod(f"p{i}"),), **spec) for i in range(count)]


def up_to(limit: int) -> Callable[[tuple[str, ...]], Any]:
    return lambda gone: everything_fits() if len(gone) <= limit else nothing_fits(pod("x"))


def compute(nodes: list[Any], answer: Any, memory: Memory = NO_MEMORY, **more: Any) -> tuple[Outcome, ToldSimulator]:
    simulator = ToldSimulator(answer)
    return MultiNodeConsolidation().compute(view(nodes, simulator=simulator, **more), memory), simulator


@settings(deadline=None)
@given(count=st.integers(2, 130), limit=st.integers(0, 130))
def test_the_longest_row_that_can_go_is_found(count: int, limit: int) -> None:
    outcome, _ = compute(row(count), up_to(limit))
    expected = min(count, limit, 101)
    found = len(outcome.command.candidates) if outcome.command else 0
    assert found == (expected if expected >= 2 else 0)


def test_at_most_a_hundred_and_one_nodes_go_at_once() -> None:
    outcome, simulator = compute(row(150), everything_fits())
    assert outcome.command is not None
    assert len(outcome.command.candidates) == 101
    assert [len(gone) for gone, _, _ in simulator.asked] == [51, 76, 89, 95, 98, 100, 101]


def test_all_of_a_hundred_can_go() -> None:
    outcome, _ = compute(row(100), everything_fits())
    assert outcome.command is not None
    assert len(outcome.command.candidates) == 100


def test_the_best_candidates_are_in_the_row() -> None:
    nodes = [*row(3, type="small"), node("big", type="large", pods=(pod("b"),))]
    outcome, _ = compute(nodes, up_to(2))
    assert outcome.command is not None
    assert outcome.command.names == ("big", "n000")


def test_a_single_node_is_left_to_others() -> None:
    outcome, simulator = compute(row(1), everything_fits())
    assert outcome.command is None
    assert simulator.asked == []


def test_budgets_are_counted_before_the_search() -> None:
    pools = [pool("x", budgets=[{"nodes": "2"}]), pool("y", budgets=[{"nodes": "1"}])]
    nodes = [*(node(f"x{i}", pool="x", pods=(pod(f"p{i}"),)) for i in range(5)), node("y0", pool="y", pods=(pod("q"),))]
    outcome, _ = compute(nodes, everything_fits(), pools=pools)
    assert outcome.command is not None
    assert sorted(outcome.command.names) == ["x0", "x1", "y0"]


def test_the_method_settles_when_nothing_can_be_done() -> None:
    mark = Mark(5.0, 2)
    outcome, _ = compute(row(3), nothing_fits(pod("x")), mark=mark)
    assert outcome.command is None
    assert outcome.memory.is_settled(mark)
    again, simulator = compute(row(3), everything_fits(), outcome.memory, mark=mark)
    assert again.command is None
    assert simulator.asked == []
    changed, _ = compute(row(3), everything_fits(), outcome.memory, mark=Mark(6.0, 3))
    assert changed.command is not None


def test_the_method_does_not_settle_when_a_budget_held_something_back() -> None:
    mark = Mark(5.0, 2)
    held = pool(budgets=[{"nodes": "2"}])
    outcome, _ = compute(row(3), nothing_fits(pod("x")), pools=[held], mark=mark)
    assert not outcome.memory.is_settled(mark)


def test_the_method_keeps_its_memory_when_it_has_no_candidates() -> None:
    mark = Mark(5.0, 2)
    outcome, _ = compute([], everything_fits(), mark=mark)
    assert not outcome.memory.is_settled(mark)


def test_a_replacement_of_a_type_that_goes_must_be_cheaper_than_the_cheapest_of_them() -> None:
    # Two large nodes and a small one for one small one: deleting the two large ones would do the same.
    nodes = [*row(2, type="large"), node("s", type="small", pods=(pod("s"),))]

    def answer(gone: tuple[str, ...]) -> Any:
        if len(gone) < 3:
            return nothing_fits(pod("x"))
        return fits_with(planned(pool(), (SMALL, MEDIUM, LARGE), ON_DEMAND))

    outcome, _ = compute(nodes, answer)
    assert outcome.command is None


def test_a_type_below_the_cheapest_removed_one_stays() -> None:
    nano = instance_type("nano", 0.05, cpu=1)
    nodes = [*row(2, type="large"), node("s", type="small", pods=(pod("s"),))]
    claim = planned(pool(), (nano, SMALL, MEDIUM, LARGE), ON_DEMAND)
    outcome, _ = compute(nodes, fits_with(claim), types=(nano, SMALL, MEDIUM, LARGE))
    assert outcome.command is not None
    assert outcome.command.decision is Decision.REPLACE
    assert [one.name for one in outcome.command.replacements[0].instance_types] == ["nano"]
    assert outcome.command.savings == pytest.approx(0.85)


def test_min_values_must_hold_without_the_removed_types() -> None:
    flexible = pool(
        requirements=[{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}]
    )
    nodes = [*row(2, type="large"), node("s", type="small", pods=(pod("s"),))]
    types = (instance_type("nano", 0.05, cpu=1), instance_type("micro", 0.07, cpu=1), SMALL, MEDIUM, LARGE)

    def compute_with(*offered: Any) -> list[str]:
        answer = fits_with(planned(flexible, offered, ON_DEMAND))
        outcome, _ = compute(nodes, answer, pools=[flexible], types=types)
        assert outcome.command is not None
        return [*outcome.command.names, *(one.name for one in outcome.command.replacements[0].instance_types)]

    assert compute_with(*types[:3]) == ["n000", "n001", "s", "nano", "micro"]
    assert compute_with(types[0], SMALL) == ["n000", "n001", "nano", "small"]


def test_a_removed_type_that_is_not_offered_like_its_node_counts_as_free() -> None:
    nodes = [*row(2, type="large"), node("s", zone="elsewhere", pods=(pod("s"),))]

    same, _ = compute(nodes, fits_with(planned(pool(), (SMALL, MEDIUM), ON_DEMAND)))
    assert same.command is not None
    assert same.command.names == ("n000", "n001")
    other, _ = compute(nodes, fits_with(planned(pool(), (SMALL,), ON_DEMAND)))
    assert other.command is not None
    assert other.command.names == ("n000", "n001", "s")


def test_types_that_are_not_removed_are_only_compared_with_the_sum() -> None:
    outcome, _ = compute(row(4, type="medium"), fits_with(planned(pool(), (LARGE,), ON_DEMAND)))
    assert outcome.command is not None
    assert [one.name for one in outcome.command.replacements[0].instance_types] == ["large"]
    assert {notice.kind for notice in outcome.notices} == {"ConsolidationCandidate"}


def test_what_was_found_before_time_ran_out_counts() -> None:
    ticks = iter([0.0, 10.0, 61.0, 70.0])
    outcome, simulator = compute(row(20), everything_fits(), elapsed_s=lambda: next(ticks))
    assert outcome.timed_out
    assert outcome.command is not None
    assert len(outcome.command.candidates) == len(simulator.asked[0][0]) == 11


def test_a_balanced_pool_must_approve_the_move() -> None:
    # Savings of a tenth of the pool's cost for nine tenths of its pods are not worth it.
    nodes = [node(f"b{i}", type="small", pods=tuple(pod(f"b{i}{j}") for j in range(9))) for i in range(2)]
    outcome, _ = compute(nodes, everything_fits(), pools=[pool(policy="Balanced")], pool_costs={"default": 2.0})
    assert outcome.command is None
    outcome, _ = compute(nodes, everything_fits(), pools=[pool(policy="Balanced")])
    assert outcome.command is not None
    assert outcome.command.scores["default"].value == 1.0
    assert [(one.kind, one.pool is not None) for one in outcome.notices] == [("ConsolidationApproved", True)]
