"""The strategy ``optimal``: the planner for pods, and global consolidation in place of Karpenter's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holokube.base.clock import Clock
from holokube.karpenter.disruption.drift import Drift
from holokube.karpenter.disruption.emptiness import Emptiness
from holokube.karpenter.optimal.global_method import GlobalConsolidation
from holokube.karpenter.optimal.kept_plan import PlanBook, PlanKeeper
from holokube.karpenter.optimal.planning import planning
from holokube.karpenter.optimal.search import Effort
from holokube.karpenter.optimal.solver_library import INFINITY, load
from holokube.karpenter.pausing import Steps, with_pauses, without_pauses
from holokube.karpenter.provisioning.provisioner import Solve
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import PodError, Results
from holokube.karpenter.scheduling.solver import Solver
from holokube.karpenter.strategy import Strategy

BATCH: Final = Effort(
    target_gap=0.01, improvement_rounds=160, column_rounds=20, value_rounds=0, pattern_work=400, share_work=3_000,
    whole_nodes=60, work=40_000_000, is_narrow=True,
)  # fmt: skip
"""Of one batch of pods; counts only, so that the same batch always gets the same plan."""


def optimal_strategy() -> Strategy:
    """A strategy with a memory of its own for the plan it is about to carry out; SolverMissing without HiGHS."""
    load()
    book = PlanBook()
    return Strategy(
        solve_on=lambda clock: solve_on(clock, book),
        methods=(Emptiness(), Drift(), GlobalConsolidation(book)),
        simulate=lambda scene: PlanKeeper(scene.problem, book),
    )


def solve_on(clock: Clock, book: PlanBook) -> Solve:
    """Plans for batches of pods. Work is bounded, not time: the clock only says when others should have a turn.

    Pods on their way that a plan of consolidation provides for need no second place.
    """

    async def solve(problem: Problem) -> Results:
        wanted = [pod for pod in problem.pods if not book.provides_for(pod)]
        return await with_pauses(clock, planning_batch(replace(problem, pods=wanted)))

    return solve


def plan_batch(problem: Problem, effort: Effort = BATCH) -> Results:
    """The plan as a solve answers it. Where nothing has to be bought there is nothing to be planned."""
    return without_pauses(planning_batch(problem, effort))


def planning_batch(problem: Problem, effort: Effort = BATCH) -> Steps[Results]:
    """The same step by step."""
    free = yield from Solver(replace(problem, options=replace(problem.options, timeout_s=None))).steps()
    if not free.new_claims and not free.failed:
        return free
    found = yield from planning(problem, lambda: INFINITY, effort)
    pods = {pod_key(pod): pod for pod in problem.pods}
    failed = {key: PodError(pods[key], why) for key, why in found.errors.items()}
    return Results(found.claims, found.existing, failed)
