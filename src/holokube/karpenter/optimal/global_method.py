"""Global consolidation as a method of disruption: any nodes for any others, in place of many for one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from holokube.karpenter.disruption.balanced import scores_of
from holokube.karpenter.disruption.consolidation import (
    approval_notices,
    by_ratio,
    consolidation_obstruction,
    eligibility_notices,
)
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.types import Candidate, Command, DisruptionClass, Obstruction, Outcome, Reason
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.optimal.global_consolidation import GlobalMove, MoveLimits, MovingReading
from holokube.karpenter.optimal.kept_plan import PlanBook, with_waiting
from holokube.karpenter.optimal.persistence import Persistence
from holokube.karpenter.optimal.trust import Trust
from holokube.karpenter.pausing import Steps, without_pauses
from holokube.karpenter.scheduling.results import Results

LOOK_EVERY_S: Final = 1800.0
"""In a large cluster a search costs as much as many passes of Karpenter's own methods, and moves many pods, which
should have some peace then."""
SOON_S: Final = 300.0
"""In a smaller one it is cheap, and budgets let few nodes go at a time: whoever looks seldom shrinks too slowly to be
cheaper than Karpenter. Pods have their peace by ``consolidateAfter``."""
LIMITS: Final = MoveLimits(
    rounds=60, work=12_000_000, least_saving=0.05, least_share=0.005, most_removed=60, slack=0.01
)
"""Of one command, for clusters of up to :data:`SMALL` candidates. Many small ones, one after the other, disturb less
than one that turns the whole cluster over."""
SMALL: Final = 40
MOST_WORK: Final = 300_000_000
MOST_ROUNDS: Final = 300
LARGE: Final = 200
"""From so many candidates on, plans are rehearsed. In a small cluster a search goes through all that could be done, and
chance finds what a rehearsal would not dare; in a large one neither happens."""
REHEARSED: Final = replace(
    LIMITS, least_saving=0.01, least_share=0.001, is_rehearsed=True, rehearsals_work=800_000_000
)


def limits_for(candidates: int, limits: MoveLimits = LIMITS) -> MoveLimits:
    """A larger cluster is searched for longer, and a larger part of it moves at once; within bounds."""
    if candidates >= LARGE:
        return replace(REHEARSED, most_removed=max(REHEARSED.most_removed, candidates // 5))
    times = max(1.0, candidates / SMALL)
    return replace(
        limits, rounds=max(limits.rounds, min(int(limits.rounds * times), MOST_ROUNDS)),
        work=max(limits.work, min(int(limits.work * times), MOST_WORK)),
        most_removed=max(limits.most_removed, candidates // 5),
    )  # fmt: skip


def _another(limits: MoveLimits, times: int, seed: int) -> MoveLimits:
    """A search that is so many times as long and draws other handfuls of nodes: what one look did not find in a cluster
    that stays as it is, another may. One with rehearsals has its own way to deal with failure (``trust``)."""
    if limits.is_rehearsed:
        return limits
    work = min(limits.work * times, max(MOST_WORK, limits.work))
    return replace(limits, rounds=limits.rounds * times, work=work, seed=seed)


def _picture(candidates: Sequence[Candidate]) -> frozenset[tuple[str, str]]:
    """Which pods are where."""
    return frozenset(
        (one.name, str(pod["metadata"].get("uid"))) for one in candidates for pod in one.movable_pods
    )


def peace_s(candidates: int) -> float:
    """How long nothing is looked for after a search among so many candidates."""
    return LOOK_EVERY_S if candidates >= LARGE else SOON_S


class GlobalConsolidation:
    """Looks for the move that saves most; blockers, budgets, and the second look before it begins are Karpenter's."""

    name: Final = "global"
    reason: Final = Reason.UNDERUTILIZED
    disruption_class: Final = DisruptionClass.GRACEFUL
    consolidation_type: Final = "global"
    is_validated: Final = True

    def __init__(self, book: PlanBook, limits: MoveLimits | None = None) -> None:
        self._book = book
        self._limits = limits
        self._not_before_s = -math.inf
        self._looks = 0
        self._persistence = Persistence()
        self._trust = Trust()

    def obstruction(self, candidate: Candidate) -> Obstruction | None:
        """Nodes with pods, of pools that consolidate more than empty ones."""
        return consolidation_obstruction(candidate)

    def compute(self, view: DisruptionView, memory: Memory) -> Outcome:
        """The move, if one saves enough."""
        return without_pauses(self.steps(view, memory))

    def steps(self, view: DisruptionView, memory: Memory) -> Steps[Outcome]:
        """The same, step by step."""
        notices = eligibility_notices(view, self)
        candidates = by_ratio(view.candidates(self))
        if not candidates or memory.is_settled(view.mark) or view.now_s < self._not_before_s:
            return Outcome(None, memory, notices)
        self._not_before_s = view.now_s + peace_s(len(candidates))
        budgets = view.budget_left(self.reason)
        times = self._persistence.times_for(_picture(candidates))
        command = (yield from self._best(view, candidates, budgets, times)) if times else None
        self._looks += 1
        if command is None:
            self._persistence.was_in_vain()
            held_back = any(
                sum(one.pool.name == pool for one in candidates) > left for pool, left in budgets.items()
            )
            return Outcome(None, memory if held_back else memory.settled(view.mark), notices)
        assert command.results is not None, "a move says where pods go"
        self._book.keep(command.names, command.results)
        return Outcome(command, memory, notices + approval_notices(command))

    def _best(
        self, view: DisruptionView, candidates: Sequence[Candidate], budgets: dict[str, int], times: int
    ) -> Steps[Command | None]:
        """The best move that every Balanced pool approves of; pools that do not are left out of the next attempt.

        ``times`` as much as usual is done to find it.
        """
        if view.problem is None:
            raise ValueError("global consolidation needs a view that knows the whole problem")
        allowed = [one for one in candidates if budgets.get(one.pool.name, 0) > 0]
        problem = with_waiting(view.problem()) if allowed else None
        while allowed and problem is not None:
            reading = MovingReading(problem, allowed)
            limits = _another(self._limits or limits_for(len(allowed)), times, self._looks)
            move = yield from reading.best_move(
                budgets, limits, spot_to_spot=view.options.spot_to_spot, trust=self._trust
            )
            if not move.removed:
                return None
            command = self._command(move, allowed, view)
            disliked = {pool for pool, score in command.scores.items() if not score.is_approved}
            if not disliked:
                if move.rehearsed is not None:
                    self._trust.hope(*move.rehearsed)
                return command
            allowed = [one for one in allowed if one.pool.name not in disliked]
        return None

    def _command(self, move: GlobalMove, candidates: Sequence[Candidate], view: DisruptionView) -> Command:
        gone = set(move.removed)
        chosen = tuple(one for one in candidates if one.name in gone)
        results = Results(move.claims, move.existing, {})
        scores = scores_of(chosen, move.savings, view.totals)
        return Command(
            self.name, self.reason, self.consolidation_type, chosen, tuple(move.claims), results, move.savings, scores
        )
