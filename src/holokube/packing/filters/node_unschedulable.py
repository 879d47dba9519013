"""NodeUnschedulable: cordoned nodes take only pods that tolerate the taint of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holokube.kube.taints import NO_SCHEDULE, NODE_UNSCHEDULABLE, Taint, is_tolerated
from holokube.packing.arrays import BoolArray, Rows
from holokube.packing.filters.protocol import OneReason
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState

_TAINT: Final = Taint(NODE_UNSCHEDULABLE, "", NO_SCHEDULE)


class NodeUnschedulable(OneReason):
    """See the module."""

    name = "NodeUnschedulable"
    reason = "node(s) were unschedulable"

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Not if the pod tolerates it."""
        del state
        return not is_tolerated(_TAINT, cls.tolerations)

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where the node is not cordoned."""
        del cls
        return ~state.nodes.unschedulable[rows]
