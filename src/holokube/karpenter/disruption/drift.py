"""Nodes that no longer are what their pool asks for are replaced, one in a pass, whatever that costs."""

from __future__ import annotations

from typing import Final

from holokube.karpenter.api.labels import DRIFTED
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.simulating import describe, failures
from holokube.karpenter.disruption.types import (
    Blocker,
    Candidate,
    Command,
    DisruptionClass,
    Notice,
    NoticeKind,
    Obstruction,
    Outcome,
    Reason,
)
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.pausing import Steps, without_pauses
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube import conditions
from holokube.kube.timeformat import parse_time


class Drift:
    """The longest drifted first, but empty ones before all others.

    If an empty one stayed, pods of the others would move to it only to move again.
    """

    name: Final = "drift"
    reason: Final = Reason.DRIFTED
    disruption_class: Final = DisruptionClass.EVENTUAL
    consolidation_type: Final = ""
    is_validated: Final = False

    def obstruction(self, candidate: Candidate) -> Obstruction | None:
        """Only drifted nodes of dynamic pools."""
        if candidate.pool.is_static:
            return Obstruction(
                Blocker.STATIC_POOL, f'NodePool "{candidate.pool.name}" has a fixed number of nodes'
            )
        if DRIFTED not in candidate.node.claim_states:
            return Obstruction(Blocker.NOT_DRIFTED, "Node is what its NodePool asks for")
        return None

    def passes_over(self, node: StateNode, pool: NodePool) -> bool:  # noqa: ARG002 - whatever its pool is
        """Nodes that have not drifted."""
        return DRIFTED not in node.claim_states

    def compute(self, view: DisruptionView, memory: Memory) -> Outcome:
        """The first drifted node whose pods all find a place, on nodes that exist or on any number of new ones."""
        return without_pauses(self.steps(view, memory))

    def steps(self, view: DisruptionView, memory: Memory) -> Steps[Outcome]:
        """The same, candidate by candidate."""
        notices: list[Notice] = []
        if not view.count(self):
            return Outcome(None, memory)
        left = view.budget_left(self.reason)
        for candidate in sorted(view.candidates(self), key=_order):
            if left.get(candidate.pool.name, 0) == 0:
                continue
            results = view.simulator.simulate(
                [candidate.name], candidate.movable_pods, is_consolidation=False
            )
            failed = failures(results)
            if failed:
                obstruction = Obstruction(Blocker.PODS_DO_NOT_FIT, describe(failed), pods=tuple(failed))
                notices.append(
                    Notice(NoticeKind.BLOCKED, obstruction.message, node=candidate.node, obstruction=obstruction)
                )
                yield
                continue
            savings = candidate.price
            for claim in results.new_claims:
                savings -= claim.price_usd_per_hour
            command = Command(
                self.name, self.reason, self.consolidation_type, (candidate,), tuple(results.new_claims), results,
                savings,
            )  # fmt: skip
            return Outcome(command, memory, tuple(notices))
        return Outcome(None, memory, tuple(notices))


def _order(candidate: Candidate) -> tuple[bool, float, str]:
    condition = conditions.get_condition(candidate.node.node_claim or {}, DRIFTED) or {}
    since = condition.get("lastTransitionTime")
    since_s = parse_time(since).timestamp() if since else 0.0
    return bool(candidate.reschedulable_pods), since_s, candidate.name
