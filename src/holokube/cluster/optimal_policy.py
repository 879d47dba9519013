"""The policy ``optimal``: Karpenter's objects and life of nodes, but the cheapest plans that can be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.cluster.karpenter_policy import KarpenterPolicy
from holokube.karpenter.optimal.solver_library import load
from holokube.karpenter.optimal.strategy import optimal_strategy
from holokube.karpenter.strategy import Strategy

OPTIMAL: Final = "optimal"


@dataclass(frozen=True, slots=True)
class OptimalPolicy(KarpenterPolicy):
    """Karpenter with another strategy; the same settings, catalogue and faults."""

    @property
    def name(self) -> str:
        return OPTIMAL

    async def prepare(self, clock: Clock, client: Client) -> None:
        """As Karpenter; SolverMissing before anything is changed if there is no solver."""
        load()
        await KarpenterPolicy.prepare(self, clock, client)

    def strategy(self) -> Strategy:
        return optimal_strategy()
