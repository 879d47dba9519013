from __future__ import annotations

from holokube.karpenter.disruption.emptiness import Emptiness
from holokube.karpenter.disruption.memory import Mark, Memory
from holokube.karpenter.disruption.types import Blocker, Decision
from tests.karpenter.disruption.objects import ToldSimulator, daemon, everything_fits, node, pod, pool, view


def test_all_empty_nodes_go_in_one_command_the_most_worthwhile_first() -> None:
    simulator = ToldSimulator(everything_fits())
    nodes = [
        node("a", type="small"),
        node("b", type="large", pods=(daemon("d"),)),
        node("c", pods=(pod("p"),)),
    ]
    command = Emptiness().compute(view(nodes, simulator=simulator), Memory()).command
    assert command is not None
    assert command.names == ("b", "a")
    assert command.decision is Decision.DELETE
    assert command.reason == "Empty"
    assert command.savings == 0.5
    assert simulator.asked == []


def test_every_policy_lets_empty_nodes_go() -> None:
    for policy in ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"):
        command = Emptiness().compute(view([node("a")], pools=[pool(policy=policy)]), Memory()).command
        assert command is not None


def test_the_budget_limits_how_many_go() -> None:
    nodes = [node(f"n{i}") for i in range(10)]
    command = Emptiness().compute(view(nodes, pools=[pool(budgets=[{"nodes": "3"}])]), Memory()).command
    assert command is not None
    assert len(command.candidates) == 3


def test_a_budget_of_zero_leaves_the_method_unsettled() -> None:
    cluster = view([node("a")], pools=[pool(budgets=[{"nodes": "0"}])], mark=Mark(1.0, 1))
    outcome = Emptiness().compute(cluster, Memory())
    assert outcome.command is None
    assert not outcome.memory.is_settled(cluster.mark)


def test_never_keeps_empty_nodes_and_says_so() -> None:
    outcome = Emptiness().compute(view([node("a")], pools=[pool(after="Never")]), Memory())
    assert outcome.command is None
    [notice] = outcome.notices
    assert notice.kind == "Unconsolidatable"
    assert notice.obstruction is not None and notice.obstruction.blocker is Blocker.CONSOLIDATION_DISABLED


def test_nodes_of_static_pools_and_restless_nodes_stay() -> None:
    assert Emptiness().compute(view([node("a")], pools=[pool(replicas=1)]), Memory()).command is None
    assert Emptiness().compute(view([node("a", consolidatable=False)]), Memory()).command is None


def test_a_settled_method_does_not_look() -> None:
    cluster = view([node("a")], mark=Mark(1.0, 1))
    assert Emptiness().compute(cluster, Memory().settled(cluster.mark)).command is None
