from __future__ import annotations

from typing import Any

from holokube.karpenter.disruption.memory import Mark, Memory
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation, in_turns
from holokube.karpenter.disruption.types import Decision, DisruptionClass, Outcome
from holokube.kube.requirements import Requirement
from tests.karpenter.disruption.objects import (
    MEDIUM,
    SMALL,
    ToldSimulator,
    everything_fits,
    fits_with,
    node,
    nothing_fits,
    planned,
    pod,
    pool,
    view,
)

ON_DEMAND = Requirement.new("karpenter.sh/capacity-type", "In", ("on-demand",))
NO_MEMORY = Memory()


def compute(nodes: list[Any], answer: Any, memory: Memory = NO_MEMORY, **more: Any) -> tuple[Outcome, ToldSimulator]:
    simulator = ToldSimulator(answer)
    return SingleNodeConsolidation().compute(view(nodes, simulator=simulator, **more), memory), simulator


def only(name: str) -> Any:
    return lambda gone: everything_fits() if gone == (name,) else nothing_fits(pod("x"))


def test_the_first_that_can_go_goes() -> None:
    nodes = [node(f"n{i}", pods=(pod(f"p{i}"),)) for i in range(5)]
    outcome, simulator = compute(nodes, only("n3"))
    assert outcome.command is not None
    assert outcome.command.names == ("n3",)
    assert [gone for gone, _, _ in simulator.asked] == [("n0",), ("n1",), ("n2",), ("n3",)]
    assert [notice.kind for notice in outcome.notices] == ["Unconsolidatable"] * 3


def test_a_node_is_replaced_by_a_cheaper_one() -> None:
    outcome, _ = compute([node("n", pods=(pod("a"),))], fits_with(planned(pool(), (MEDIUM, SMALL), ON_DEMAND)))
    assert outcome.command is not None
    assert outcome.command.decision is Decision.REPLACE
    assert [one.name for one in outcome.command.replacements[0].instance_types] == ["small"]
    assert outcome.command.savings == 0.1


def test_pools_take_turns_and_those_not_reached_before_come_first() -> None:
    pools = [pool("a"), pool("b"), pool("c")]
    nodes = [node(f"{name}{i}", pool=name, pods=(pod(f"{name}{i}"),)) for name in "abc" for i in range(2)]
    candidates = view(nodes, pools=pools).scan(DisruptionClass.GRACEFUL).candidates
    assert [one.name for one in in_turns(candidates)] == ["a0", "b0", "c0", "a1", "b1", "c1"]
    assert [one.name for one in in_turns(candidates, ("c", "gone"))] == ["c0", "a0", "b0", "c1", "a1", "b1"]


def test_pools_that_time_did_not_reach_are_remembered() -> None:
    pools = [pool("a"), pool("b")]
    nodes = [node(f"{name}{i}", pool=name, pods=(pod(f"{name}{i}"),)) for name in "ab" for i in range(2)]
    ticks = iter([0.0, 0.0, 181.0])
    mark = Mark(3.0, 1)
    outcome, _ = compute(nodes, nothing_fits(pod("x")), pools=pools, elapsed_s=lambda: next(ticks), mark=mark)
    assert outcome.timed_out
    assert outcome.memory.unreached_pools == ("b",)
    assert not outcome.memory.is_settled(mark)
    outcome, simulator = compute(nodes, nothing_fits(pod("x")), outcome.memory, pools=pools, mark=mark)
    assert simulator.asked[0][0] == ("b0",)
    assert outcome.memory.unreached_pools == ()
    assert outcome.memory.is_settled(mark)


def test_a_pool_without_budget_is_passed_over_and_keeps_the_method_unsettled() -> None:
    pools = [pool("a", budgets=[{"nodes": "0"}]), pool("b")]
    nodes = [node(f"{name}0", pool=name, pods=(pod(f"{name}0"),)) for name in "ab"]
    mark = Mark(3.0, 1)
    outcome, simulator = compute(nodes, nothing_fits(pod("x")), pools=pools, mark=mark)
    assert [gone for gone, _, _ in simulator.asked] == [("b0",)]
    assert not outcome.memory.is_settled(mark)


def test_a_balanced_pool_does_not_even_look_at_what_cannot_pass() -> None:
    nodes = [node("n", pods=tuple(pod(f"p{i}") for i in range(9)))]
    outcome, simulator = compute(
        nodes, everything_fits(), pools=[pool(policy="Balanced")], pool_costs={"default": 10.0}
    )
    assert outcome.command is None
    assert simulator.asked == []


def test_a_balanced_pool_turns_down_a_replacement_that_saves_too_little() -> None:
    # Half the price of one of two equal nodes, for half of all pods: exactly enough. With dearer types it is not.
    nodes = [node(f"n{i}", pods=(pod(f"p{i}"),)) for i in range(2)]
    owner = pool(policy="Balanced")
    outcome, _ = compute(nodes, fits_with(planned(owner, (SMALL,), ON_DEMAND)), pools=[owner])
    assert outcome.command is not None
    assert outcome.command.scores["default"].value == 0.5
    outcome, _ = compute(
        nodes, fits_with(planned(owner, (SMALL,), ON_DEMAND)), pools=[owner], pool_costs={"default": 0.41}
    )
    assert outcome.command is None
