"""NodeResourcesFit: everything requested must be free, and there must be room for one more pod."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from holokube.packing.arrays import BoolArray, IntArray, Rows
from holokube.packing.filters.protocol import Finding, Scope
from holokube.packing.nodes import NONZERO
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
        nodes = state.nodes
        if cls.sizes is not None:
            columns, table = state.request_table(cls, rows)
            left = nodes.allocatable[rows] - nodes.used[rows]
            sized: BoolArray = np.logical_and.reduce((left[:, columns] >= table) | (table == 0), axis=1)
            return sized
        columns, amounts = state.request_arrays(cls)
        if not isinstance(rows, slice):
            left = nodes.allocatable.take(rows, axis=0) - nodes.held.take(rows, axis=0)[:, NONZERO:]
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
        # In this order: a resource that no node has gets its column when it is first asked for.
        amounts = _amounts(state, cls, rows)
        nodes = state.nodes
        # Upstream calls a node unresolvable as a whole if any of its shortages is.
        unresolvable: BoolArray | None = None
        for name, column, amount in amounts:
            # Column by column is several times faster than to pick whole rows first.
            offered = nodes.allocatable[:, column][rows]
            short: BoolArray = offered - nodes.used[:, column][rows] < amount
            if unresolvable is None:
                unresolvable = np.zeros(len(short), dtype=np.bool_)
            if name != PODS:
                too_small: BoolArray = offered < amount
                if np.count_nonzero(too_small):
                    unresolvable |= too_small & short
            found.append((f"Insufficient {name}" if name != PODS else "Too many pods", short))
        assert unresolvable is not None, "every class requests one of pods"
        return [Finding(reason, short, unresolvable) for reason, short in found]


def _amounts(state: ClusterState, cls: PodClass, rows: Rows) -> list[tuple[str, int, int | IntArray]]:
    """Resources in upstream's order, with their columns and what is asked of them: one amount, or one for each row."""
    nodes = state.nodes
    if cls.sizes is None:
        return [(name, nodes.resource_column(name), cls.requests[name]) for name in sorted(cls.requests, key=_order)]
    columns, table = state.request_table(cls, rows)
    position = {column: i for i, column in enumerate(columns.tolist())}
    names = sorted((name for name, column in nodes.resource_columns.items() if column in position), key=_order)
    # A size that asks for nothing of a resource is not short of it, even where others have taken too much.
    asked = np.where(table == 0, np.iinfo(np.int64).min, table)
    return [
        (name, nodes.resource_columns[name], asked[:, position[nodes.resource_columns[name]]]) for name in names
    ]


def _order(name: str) -> tuple[int, str]:
    first = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
    return (first.index(name) if name in first else len(first), name)

