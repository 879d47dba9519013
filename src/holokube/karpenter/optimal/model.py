"""The packing problem as plain arrays: classes of pods, kinds of nodes, prices.

Nothing here knows Kubernetes. A *class* is a number of interchangeable pods with one demand; a *bin* is a kind of
node that may be opened: net capacity, price, how often at most. Whatever a node can run out of is a dimension:
resources, the count of pods, and the rules "at most k of these pods on one node" (spread over hosts, one port,
anti-affinity of a workload with itself); if they concern one class alone, ``per_node`` says it for less. What cannot be
counted so is a pair of classes in conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

UNLIMITED: Final = 1 << 40
"""A ``max_counts`` entry that never binds."""


@dataclass(frozen=True, slots=True, eq=False)
class PackingModel:
    """Which pods there are, which nodes could be had, and at what price. Make it with :meth:`build`."""

    demands: IntArray
    """classes x dimensions."""
    counts: IntArray
    """Pods of each class."""
    capacities: IntArray
    """bins x dimensions, without what the node's own daemons take."""
    prices: FloatArray
    """Per bin; zero for nodes that are paid anyway."""
    max_counts: IntArray
    """How often a bin may be opened: 1 for a node that exists, :data:`UNLIMITED` for an offer."""
    allowed: BoolArray
    """classes x bins: one pod of the class may run there and fits when alone."""
    conflicts: BoolArray | None
    """Different classes that are never on one node; symmetric."""
    per_node: IntArray
    """Per class: how many pods of it one node may have at most."""
    limit_weights: IntArray
    """limits x bins: what one node of the bin takes from a limit."""
    limit_totals: IntArray
    """What is left of each limit."""

    @staticmethod
    def build(
        demands: Iterable[Iterable[int]] | IntArray,
        counts: Iterable[int] | IntArray,
        capacities: Iterable[Iterable[int]] | IntArray,
        prices: Iterable[float] | FloatArray,
        *,
        max_counts: Iterable[int] | IntArray | None = None,
        allowed: Any = None,
        conflicts: BoolArray | None = None,
        per_node: Iterable[int] | IntArray | None = None,
        limit_weights: Any = None,
        limit_totals: Any = None,
    ) -> PackingModel:
        """Arrays of the right kinds; ``allowed`` is narrowed to the bins where a pod of the class fits alone."""
        capacity = _matrix(capacities)
        demand = _matrix(demands, capacity.shape[1])
        bins = len(capacity)
        fits: BoolArray = np.all(demand[:, None, :] <= capacity[None, :, :], axis=2)
        fits &= np.asarray(np.all(capacity >= 0, axis=1), dtype=np.bool_)
        if allowed is not None:
            fits &= np.asarray(allowed, dtype=np.bool_)
        if conflicts is not None and not conflicts.any():
            conflicts = None
        totals = np.asarray([] if limit_totals is None else limit_totals, dtype=np.int64)
        weights = np.zeros((0, bins)) if limit_weights is None or not len(totals) else limit_weights
        return PackingModel(
            demands=demand,
            counts=np.asarray(list(counts), dtype=np.int64),
            capacities=capacity,
            prices=np.asarray(list(prices), dtype=np.float64),
            max_counts=np.full(bins, UNLIMITED, dtype=np.int64)
            if max_counts is None
            else np.asarray(list(max_counts), dtype=np.int64),
            allowed=fits,
            conflicts=conflicts,
            per_node=np.full(len(demand), UNLIMITED, dtype=np.int64)
            if per_node is None
            else np.asarray(list(per_node), dtype=np.int64),
            limit_weights=np.asarray(weights, dtype=np.int64),
            limit_totals=totals,
        )

    @property
    def classes(self) -> int:
        """How many classes of pods."""
        return len(self.counts)

    @property
    def bins(self) -> int:
        """How many kinds of nodes."""
        return len(self.prices)

    def of_bins(self, kept: IntArray) -> PackingModel:
        """The same pods with only these bins, renumbered."""
        return PackingModel(
            demands=self.demands,
            counts=self.counts,
            capacities=self.capacities[kept],
            prices=self.prices[kept],
            max_counts=self.max_counts[kept],
            allowed=self.allowed[:, kept],
            conflicts=self.conflicts,
            per_node=self.per_node,
            limit_weights=self.limit_weights[:, kept],
            limit_totals=self.limit_totals,
        )

    def of_classes(
        self, kept: IntArray, counts: IntArray, max_counts: IntArray, limit_totals: IntArray
    ) -> PackingModel:
        """What is left to do: these classes with these counts, and what is left of bins and limits."""
        return PackingModel(
            demands=self.demands[kept],
            counts=counts,
            capacities=self.capacities,
            prices=self.prices,
            max_counts=max_counts,
            allowed=self.allowed[kept],
            conflicts=None if self.conflicts is None else self.conflicts[np.ix_(kept, kept)],
            per_node=self.per_node[kept],
            limit_weights=self.limit_weights,
            limit_totals=limit_totals,
        )


@dataclass(frozen=True, slots=True)
class PackedNode:
    """One node of a plan: its bin, and how many pods of which class it takes."""

    bin: int
    taken: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Packing:
    """A plan: nodes, and the pods for which there is no place."""

    nodes: tuple[PackedNode, ...]
    unplaced: Mapping[int, int]
    price: float

    @property
    def unplaced_pods(self) -> int:
        """How many pods have no place."""
        return sum(self.unplaced.values())

    @property
    def rank(self) -> tuple[int, float, int]:
        """Smaller is better: first all pods, then the price, then few nodes."""
        return (self.unplaced_pods, round(self.price, 9), len(self.nodes))


def packing_of(model: PackingModel, nodes: Iterable[PackedNode]) -> Packing:
    """A plan from its nodes; pods in none of them are unplaced, a node without pods is left out."""
    kept = tuple(node for node in nodes if node.taken)
    left = model.counts.copy()
    for node in kept:
        for index, number in node.taken.items():
            left[index] -= number
    unplaced = {int(index): int(left[index]) for index in np.flatnonzero(left)}
    return Packing(kept, unplaced, float(sum(model.prices[node.bin] for node in kept)))


def violations(model: PackingModel, packing: Packing) -> list[str]:
    """What is wrong with a plan, from first principles; empty if nothing is."""
    found: list[str] = []
    opened = np.zeros(model.bins, dtype=np.int64)
    placed = np.zeros(model.classes, dtype=np.int64)
    for number, node in enumerate(packing.nodes):
        opened[node.bin] += 1
        used = np.zeros(model.demands.shape[1], dtype=np.int64)
        for index, count in node.taken.items():
            placed[index] += count
            used += model.demands[index] * count
            if count <= 0 or not model.allowed[index, node.bin]:
                found.append(f"node {number}: class {index} may not run on bin {node.bin}")
            if count > model.per_node[index]:
                found.append(f"node {number}: class {index} is there too often")
        if (used > model.capacities[node.bin]).any():
            found.append(f"node {number}: bin {node.bin} is over-committed")
        found += _conflicts_on(model, number, node)
    found += [f"bin {number} opened too often" for number in np.flatnonzero(opened > model.max_counts)]
    if (model.limit_weights @ opened > model.limit_totals).any():
        found.append("a limit is exceeded")
    for index, number in packing.unplaced.items():
        placed[index] += number
    if (placed != model.counts).any():
        found.append("pods are lost or doubled")
    return found


def _conflicts_on(model: PackingModel, number: int, node: PackedNode) -> list[str]:
    if model.conflicts is None:
        return []
    together = sorted(node.taken)
    return [
        f"node {number}: classes {a} and {b} in conflict"
        for place, a in enumerate(together)
        for b in together[place + 1 :]
        if model.conflicts[a, b]
    ]


def _matrix(rows: Iterable[Iterable[int]] | IntArray, width: int | None = None) -> IntArray:
    array = np.asarray(rows if isinstance(rows, np.ndarray) else [list(row) for row in rows], dtype=np.int64)
    if array.ndim != 2:
        array = array.reshape(0, width or 0)
    return array
