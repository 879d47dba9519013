"""NodeName: a pod that names its node goes nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holokube.packing.arrays import BoolArray, Rows
from holokube.packing.filters.protocol import OneReason
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class NodeName(OneReason):
    """See the module."""

    name = "NodeName"
    reason = "node(s) didn't match the requested node name"

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods with ``spec.nodeName``."""
        del state
        return bool(cls.node_name)

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """The one row of that name."""
        named: BoolArray = state.nodes.row_numbers[rows] == state.nodes.row_of.get(cls.node_name, -1)
        return named
