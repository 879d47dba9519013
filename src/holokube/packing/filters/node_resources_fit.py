"""NodeResourcesFit: everything requested must be free, and there must be room for one more pod."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from holokube.packing.arrays import BoolArray, Rows
from holokube.packing.filters.protocol import Finding, Scope
from holokube.packing.podclass import PodClass

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState


class NodeResourcesFit:
    """See the module. Unlike other filters it names every resource that is short, not just the first."""

    name = "NodeResourcesFit"
    scope = Scope.USAGE

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Every pod takes room."""
        del state, cls
        return True

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """Not asked for with this scope."""
        del state, cls
        return None

    def refusal(self, state: ClusterState, cls: PodClass) -> str:
        """There could always be a larger node."""
        del state, cls
        return ""

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where the requests fit."""
        columns, amounts = state.request_arrays(cls)
        nodes = state.nodes
        if not isinstance(rows, slice):
            left = nodes.allocatable[rows] - nodes.used[rows]
            few: BoolArray = np.logical_and.reduce(left[:, columns] >= amounts, axis=1)
            return few
        # Column by column is several times faster for a whole table, and slower for a few rows.
        mask: BoolArray | None = None
        for column, amount in zip(columns.tolist(), amounts.tolist(), strict=True):
            fits = nodes.allocatable[rows, column] - nodes.used[rows, column] >= amount
            mask = fits if mask is None else mask & fits
        assert mask is not None, "every class requests one of pods"
        return mask

    def findings(self, state: ClusterState, cls: PodClass, rows: Rows) -> list[Finding]:
        """One for each resource that is short, in upstream's order; a node too small as such is unresolvable."""
        found = []
        # Upstream calls a node unresolvable as a whole if any of its shortages is.
        unresolvable: BoolArray | None = None
        for name in sorted(cls.requests, key=_order):
            column, amount = state.nodes.resource_column(name), cls.requests[name]
            allocatable = state.nodes.allocatable[rows, column]
            short = allocatable - state.nodes.used[rows, column] < amount
            too_small = short & (allocatable < amount) if name != PODS else np.zeros_like(short)
            unresolvable = too_small if unresolvable is None else unresolvable | too_small
            found.append((f"Insufficient {name}" if name != PODS else "Too many pods", short))
        assert unresolvable is not None, "every class requests one of pods"
        return [Finding(reason, short, unresolvable) for reason, short in found]


def _order(name: str) -> tuple[int, str]:
    first = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
    return (first.index(name) if name in first else len(first), name)

