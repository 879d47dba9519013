"""All that a disruption pass goes by, in a form that can be compared: the same picture leads to the same end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holokube.karpenter.disruption.memory import Mark
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.state.cluster import ClusterState
from holokube.pricing.instance_types import InstanceType


class Picture(NamedTuple):
    """Who has decided that nothing is to be done need not look again until something is different."""

    state: tuple[int, int]
    mark: Mark
    """Moves by itself every five minutes, so that nothing is overlooked for longer."""
    nominated: int
    queued: frozenset[str]
    pools: tuple[str, ...]
    pdbs: tuple[str, ...]
    offers: tuple[Sequence[InstanceType], ...]

    @classmethod
    def of(cls, view: DisruptionView, state: ClusterState) -> Picture | None:
        """The picture of a view; None if time alone may change what is decided."""
        if state.has_timed_pods:
            return None
        for pool in view.pools.values():
            for budget in pool.budgets:
                if budget.schedule:
                    return None
        return cls(
            state.version,
            view.mark,
            state.count_nominated(view.now_s),
            view.queued,
            tuple([_version(pool.object) for pool in view.pools.values()]),
            tuple(map(_version, view.pdbs)),
            tuple(view.types_of_pool.values()),
        )


def _version(obj: dict[str, object]) -> str:
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    return f"{metadata.get('uid', '')}/{metadata.get('resourceVersion', '')}"
