"""NodeAffinity: the node selector, and the required terms of the node affinity.

Terms that name their nodes (``matchFields``, as daemon pods have) narrow the search beforehand. Upstream says
of the other nodes only that they "didn't satisfy plugin(s) [NodeAffinity]", and asks no other filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holokube.packing.arrays import BoolArray, Rows
from holokube.packing.filters.protocol import OneReason
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState

OUTSIDE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def outside_named_nodes(state: ClusterState, cls: PodClass) -> BoolArray | None:
    """The rows that the terms rule out by name; None if they name no nodes."""
    names = _named(cls)
    if not names:
        return None
    outside = state.nodes.present.copy()
    rows = [state.nodes.row_of[name] for name in names if name in state.nodes.row_of]
    outside[np.array(rows, dtype=np.intp)] = False
    return outside


def _named(cls: PodClass) -> frozenset[str] | None:
    affinity = cls.node_affinity.affinity
    return None if affinity is None else affinity.node_names()


class NodeAffinity(OneReason):
    """See the module."""

    name = "NodeAffinity"
    reason = "node(s) didn't match Pod's node affinity/selector"

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods that select nodes."""
        del state
        return not cls.node_affinity.is_empty

    def refusal(self, state: ClusterState, cls: PodClass) -> str:
        """Terms that each name two different nodes can never be fulfilled."""
        del state
        names = _named(cls)
        return "pod affinity terms conflict" if names is not None and not names else ""

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where selector and affinity match."""
        return state.nodes.wanted(cls.node_affinity, rows)
