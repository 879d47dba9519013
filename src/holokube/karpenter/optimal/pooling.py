"""A model shrunk for bounds: fewer groups of pods, fewer bins, fewer dimensions, and never a higher bound.

Pods with the same choice of bins become one group; groups are merged, which widens their choice; bins that run out and
that the same groups may use are pooled; rules that hardly matter are dropped. Each of these only makes plans cheaper,
so that a bound for what is left holds for the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, BoolArray, FloatArray, IntArray, PackingModel

MAX_GROUPS: Final = 24
MAX_SORTED_GROUPS: Final = 150
"""So many groups are merged with care; of more, neighbours in the order of their choices are joined first."""
MAX_DIMENSIONS: Final = 10
MAX_FLOWS: Final = 12_000
"""Groups x bins x dimensions that a program is made for."""


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Groups and pools, in units in which amounts are near one."""

    masks: BoolArray
    """groups x pools."""
    needs: FloatArray
    """groups x dimensions."""
    capacities: FloatArray
    """pools x dimensions."""
    prices: FloatArray
    max_counts: IntArray
    limit_weights: IntArray
    limit_totals: IntArray
    pool_of: IntArray
    """The pool of each bin."""
    dimensions: IntArray
    """Which dimensions were kept."""
    scale: FloatArray
    """The unit of each kept dimension."""

    @property
    def flows(self) -> int:
        """How many variables a program will have, besides one for each pool."""
        return int(sum(self.masks[g].sum() * (self.needs[g] > 0).sum() for g in range(len(self.masks))))


def pooled(model: PackingModel) -> Pooled | None:
    """The model shrunk; None if no pod has a place."""
    classes = np.flatnonzero(model.allowed.any(axis=1) & (model.counts > 0))
    if not len(classes):
        return None
    largest = np.maximum(model.capacities.max(axis=0).astype(np.float64), 1.0)
    totals = model.demands[classes].astype(np.float64) * model.counts[classes, None] / largest
    kept = np.sort(np.argsort(-least_costs(model, totals.sum(axis=0) * largest), kind="stable")[:MAX_DIMENSIONS])
    masks, needs = _groups(model.allowed[classes], totals[:, kept])
    groups = MAX_GROUPS
    while True:
        while len(masks) > groups:
            masks, needs = _merged(masks, needs)
        found = _pools(model, masks, needs, kept, largest[kept])
        if found.flows <= MAX_FLOWS or groups <= 2:
            return found
        groups = max(2, min(len(masks) - 1, len(masks) * 3 // 4))


def least_costs(model: PackingModel, wanted: FloatArray) -> FloatArray:
    """By dimension: what it would cost to buy enough of it alone, where a unit of it is cheapest."""
    sold = np.flatnonzero(model.prices > 0)
    if not len(sold):
        return wanted
    capacities = np.maximum(model.capacities[sold], 0).astype(np.float64)
    rates = np.where(capacities > 0, model.prices[sold, None] / np.maximum(capacities, 1.0), np.inf).min(axis=0)
    return np.asarray(np.where(np.isfinite(rates), rates, 0.0) * wanted, dtype=np.float64)


def _groups(allowed: BoolArray, totals: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Distinct choices of bins, and the sum that each group needs of every dimension."""
    masks, group_of = np.unique(allowed, axis=0, return_inverse=True)
    needs = np.zeros((len(masks), totals.shape[1]))
    np.add.at(needs, np.asarray(group_of).reshape(-1), totals)
    if len(masks) > MAX_SORTED_GROUPS:
        starts = np.unique(np.linspace(0, len(masks), MAX_SORTED_GROUPS, endpoint=False).astype(np.intp))
        masks = np.logical_or.reduceat(masks, starts, axis=0)
        needs = np.add.reduceat(needs, starts, axis=0)
    return masks, needs


def _merged(masks: BoolArray, needs: FloatArray) -> tuple[BoolArray, FloatArray]:
    """One group less: the smallest joins the one whose choice widens least."""
    smallest = int(np.argmin(needs.sum(axis=1)))
    widening = (masks ^ masks[smallest]).sum(axis=1)
    widening[smallest] = masks.shape[1] + 1
    other = int(np.argmin(widening))
    masks, needs = masks.copy(), needs.copy()
    masks[other] |= masks[smallest]
    needs[other] += needs[smallest]
    return np.delete(masks, smallest, axis=0), np.delete(needs, smallest, axis=0)


def _pools(
    model: PackingModel, masks: BoolArray, needs: FloatArray, dimensions: IntArray, scale: FloatArray
) -> Pooled:
    """Bins that run out, of one price and for the same groups, as one; bins without end stay as they are."""
    numbers: dict[tuple[object, ...], int] = {}
    pool_of = np.zeros(model.bins, dtype=np.int64)
    for bin_ in range(model.bins):
        if model.max_counts[bin_] >= UNLIMITED:
            key: tuple[object, ...] = (bin_,)
        else:
            key = (float(model.prices[bin_]), masks[:, bin_].tobytes(), model.limit_weights[:, bin_].tobytes())
        pool_of[bin_] = numbers.setdefault(key, len(numbers))
    first = np.array([int(np.argmax(pool_of == number)) for number in range(len(numbers))], dtype=np.int64)
    counts = np.bincount(pool_of, weights=np.minimum(model.max_counts, UNLIMITED), minlength=len(numbers))
    room = np.maximum(model.capacities[:, dimensions], 0) / scale
    capacities = np.zeros((len(numbers), len(dimensions)))
    np.maximum.at(capacities, pool_of, room)
    free = model.prices[first] <= 0
    if free.any():
        # All of what costs nothing can be used, so what counts is the sum; else the best must stand for each.
        sums = np.zeros_like(capacities)
        np.add.at(sums, pool_of, room * np.minimum(model.max_counts, UNLIMITED)[:, None])
        endless = counts >= UNLIMITED
        capacities = np.where((free & ~endless)[:, None], sums / np.maximum(counts, 1)[:, None], capacities)
    return Pooled(
        masks=masks[:, first],
        needs=needs,
        capacities=capacities,
        prices=model.prices[first],
        max_counts=np.minimum(counts, UNLIMITED).astype(np.int64),
        limit_weights=model.limit_weights[:, first],
        limit_totals=model.limit_totals,
        pool_of=pool_of,
        dimensions=dimensions,
        scale=scale,
    )
