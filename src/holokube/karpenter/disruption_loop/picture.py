"""All that a disruption pass goes by, in a form that can be compared: the same picture leads to the same end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.memory import Mark
from holokube.karpenter.provisioning.world import TypesOfPool
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.types import JsonObject


class Sight(NamedTuple):
    """What is read before nodes are looked at."""

    now_s: float
    pools: Mapping[str, NodePool]
    types_of_pool: TypesOfPool
    pdbs: Sequence[JsonObject]
    queued: frozenset[str]
    """Provider ids of the nodes that a command is being carried out for."""
    mark: Mark


class Picture(NamedTuple):
    """Who has decided that nothing is to be done need not look again until something is different."""

    sight: Sight
    """Its mark moves by itself every five minutes, so that nothing is overlooked for longer."""
    version: tuple[int, int]
    nominated: int

    def holds(self, sight: Sight, state: ClusterState) -> bool:
        """Whether nothing is different at another moment; never if time alone may change what is decided."""
        # Most often something is, and that is found out first.
        if self.version != state.version or self.nominated != state.count_nominated(sight.now_s):
            return False
        before = self.sight
        return (
            before.mark == sight.mark
            and before.queued == sight.queued
            # They are the very same objects as long as nobody writes them, and then next to nothing is compared.
            and [pool.object for pool in before.pools.values()] == [pool.object for pool in sight.pools.values()]
            and before.pdbs == sight.pdbs
            and [*before.types_of_pool.values()] == [*sight.types_of_pool.values()]
            and not state.has_timed_pods
            and not any(budget.schedule for pool in sight.pools.values() for budget in pool.budgets)
        )
