"""Several nodes at once: as long a row of the best candidates as can go together, for one new node or none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from holokube.karpenter.disruption.balanced import scores_of
from holokube.karpenter.disruption.consolidation import (
    Move,
    Replacement,
    approval_notices,
    consolidate,
    consolidation_obstruction,
    eligibility_notices,
    is_too_early,
    replacement_by,
)
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.prospects import Glimpse
from holokube.karpenter.disruption.types import (
    Candidate,
    Command,
    DisruptionClass,
    Obstruction,
    Outcome,
    Reason,
)
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.pausing import Steps, without_pauses
from holokube.karpenter.scheduling.min_values import unmet_min_values
from holokube.karpenter.scheduling.results import PlannedClaim

TIMEOUT_S: Final = 60.0
CANDIDATES_MAX: Final = 100
"""Upstream's limit; its search looks one further, and so does this."""


class _Found(NamedTuple):
    command: Command | None
    timed_out: bool = False


class MultiNodeConsolidation:
    """Looks for the longest row by halving: a row that can go makes it look at longer ones, another at shorter ones."""

    name: Final = "multi"
    reason: Final = Reason.UNDERUTILIZED
    disruption_class: Final = DisruptionClass.GRACEFUL
    consolidation_type: Final = "multi"
    is_validated: Final = True

    obstruction = staticmethod(consolidation_obstruction)
    """Nodes with pods, of pools that consolidate more than empty ones."""

    passes_over = staticmethod(is_too_early)
    """Nodes whose pods came or went too recently."""

    def compute(self, view: DisruptionView, memory: Memory) -> Outcome:
        """The longest row, if two or more can go."""
        return without_pauses(self.steps(view, memory))

    def steps(self, view: DisruptionView, memory: Memory) -> Steps[Outcome]:
        """The same, row by row."""
        notices = eligibility_notices(view, self)
        if not view.count(self) or memory.is_settled(view.mark):
            return Outcome(None, memory, notices)
        count = view.count_affordable(self)
        found = yield from self._search(view, count)
        if found.command is None:
            was_held_back = count < view.count(self)
            return Outcome(None, memory if was_held_back else memory.settled(view.mark), notices, found.timed_out)
        return Outcome(found.command, memory, notices + approval_notices(found.command), found.timed_out)

    def _search(self, view: DisruptionView, count: int) -> Steps[_Found]:
        """``count`` candidates are affordable."""
        if count < 2:
            return _Found(None)
        glimpse = view.glimpse
        if glimpse is not None and not glimpse.can_go_together(view.affordable(self, 2)):
            return _Found(None)
        candidates = view.affordable(self, CANDIDATES_MAX + 1)
        low, high = 1, CANDIDATES_MAX if len(candidates) > CANDIDATES_MAX else len(candidates) - 1
        if glimpse is not None and _is_in_vain(glimpse, candidates[: high + 1]):
            return _Found(None)
        best: Command | None = None
        started_s = view.elapsed_s()
        # Where more cannot go for certain nothing is tried, and the search goes on as if it had been.
        most = len(candidates) if view.outlook is None else view.outlook.most_together(candidates[: high + 1])
        while low <= high:
            middle = (low + high) // 2
            if middle >= most:
                high = middle - 1
                continue
            command = self._try(view, candidates[: middle + 1])
            if view.elapsed_s() - started_s > TIMEOUT_S:
                # What took too long does not count; what was found before does.
                return _Found(best, timed_out=True)
            if command is None:
                high = middle - 1
            else:
                best, low = command, middle + 1
            yield
        return _Found(best)

    def _try(self, view: DisruptionView, candidates: Sequence[Candidate]) -> Command | None:
        if view.outlook is not None:
            if view.outlook.cannot_go(candidates):
                return None
            claim = view.outlook.replaced_by(candidates)
            if claim is not None and _replacement_by(view, claim, candidates) is None:
                return None
        move = consolidate(view, candidates)
        if isinstance(move, Obstruction):
            return None
        if move.replacement is not None:
            replacement = without_same_type(view, move.replacement, candidates)
            if replacement is None:
                return None
            move = Move(move.candidates, move.results, replacement)
        command = move.command(view, self)
        scores = scores_of(command.candidates, command.savings, view.totals_for(command.candidates))
        if not all(score.is_approved for score in scores.values()):
            return None
        return replace(command, scores=scores)


def _is_in_vain(glimpse: Glimpse, candidates: Sequence[Candidate]) -> bool:
    """Whether, for certain, none of the rows can go that are tried as long as none can."""
    most, high = glimpse.most_together(candidates), len(candidates) - 1
    while high >= 1:
        middle = (1 + high) // 2
        if middle < most and not glimpse.cannot_go(candidates[: middle + 1]):
            return False
        high = middle - 1
    return True


def _replacement_by(
    view: DisruptionView, claim: PlannedClaim, candidates: Sequence[Candidate]
) -> Replacement | None:
    """What a new node may be that takes the place of several; None if it is not worth while."""
    replacement = replacement_by(view, candidates, claim)
    return None if isinstance(replacement, Obstruction) else without_same_type(view, replacement, candidates)


def without_same_type(
    view: DisruptionView, replacement: Replacement, candidates: Sequence[Candidate]
) -> Replacement | None:
    """The replacement without types that would only bring back a node that goes; None if nothing is left.

    If it may be of a type that is being removed, it must be cheaper than the cheapest node of such a type: otherwise
    that node could just as well stay, and fewer pods would move.
    """
    prices: dict[str, float] = {}
    for candidate in candidates:
        one = candidate.instance_type
        assert one is not None, "only nodes with a known instance type are consolidated"
        own = candidate.node.label_requirements
        known = prices.get(one.name, math.inf)
        for place in one.offerings:
            if own.is_compatible(place.requirements, allow_undefined=view.well_known):
                known = min(known, place.price_usd_per_hour)
        prices[one.name] = known
    max_price = math.inf
    for one in replacement.options:
        # Upstream takes a removed type that is nowhere offered like its node as free; then nothing is cheaper.
        price = prices.get(one.name)
        if price is not None:
            max_price = min(max_price, 0.0 if math.isinf(price) else price)
    options = view.prices.cheaper(replacement.options, replacement.requirements, max_price)
    if not options or unmet_min_values(options, replacement.requirements):
        return None
    return replace(replacement, options=tuple(options))
