"""NodePorts: two pods on one node cannot have the same host port on overlapping addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holokube.packing.arrays import BoolArray, Rows, true_for
from holokube.packing.filters.protocol import OneReason, Scope
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class NodePorts(OneReason):
    """See the module."""

    name = "NodePorts"
    reason = "node(s) didn't have free ports for the requested pod ports"
    resolvable = True
    scope = Scope.USAGE

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods with host ports."""
        del state
        return bool(cls.ports)

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where all wanted ports are free."""
        if isinstance(rows, slice):
            mask = true_for(rows, state.nodes.capacity)
            mask[list(state.ports.rows_in_conflict(cls.ports))] = False
            return mask
        mask = true_for(rows, len(rows))
        for i, row in enumerate(rows.tolist()):
            mask[i] = not state.ports.conflicts(row, cls.ports)
        return mask
