"""VolumeZone: a bound volume's zone and region labels must be the node's."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

import numpy as np

from holokube.kube.requirements import NORMALIZED_LABELS, REGION_LABEL, ZONE_LABEL
from holokube.packing.arrays import BoolArray, Rows, true_for
from holokube.packing.filters.protocol import OneReason, Scope
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState

_OLD_LABELS: Final = {old: new for old, new in NORMALIZED_LABELS.items() if new in (ZONE_LABEL, REGION_LABEL)}


class VolumeZone(OneReason):
    """See the module."""

    name = "VolumeZone"
    reason = "node(s) had no available volume zone"
    scope = Scope.CLUSTER

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods with claims."""
        del state
        return bool(cls.claims)

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """Nodes and storage objects."""
        del cls
        return state.nodes.version, state.volumes.version

    def refusal(self, state: ClusterState, cls: PodClass) -> str:
        """A claim bound to a volume that does not exist."""
        plan = state.volume_plan(cls)
        return plan.refusal if plan.refused_by == self.name else ""

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where zones agree. A node without any such label is in a cluster of one zone, and takes all."""
        mask = true_for(rows, state.nodes.capacity)
        demands = state.volume_plan(cls).zones
        if not demands:
            return mask
        unzoned = mask.copy()
        for key in (*_OLD_LABELS, *_OLD_LABELS.values()):
            unzoned &= ~state.nodes.has_label(key, rows)
        for demand in demands:
            mask &= self._in_values(state, demand.key, demand.values, rows)
        return mask | unzoned

    @staticmethod
    def _in_values(state: ClusterState, key: str, values: frozenset[str], rows: Rows) -> BoolArray:
        column = state.nodes.column(key)
        found = np.isin(column.ids[rows], _numbers(state, key, values))
        if key in _OLD_LABELS:
            # A volume with the old label fits a node that has only the new one.
            newer = _OLD_LABELS[key]
            by_newer = np.isin(state.nodes.column(newer).ids[rows], _numbers(state, newer, values))
            found |= (column.ids[rows] == 0) & by_newer
        return found


def _numbers(state: ClusterState, key: str, values: frozenset[str]) -> list[int]:
    column = state.nodes.column(key)
    return [number for value in values if (number := column.number_of(value))]
