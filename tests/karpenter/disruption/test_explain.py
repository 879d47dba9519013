from __future__ import annotations

from holokube.karpenter.disruption.explain import explain
from holokube.karpenter.disruption.types import Blocker, Decision
from holokube.karpenter.scheduling.state_node import StateNode
from tests.karpenter.disruption.objects import NOW_S, ToldSimulator, node, nothing_fits, pod, pool, view

PROTECTED = {"karpenter.sh/do-not-disrupt": "true"}


def test_each_managed_node_is_explained() -> None:
    nodes = [
        node("empty"),
        node("busy", pods=(pod("a"),)),
        node("kept", pods=(pod("b", annotations=PROTECTED),), nominated_until_s=NOW_S + 9),
        node("restless", pods=(pod("c"),), consolidatable=False),
        StateNode(node("foreign").node),
    ]
    found = explain(view(nodes))
    assert set(found) == {"empty", "busy", "kept", "restless"}
    assert found["empty"].can_go and found["empty"].command is not None
    assert found["empty"].command.reason == "Empty"
    assert found["busy"].command is not None
    assert found["busy"].command.decision is Decision.DELETE
    assert [one.blocker for one in found["kept"].obstructions] == [Blocker.NOMINATED, Blocker.POD_DO_NOT_DISRUPT]
    assert [one.blocker for one in found["restless"].obstructions] == [Blocker.NOT_CONSOLIDATABLE]


def test_a_node_whose_pods_fit_nowhere_says_which() -> None:
    cluster = view([node("n", pods=(pod("a"),))], simulator=ToldSimulator(nothing_fits(pod("a"))))
    [reason] = explain(cluster)["n"].obstructions
    assert reason.blocker is Blocker.PODS_DO_NOT_FIT
    assert reason.pods == ("default/a",)


def test_a_budget_that_holds_a_node_back_is_told_beside_what_would_be_done() -> None:
    cluster = view([node("n"), node("m", marked=True)], pools=[pool(budgets=[{"nodes": "1"}])])
    found = explain(cluster)["n"]
    assert not found.can_go
    assert found.command is not None
    [reason] = found.obstructions
    assert reason.blocker is Blocker.BUDGET
    assert "allows 1 disruptions" in reason.message
    assert "1 of its 2 nodes" in reason.message


def test_drift_that_a_budget_holds_back_is_told_too() -> None:
    cluster = view(
        [node("n", pods=(pod("a"),), drifted_since_s=NOW_S)],
        pools=[pool(policy="WhenEmpty", budgets=[{"nodes": "0", "reasons": ["Drifted"]}])],
    )
    assert [one.blocker for one in explain(cluster)["n"].obstructions] == [Blocker.POLICY_WHEN_EMPTY, Blocker.BUDGET]
