from __future__ import annotations

from typing import Any

from holokube.karpenter.disruption.drift import Drift
from holokube.karpenter.disruption.emptiness import Emptiness
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.multi_node import MultiNodeConsolidation
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
from holokube.karpenter.disruption.types import Command, Method
from holokube.karpenter.disruption.validation import Rejection, RejectionKind, validate
from holokube.kube.requirements import Requirement
from tests.karpenter.disruption.objects import (
    LARGE,
    MEDIUM,
    NOW_S,
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


def decided(method: Method, nodes: list[Any], answer: Any = None) -> Command:
    simulator = ToldSimulator(answer or everything_fits())
    command = method.compute(view(nodes, simulator=simulator), Memory()).command
    assert command is not None
    return command


def busy(count: int) -> list[Any]:
    return [node(f"n{i}", pods=(pod(f"p{i}"),)) for i in range(count)]


def test_nothing_has_changed() -> None:
    method = MultiNodeConsolidation()
    command = decided(method, busy(3))
    assert validate(command, method, view(busy(3))) is command


def test_a_candidate_that_is_none_any_more_spoils_the_command() -> None:
    method = MultiNodeConsolidation()
    command = decided(method, busy(3))
    nominated = [*busy(2), node("n2", pods=(pod("p2"),), nominated_until_s=NOW_S + 5)]
    found = validate(command, method, view(nominated))
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind.CHURN
    assert found.failed == 3
    assert [notice.kind for notice in found.notices(command)] == ["ConsolidationRejected"] * 3
    assert "reason: churn" in found.notices(command)[0].message


def test_a_node_that_became_empty_is_no_candidate_for_consolidation() -> None:
    method = SingleNodeConsolidation()
    found = validate(decided(method, busy(1)), method, view([node("n0")]))
    assert isinstance(found, Rejection) and found.kind is RejectionKind.CHURN


def test_a_budget_that_shrank_spoils_the_command() -> None:
    method = MultiNodeConsolidation()
    found = validate(decided(method, busy(3)), method, view(busy(3), pools=[pool(budgets=[{"nodes": "2"}])]))
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind.BUDGET


def test_pods_that_no_longer_fit_spoil_the_command() -> None:
    method = SingleNodeConsolidation()
    cluster = view(busy(1), simulator=ToldSimulator(nothing_fits(pod("p0"))))
    found = validate(decided(method, busy(1)), method, cluster)
    assert isinstance(found, Rejection)
    assert found.kind is RejectionKind.SCHEDULING


def test_a_removal_that_would_need_a_new_node_now_is_not_carried_out() -> None:
    method = SingleNodeConsolidation()
    cluster = view(busy(1), simulator=ToldSimulator(fits_with(planned(pool(), (SMALL,), ON_DEMAND))))
    assert isinstance(validate(decided(method, busy(1)), method, cluster), Rejection)


def test_a_replacement_that_is_not_needed_any_more_is_not_carried_out() -> None:
    method = SingleNodeConsolidation()
    command = decided(method, busy(1), fits_with(planned(pool(), (SMALL, MEDIUM), ON_DEMAND)))
    assert isinstance(validate(command, method, view(busy(1))), Rejection)


def test_a_replacement_stands_while_all_its_types_still_do() -> None:
    method = SingleNodeConsolidation()
    nodes = [node("n", type="large", pods=(pod("p"),))]
    command = decided(method, nodes, fits_with(planned(pool(), (SMALL, MEDIUM, LARGE), ON_DEMAND)))
    assert [one.name for one in command.replacements[0].instance_types] == ["small", "medium"]

    def now(*types: Any) -> Any:
        simulator = ToldSimulator(fits_with(planned(pool(), types, ON_DEMAND)))
        return validate(command, method, view(nodes, simulator=simulator))

    assert now(SMALL, MEDIUM) is command
    assert now(SMALL, MEDIUM, LARGE) is command
    assert isinstance(now(MEDIUM, LARGE), Rejection)
    assert isinstance(now(SMALL), Rejection)


def test_of_empty_nodes_those_that_still_can_go_do() -> None:
    method = Emptiness()
    command = decided(method, [node("a"), node("b"), node("c")])
    later = validate(command, method, view([node("a"), node("b", pods=(pod("p"),)), node("c")]))
    assert isinstance(later, Command)
    assert later.names == ("a", "c")
    assert later.savings == 0.4
    limited = validate(command, method, view([node("a"), node("b"), node("c")], pools=[pool(budgets=[{"nodes": "1"}])]))
    assert isinstance(limited, Command)
    assert limited.names == ("a",)


def test_when_no_empty_node_can_go_the_command_does_not_stand() -> None:
    method = Emptiness()
    command = decided(method, [node("a")])
    taken = validate(command, method, view([node("a", pods=(pod("p"),))]))
    assert isinstance(taken, Rejection) and taken.kind is RejectionKind.CHURN
    closed = validate(command, method, view([node("a")], pools=[pool(budgets=[{"nodes": "0"}])]))
    assert isinstance(closed, Rejection) and closed.kind is RejectionKind.BUDGET
    assert closed.notices(command) == ()


def test_drift_is_carried_out_at_once() -> None:
    method = Drift()
    command = decided(method, [node("a", drifted_since_s=NOW_S)])
    assert validate(command, method, view([])) is command
