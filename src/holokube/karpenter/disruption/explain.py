"""Why a node stays: every reason that stands against disrupting it, and what would be done if none did."""

from __future__ import annotations

from dataclasses import dataclass

from holokube.karpenter.disruption.candidates import obstructions
from holokube.karpenter.disruption.drift import Drift
from holokube.karpenter.disruption.emptiness import Emptiness
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
from holokube.karpenter.disruption.types import Blocker, Candidate, Command, DisruptionClass, Obstruction, Reason
from holokube.karpenter.disruption.view import DisruptionView


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What can be said about one node."""

    name: str
    obstructions: tuple[Obstruction, ...]
    """Every reason against it, the first that counts first; empty if it can go."""
    command: Command | None = None
    """What could be done with it alone; budgets may still put it off."""

    @property
    def can_go(self) -> bool:
        """Whether anything could be done with it now."""
        return self.command is not None and not self.obstructions


def explain(view: DisruptionView) -> dict[str, Explanation]:
    """Why each managed node stays, or how it would go, by name."""
    candidates = {candidate.name: candidate for candidate in view.scan(DisruptionClass.GRACEFUL).candidates}
    found: dict[str, Explanation] = {}
    for node in view.nodes:
        if node.node_claim is None:
            continue
        candidate = candidates.get(node.name)
        if candidate is None:
            reasons = tuple(obstructions(node, view.rules, DisruptionClass.GRACEFUL))
            found[node.name] = Explanation(node.name, reasons)
        else:
            found[node.name] = explain_candidate(view, candidate)
    return found


def explain_candidate(view: DisruptionView, candidate: Candidate) -> Explanation:
    """Why a node that may be disrupted stays, or how it would go."""
    emptiness, single = Emptiness(), SingleNodeConsolidation()
    if candidate.is_empty:
        obstruction = emptiness.obstruction(candidate)
        command: Command | Obstruction = obstruction or Command(
            emptiness.name, emptiness.reason, emptiness.consolidation_type, (candidate,), savings=candidate.price
        )
    else:
        obstruction = single.obstruction(candidate)
        command = obstruction or single.consider(view, candidate)
    if isinstance(command, Obstruction):
        drifted = Drift().obstruction(candidate) is None
        held = _held(view, candidate.pool.name, Reason.DRIFTED) if drifted else None
        return Explanation(candidate.name, (command,) if held is None else (command, held))
    held = _held(view, candidate.pool.name, command.reason)
    return Explanation(candidate.name, () if held is None else (held,), command)


def _held(view: DisruptionView, pool: str, reason: Reason) -> Obstruction | None:
    budget = view.budgets(reason).get(pool)
    if budget is None or budget.left:
        return None
    return Obstruction(
        Blocker.BUDGET,
        f'NodePool "{pool}" allows {budget.allowed} disruptions at once for reason {reason}, and'
        f" {budget.count.disrupting} of its {budget.count.total} nodes are being disrupted or are not ready",
    )
