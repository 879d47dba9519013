"""A first plan: open one node after the other, each time the one that holds most value for its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from holokube.karpenter.optimal.knapsack import Contents, Filling, directions, greedy_contents, swapped
from holokube.karpenter.optimal.model import BoolArray, FloatArray, IntArray, PackedNode, PackingModel

SWAPPED_FILLINGS: Final = 8
"""Swapping costs more than filling, so only the most promising bins get it."""
OWNED_BY_KNAPSACK: Final = 24
"""Up to so many nodes that are paid anyway are filled one by one with care; more are filled best-fit."""
STEP_WORK: Final = 2000
"""What one step of a greedy pass costs besides its size."""
MAX_DIRECTED_WORK: Final = 1_500_000
"""Classes x bins x directions of one greedy pass; beyond it directions are left out."""


@dataclass(slots=True, eq=False)
class Stock:
    """What can still be opened: bins by their number, and what is left of limits."""

    bins: IntArray
    limits: IntArray

    @staticmethod
    def of(model: PackingModel) -> Stock:
        return Stock(model.max_counts.copy(), model.limit_totals.copy())

    def available(self, model: PackingModel) -> IntArray:
        """Bins of which one more can be opened."""
        can = self.bins > 0
        if len(self.limits):
            can &= (model.limit_weights <= self.limits[:, None]).all(axis=0)
        return np.flatnonzero(can)

    def times(self, model: PackingModel, bin_: int, wanted: int) -> int:
        """How many nodes of a bin can be opened, up to ``wanted``."""
        number = min(wanted, int(self.bins[bin_]))
        for weight, left in zip(model.limit_weights[:, bin_], self.limits, strict=True):
            if weight > 0:
                number = min(number, int(left // weight))
        return number

    def take(self, model: PackingModel, bin_: int, number: int = 1) -> None:
        """Open so many nodes of a bin; a negative number gives them back."""
        self.bins[bin_] -= number
        self.limits -= model.limit_weights[:, bin_] * number


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """How a construction judges: the value of a pod of each class, and the directions of sizes."""

    values: FloatArray
    weights: FloatArray


def guide_for(model: PackingModel, values: FloatArray) -> Guide:
    """Directions along the dimensions that are scarcest, measured in whole nodes."""
    wanted = (model.demands.astype(np.float64) * model.counts[:, None]).sum(axis=0)
    nodes = wanted / np.maximum(model.capacities.mean(axis=0), 1.0)
    order = np.argsort(-nodes, kind="stable")[:3]
    main = [int(d) for place, d in enumerate(order) if nodes[d] > (0 if place < 2 else 0.4 * nodes[order[0]])]
    return Guide(values, directions(model.demands.shape[1], tuple(main)))


@dataclass(slots=True)
class Meter:
    """Counts work, so that a search can be bounded without a clock."""

    spent: int = 0


def construct(
    model: PackingModel,
    guide: Guide,
    left: IntArray,
    stock: Stock,
    price_cap: float = float("inf"),
    meter: Meter | None = None,
) -> list[PackedNode] | None:
    """Nodes for as many of the ``left`` pods as have a place; ``left`` and ``stock`` are used up.

    None as soon as the nodes would cost ``price_cap`` or more.
    """
    meter = meter or Meter()
    nodes: list[PackedNode] = []
    price = 0.0
    left[~model.allowed.any(axis=1)] = 0
    owned = np.flatnonzero((model.prices <= 0) & (stock.bins > 0) & model.allowed[left > 0].any(axis=0))
    if len(owned) > OWNED_BY_KNAPSACK:
        nodes += fill_best_fit(model, guide.values, left, stock, owned)
        # Whoever is left fits on none of them.
        stock.bins[owned] = 0
    while left.any():
        bins = stock.available(model)
        bins = bins[model.allowed[np.ix_(left > 0, bins)].any(axis=0)] if len(bins) else bins
        chosen = _best_filling(model, guide, left, bins, meter) if len(bins) else None
        if chosen is None:
            break
        inside = np.flatnonzero(chosen.taken)
        number = stock.times(model, chosen.bin, int((left[inside] // chosen.taken[inside]).min()))
        price += float(model.prices[chosen.bin]) * number
        if price >= price_cap:
            return None
        left -= chosen.taken * number
        stock.take(model, chosen.bin, number)
        nodes += [node_of(chosen)] * number
    return nodes


def node_of(filling: Filling) -> PackedNode:
    """A filling as a node of a plan."""
    return PackedNode(filling.bin, {int(i): int(filling.taken[i]) for i in np.flatnonzero(filling.taken)})


def _best_filling(
    model: PackingModel, guide: Guide, left: IntArray, bins: IntArray, meter: Meter
) -> Filling | None:
    """The filling with the most value per price; the cheapest one if it takes all and costs less."""
    work = max(1, _steps(left) * len(bins))
    weights = guide.weights[: max(4, MAX_DIRECTED_WORK // work)]
    meter.spent += _steps(left) * (STEP_WORK + len(weights) * len(bins) * _depth(model, left))
    found = greedy_contents(model, guide.values, left, bins, weights)
    if not found.taken.any():
        # Pods without value (they ask for nothing that is scarce) still need a place.
        flat = np.where(left > 0, np.maximum(guide.values, 1.0), 0.0)
        found = greedy_contents(model, flat, left, bins, weights)
        if not found.taken.any():
            return None
    prices = model.prices
    efficiency = _efficiencies(found, prices)
    order = np.lexsort((found.bins, -efficiency))[:SWAPPED_FILLINGS]
    fillings = [
        swapped(model, guide.values, left, found.filling(place, model.classes))
        for place in order.tolist()
        if found.taken[place].any()
    ]
    best = min(fillings, key=lambda f: (-_efficiency(f, prices), -f.value, f.bin))
    whole = [f for f in fillings if (f.taken == left).all()]
    every = np.flatnonzero(found.taken.sum(axis=1) == left.sum())
    if len(every):
        place = int(every[np.lexsort((found.bins[every], prices[found.bins[every]]))[0]])
        whole.append(found.filling(place, model.classes))
    if whole:
        cheapest = min(whole, key=lambda f: (prices[f.bin], f.bin))
        if prices[cheapest.bin] <= prices[best.bin]:
            return cheapest
    return best


def _steps(left: IntArray) -> int:
    return int((left > 0).sum())


def _depth(model: PackingModel, left: IntArray) -> int:
    """What a step looks at for each bin: dimensions, and classes in conflict."""
    clashing = 0 if model.conflicts is None else _steps(left) // 8
    return 1 + int(model.demands.shape[1]) // 3 + clashing


def _efficiencies(found: Contents, prices: FloatArray) -> FloatArray:
    """Value for the price; what is empty comes last, what costs nothing first."""
    price = prices[found.bins]
    ratio = np.where(price > 0, np.round(found.worth / np.maximum(price, 1e-12), 12), np.inf)
    return np.where(found.taken.any(axis=1), ratio, -np.inf)


def _efficiency(filling: Filling, prices: FloatArray) -> float:
    price = float(prices[filling.bin])
    return round(filling.value / price, 12) if price > 0 else float("inf")


def fill_best_fit(
    model: PackingModel, values: FloatArray, left: IntArray, stock: Stock, bins: IntArray
) -> list[PackedNode]:
    """Fill existing nodes: the most valuable pods first, each where least stays free."""
    contents = best_fit(model, values, left, model.capacities[bins].copy(), model.allowed[:, bins])
    nodes = []
    for place, content in sorted(contents.items()):
        bin_ = int(bins[place])
        stock.take(model, bin_)
        nodes.append(PackedNode(bin_, content))
    return nodes


def best_fit(
    model: PackingModel, values: FloatArray, left: IntArray, free: IntArray, allowed: BoolArray
) -> dict[int, dict[int, int]]:
    """What goes where, by the place of the node and by class; ``left`` and ``free`` are used up."""
    unit = np.maximum(model.capacities.max(axis=0), 1).astype(np.float64)
    contents: dict[int, dict[int, int]] = {}
    clashing = np.zeros((len(free), model.classes), dtype=np.bool_) if model.conflicts is not None else None
    order = np.argsort(-values, kind="stable")
    for index in order[left[order] > 0].tolist():
        demand = model.demands[index]
        able = allowed[index] & (free >= demand).all(axis=1)
        if clashing is not None:
            able &= ~clashing[:, index]
        places = np.flatnonzero(able)
        if not len(places):
            continue
        fit = np.where(demand > 0, free[places] // np.maximum(demand, 1), 1 << 40).min(axis=1)
        fit = np.minimum(fit, model.per_node[index])
        slack = ((free[places] - demand) / unit).sum(axis=1)
        for chosen in np.argsort(slack, kind="stable").tolist():
            number = min(int(fit[chosen]), int(left[index]))
            if number <= 0:
                break
            place = int(places[chosen])
            contents.setdefault(place, {})[index] = number
            free[place] -= demand * number
            left[index] -= number
            if clashing is not None and model.conflicts is not None:
                clashing[place] |= model.conflicts[index]
    return contents
