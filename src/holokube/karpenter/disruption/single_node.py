"""One node after another, until one can go or be replaced by a cheaper one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from holokube.karpenter.disruption.balanced import can_pass, scores_of
from holokube.karpenter.disruption.consolidation import (
    approval_notices,
    by_ratio,
    consolidate,
    consolidation_obstruction,
    eligibility_notices,
    is_too_early,
    unconsolidatable,
)
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.types import (
    Blocker,
    Candidate,
    Command,
    DisruptionClass,
    Obstruction,
    Outcome,
    Reason,
    is_balanced,
)
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.pausing import Steps, without_pauses

TIMEOUT_S: Final = 180.0
_COUNTED_AT_ONCE: Final = 32
"""Candidates that are looked at between pauses where counting is enough, which takes next to no time."""


class SingleNodeConsolidation:
    """Pools take turns, so that a large one does not keep the others from being looked at."""

    name: Final = "single"
    reason: Final = Reason.UNDERUTILIZED
    disruption_class: Final = DisruptionClass.GRACEFUL
    consolidation_type: Final = "single"
    is_validated: Final = True

    obstruction = staticmethod(consolidation_obstruction)
    """Nodes with pods, of pools that consolidate more than empty ones."""

    passes_over = staticmethod(is_too_early)
    """Nodes whose pods came or went too recently."""

    def compute(self, view: DisruptionView, memory: Memory) -> Outcome:
        """The first candidate that can go."""
        return without_pauses(self.steps(view, memory))

    def steps(self, view: DisruptionView, memory: Memory) -> Steps[Outcome]:
        """The same, candidate by candidate."""
        notices = list(eligibility_notices(view, self))
        if not view.count(self) or memory.is_settled(view.mark):
            return Outcome(None, memory, tuple(notices))
        left = view.budget_left(self.reason)
        was_held_back = any(left.get(pool, 0) == 0 for pool in view.pools_of(self))
        candidates = self._worth_a_look(view, memory)
        unreached = {candidate.pool.name for candidate in candidates}
        started_s = view.elapsed_s()
        counted = 0
        for candidate in candidates:
            pool = candidate.pool
            if counted % _COUNTED_AT_ONCE == 0:
                if counted:
                    yield
                if view.elapsed_s() - started_s > TIMEOUT_S:
                    later = memory.with_unreached(tuple(sorted(unreached)))
                    return Outcome(None, later, tuple(notices), timed_out=True)
            unreached.discard(pool.name)
            if left.get(pool.name, 0) == 0:
                continue
            if is_balanced(pool) and not can_pass(candidate, view.totals_for((candidate,))):
                continue
            glimpse = view.glimpse
            foreseen = glimpse.against(candidate) if glimpse is not None else None
            if foreseen is None and (outlook := view.outlook) is not None:
                if outlook.stays_as_told(candidate):
                    counted += 1
                    continue
                foreseen = outlook.against(candidate)
            if foreseen is not None:
                counted += 1
                notices.append(unconsolidatable(candidate, foreseen))
                continue
            command = self._simulated(view, candidate)
            if not isinstance(command, Obstruction):
                return Outcome(command, memory, (*notices, *approval_notices(command)))
            if command.blocker is not Blocker.SCORE:
                notices.append(unconsolidatable(candidate, command))
            yield
            counted = 0
        later = memory.with_unreached(tuple(sorted(unreached)))
        return Outcome(None, later if was_held_back else later.settled(view.mark), tuple(notices))

    def _worth_a_look(self, view: DisruptionView, memory: Memory) -> list[Candidate]:
        """Candidates in the order in which they are looked at; where counting is enough, without the hopeless."""
        has_turns = len(view.pools_of(self)) > 1
        roster = view.roster(self) if not has_turns else None
        if roster is not None and view.glimpse is not None:
            hopeless = view.glimpse.hopeless_of(roster)
            if hopeless is not None:
                return hopeless
        outlook = view.outlook
        if roster is not None and outlook is not None:
            return outlook.worth_a_look_of(roster)
        candidates = view.ranked(self)
        if has_turns:
            candidates = in_turns(candidates, memory.unreached_pools)
        return outlook.worth_a_look(candidates) if outlook is not None else candidates

    def consider(self, view: DisruptionView, candidate: Candidate) -> Command | Obstruction:
        """What can be done with one node, budgets aside."""
        foreseen = view.outlook.against(candidate) if view.outlook is not None else None
        return foreseen if foreseen is not None else self._simulated(view, candidate)

    def _simulated(self, view: DisruptionView, candidate: Candidate) -> Command | Obstruction:
        """The same where counting tells nothing."""
        move = consolidate(view, (candidate,))
        if isinstance(move, Obstruction):
            return move
        command = move.command(view, self)
        scores = scores_of(command.candidates, command.savings, view.totals_for(command.candidates))
        for score in scores.values():
            if not score.is_approved:
                return Obstruction(Blocker.SCORE, f"Not worth the disruption: {score}")
        return replace(command, scores=scores)


def in_turns(candidates: Sequence[Candidate], first: Sequence[str] = ()) -> list[Candidate]:
    """The best candidate of each pool, then the second best of each, and so on.

    Pools named ``first`` come before the others. Beyond that upstream leaves their order to chance; the name decides
    here.
    """
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in by_ratio(candidates):
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    order = [*(pool for pool in first if pool in by_pool), *sorted(by_pool.keys() - set(first))]
    rounds = zip_longest(*(by_pool[pool] for pool in order))
    return [candidate for one_round in rounds for candidate in one_round if candidate is not None]
