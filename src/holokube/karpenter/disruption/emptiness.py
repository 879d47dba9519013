"""Empty nodes go, as many at once as budgets allow. Nothing is simulated: no pod needs another place."""

from __future__ import annotations

from typing import Final

from holokube.karpenter.disruption.balanced import total_price
from holokube.karpenter.disruption.consolidation import disabled, eligibility_notices, is_too_early, not_consolidatable
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.types import (
    Blocker,
    Candidate,
    Command,
    DisruptionClass,
    Obstruction,
    Outcome,
    Reason,
)
from holokube.karpenter.disruption.view import DisruptionView

_NOT_EMPTY: Final = Obstruction(Blocker.NOT_EMPTY, "Node is not empty")


class Emptiness:
    """Runs for every consolidation policy."""

    name: Final = "emptiness"
    reason: Final = Reason.EMPTY
    disruption_class: Final = DisruptionClass.GRACEFUL
    consolidation_type: Final = "empty"
    is_validated: Final = True

    def obstruction(self, candidate: Candidate) -> Obstruction | None:
        """Only empty nodes of dynamic pools go, and not before consolidateAfter."""
        if candidate.pool.is_static:
            return Obstruction(
                Blocker.STATIC_POOL, f'NodePool "{candidate.pool.name}" has a fixed number of nodes'
            )
        if candidate.pool.consolidate_after_s is None:
            return disabled(candidate)
        if not candidate.is_empty:
            return _NOT_EMPTY
        return not_consolidatable(candidate)

    passes_over = staticmethod(is_too_early)
    """Nodes whose pods came or went too recently."""

    def compute(self, view: DisruptionView, memory: Memory) -> Outcome:
        """One command for all of them."""
        notices = eligibility_notices(view, self)
        if not view.count(self) or memory.is_settled(view.mark):
            return Outcome(None, memory, notices)
        chosen = view.affordable(self)
        if not chosen:
            # A budget held every one of them back, so the next pass must look again.
            return Outcome(None, memory, notices)
        command = Command(
            self.name, self.reason, self.consolidation_type, tuple(chosen), savings=total_price(chosen)
        )
        return Outcome(command, memory, notices)
