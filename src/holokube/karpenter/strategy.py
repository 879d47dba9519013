"""What is decided, apart from how it is carried out: a planner for pods, methods of disruption, and what they ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from holokube.base.clock import Clock
from holokube.karpenter.disruption.methods import METHODS
from holokube.karpenter.disruption.types import Method
from holokube.karpenter.disruption_loop.loop import Simulate
from holokube.karpenter.pausing import with_pauses
from holokube.karpenter.provisioning.provisioner import Solve
from holokube.karpenter.provisioning.repeats import LastAnswer
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.solver import Solver


@dataclass(frozen=True, slots=True)
class Strategy:
    """Who decides. Everything else (claims, nodes, drains, the queue of commands) is the same for all."""

    solve_on: Callable[[Clock], Solve]
    """The planner of the provisioner, by the clock that its time is measured with."""
    methods: Sequence[Method]
    """Reasons to disrupt nodes, in the order in which they are tried."""
    simulate: Simulate
    """Where pods would go if nodes went; also asked when a command is looked at a second time."""


def solve_on(clock: Clock) -> Solve:
    """Karpenter's solve, which ends when its time is up, by this clock, and keeps nobody waiting for long."""

    last = LastAnswer()

    async def solve(problem: Problem) -> Results:
        known = last.find(problem)
        if known is not None:
            return known
        limit_s = problem.options.timeout_s
        started_s = clock.monotonic()

        def is_late() -> bool:
            return limit_s is not None and clock.monotonic() - started_s > limit_s

        results = await with_pauses(clock, Solver(problem).steps(is_late=is_late))
        last.keep(problem, results)
        return results

    return solve


KARPENTER: Final = Strategy(solve_on, METHODS, lambda scene: Simulation(scene.problem))
"""As upstream decides."""
