"""TaintToleration: NoSchedule and NoExecute taints keep pods away that do not tolerate them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holokube.packing.arrays import BoolArray, Rows
from holokube.packing.filters.protocol import OneReason
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class TaintToleration(OneReason):
    """See the module."""

    name = "TaintToleration"
    reason = "node(s) had untolerated taint(s)"

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where all taints are tolerated."""
        return state.nodes.tolerated(cls.tolerations, rows)
