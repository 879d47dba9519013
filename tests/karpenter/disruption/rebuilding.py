"""The plain way to simulate: a new solver for every question. Slow, and what the quick way must agree with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from holokube.karpenter.scheduling.problem import CONSOLIDATION_OPTIONS, FALLBACK_OPTIONS, Problem
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.solver import Solver
from holokube.kube.types import JsonObject


class RebuildingSimulator:
    """``problem.pods`` are the pending ones, and those of nodes being deleted."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def simulate(self, gone: Collection[str], pods: Sequence[JsonObject], *, is_consolidation: bool) -> Results:
        names = set(gone)
        return Solver(
            replace(
                self._problem,
                state_nodes=[node for node in self._problem.state_nodes if node.name not in names],
                pods=[*self._problem.pods, *pods],
                options=CONSOLIDATION_OPTIONS if is_consolidation else FALLBACK_OPTIONS,
            )
        ).solve()
