from __future__ import annotations

from typing import Any

from holokube.karpenter.disruption.drift import Drift
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.types import Decision
from holokube.karpenter.scheduling.state_node import StateNode
from tests.karpenter.disruption.objects import (
    LARGE,
    NOW_S,
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


def drifted(name: str, ago_s: float, **more: Any) -> StateNode:
    return node(name, drifted_since_s=NOW_S - ago_s, **more)


def test_the_longest_drifted_goes_first() -> None:
    nodes = [drifted("young", 10, pods=(pod("a"),)), drifted("old", 1000, pods=(pod("b"),)), node("fine")]
    outcome = Drift().compute(view(nodes), Memory())
    assert outcome.command is not None
    assert outcome.command.names == ("old",)
    assert outcome.command.reason == "Drifted"


def test_empty_ones_go_before_older_ones() -> None:
    nodes = [drifted("old", 1000, pods=(pod("b"),)), drifted("empty", 10)]
    command = Drift().compute(view(nodes), Memory()).command
    assert command is not None
    assert command.names == ("empty",)


def test_price_and_number_of_replacements_do_not_matter() -> None:
    claim = planned(pool(), (LARGE,))
    simulator = ToldSimulator(fits_with(claim, claim))
    command = Drift().compute(view([drifted("n", 1, pods=(pod("a"),))], simulator=simulator), Memory()).command
    assert command is not None
    assert command.decision is Decision.REPLACE
    assert len(command.replacements) == 2
    assert command.savings == 0.2 - 0.4 - 0.4
    assert simulator.asked == [(("n",), ("default/a",), False)]


def test_a_node_whose_pods_fit_nowhere_is_passed_over_and_told() -> None:
    def answer(gone: tuple[str, ...]) -> Any:
        return nothing_fits(pod("a")) if gone == ("stuck",) else everything_fits()

    nodes = [drifted("stuck", 100, pods=(pod("a"),)), drifted("other", 10, pods=(pod("b"),))]
    outcome = Drift().compute(view(nodes, simulator=ToldSimulator(answer)), Memory())
    assert outcome.command is not None
    assert outcome.command.names == ("other",)
    [notice] = outcome.notices
    assert notice.kind == "DisruptionBlocked"
    assert notice.node is not None and notice.node.name == "stuck"


def test_budgets_hold() -> None:
    closed = pool("closed", budgets=[{"nodes": "0", "reasons": ["Drifted"]}])
    nodes = [drifted("a", 100, pool="closed"), drifted("b", 1)]
    command = Drift().compute(view(nodes, pools=[pool(), closed]), Memory()).command
    assert command is not None
    assert command.names == ("b",)


def test_a_node_of_a_static_pool_does_not_drift_here() -> None:
    assert Drift().compute(view([drifted("a", 1)], pools=[pool(replicas=2)]), Memory()).command is None
