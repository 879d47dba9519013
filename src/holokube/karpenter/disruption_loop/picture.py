"""All that a disruption pass goes by, in a form that can be compared: the same picture leads to the same end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.memory import Mark
from holokube.karpenter.provisioning.world import TypesOfPool
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType


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

    state: tuple[int, int]
    mark: Mark
    """Moves by itself every five minutes, so that nothing is overlooked for longer."""
    nominated: int
    queued: frozenset[str]
    pools: tuple[JsonObject, ...]
    pdbs: tuple[JsonObject, ...]
    """They are the very same objects as long as nobody writes them, and then next to nothing is compared."""
    offers: tuple[Sequence[InstanceType], ...]

    @classmethod
    def of(cls, sight: Sight, state: ClusterState) -> Picture | None:
        """The picture of a moment; None if time alone may change what is decided."""
        if state.has_timed_pods:
            return None
        for pool in sight.pools.values():
            for budget in pool.budgets:
                if budget.schedule:
                    return None
        return cls(
            state.version,
            sight.mark,
            state.count_nominated(sight.now_s),
            sight.queued,
            tuple([pool.object for pool in sight.pools.values()]),
            tuple(sight.pdbs),
            tuple(sight.types_of_pool.values()),
        )
