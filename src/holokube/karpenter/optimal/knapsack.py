"""Filling one node with the most valuable pods: by many greedy orders at once, and exactly.

Given a value for each class, the best content of every bin is a knapsack with several dimensions. The greedy way
fills all bins in all directions (how much each dimension counts as size) in one vectorised pass; swaps then mend
the best. The exact way is a small integer program, whose bound is valid even when it is stopped early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from holokube.karpenter.optimal.model import FloatArray, IntArray, PackingModel
from holokube.karpenter.optimal.solver_library import INFINITY, LinearProgram

_FINE_SHARES: Final = (
    0.5, 0.25, 0.75, 0.375, 0.625, 0.125, 0.875, 0.44, 0.56, 0.31, 0.69, 0.19, 0.81, 0.06, 0.94, 0.02, 0.98
)  # fmt: skip
_COARSE_SHARES: Final = (0.2, 0.5, 0.8)


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """The content found for a bin: pods per class, and their value."""

    bin: int
    taken: IntArray
    value: float


def directions(dimensions: int, main: tuple[int, ...]) -> FloatArray:
    """Weights of the dimensions in a pod's size: fine mixtures of the two main ones, coarse ones of the rest.

    The most useful come first, so that a caller short of time may take only some.
    """
    rows: list[FloatArray] = []
    base = np.full(dimensions, 0.01)
    for place, first in enumerate(main):
        for second in main[place + 1 :]:
            for share in _FINE_SHARES if not rows else _COARSE_SHARES:
                row = base.copy()
                row[first], row[second] = share, 1 - share
                rows.append(row)
    for first in main:
        row = base.copy()
        row[first] = 1.0
        rows.append(row)
    rows.append(np.ones(dimensions))
    return np.array(rows)


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The greedy contents of many bins at once."""

    bins: IntArray
    classes: IntArray
    """The classes that ``taken`` is about."""
    taken: IntArray
    """bins x classes."""
    worth: FloatArray
    """Per bin."""

    def filling(self, place: int, all_classes: int) -> Filling:
        """One of them."""
        chosen = np.zeros(all_classes, dtype=np.int64)
        chosen[self.classes] = self.taken[place]
        return Filling(int(self.bins[place]), chosen, float(self.worth[place]))


def greedy_contents(
    model: PackingModel, values: FloatArray, left: IntArray, bins: IntArray, weights: FloatArray
) -> Contents:
    """For every bin the best content over all directions, from at most ``left`` pods of each class."""
    useful = np.flatnonzero((values > 1e-12) & (left > 0) & model.allowed[:, bins].any(axis=1))
    if not len(useful) or not len(bins):
        return Contents(bins[:0], useful, np.zeros((0, len(useful)), dtype=np.int64), np.zeros(0))
    taken = _fill_all(model, values, left, bins, weights, useful)
    worth = taken.astype(np.float64) @ values[useful]
    best = worth.argmax(axis=0)
    places = np.arange(len(bins))
    return Contents(bins, useful, taken[best, places], worth[best, places])


def greedy_fillings(
    model: PackingModel, values: FloatArray, left: IntArray, bins: IntArray, weights: FloatArray
) -> list[Filling]:
    """The same as a list."""
    found = greedy_contents(model, values, left, bins, weights)
    return [found.filling(place, model.classes) for place in range(len(found.bins))]


def _fill_all(
    model: PackingModel, values: FloatArray, left: IntArray, bins: IntArray, weights: FloatArray, useful: IntArray
) -> IntArray:
    """directions x bins x useful classes: what a greedy pass in order of value per size takes."""
    demands = model.demands[useful]
    capacities = model.capacities[bins]
    inverse = 1.0 / np.maximum(capacities, 1).astype(np.float64)
    # size[direction, bin, class]: the share of the bin that a pod takes, weighted.
    size = np.einsum("dr,br,ir->dbi", weights, inverse, demands.astype(np.float64), optimize=True)
    order = np.argsort(-values[useful] / np.maximum(size, 1e-12), axis=2, kind="stable")
    rows, columns = len(weights), len(bins)
    free = np.broadcast_to(capacities, (rows, columns, capacities.shape[1])).copy()
    allowed = model.allowed[useful][:, bins]
    conflicts = None if model.conflicts is None else model.conflicts[np.ix_(useful, useful)]
    taken = np.zeros((rows, columns, len(useful)), dtype=np.int64)
    row_at, column_at = np.arange(rows)[:, None], np.arange(columns)[None, :]
    most = np.minimum(left, model.per_node)[useful]
    single = bool((most == 1).all())
    for step in range(len(useful)):
        item = order[:, :, step]
        demand = demands[item]
        if single:
            number = (demand <= free).all(axis=2).astype(np.int64)
        else:
            fit = np.where(demand > 0, free // np.maximum(demand, 1), 1 << 40).min(axis=2)
            number = np.minimum(np.maximum(fit, 0), most[item])
        number *= allowed[item, column_at]
        if conflicts is not None:
            number *= ~((taken > 0) & conflicts[item]).any(axis=2)
        if number.any():
            free -= demand * number[:, :, None]
            taken[row_at, column_at, item] = number
    return taken


def swapped(model: PackingModel, values: FloatArray, left: IntArray, filling: Filling, rounds: int = 40) -> Filling:
    """The filling after replacing one pod by a more valuable one, as long as that helps, and topping up."""
    taken = filling.taken.copy()
    bin_ = filling.bin
    allowed = model.allowed[:, bin_] & (values > 1e-12)
    most = np.minimum(left, model.per_node)
    free = model.capacities[bin_] - taken @ model.demands
    for _ in range(rounds):
        inside = np.flatnonzero(taken)
        outside = np.flatnonzero(allowed & (taken < most))
        if model.conflicts is not None and len(outside):
            # With conflicts, only pods that clash with nothing inside may come in.
            clash = model.conflicts[np.ix_(outside, inside)].any(axis=1)
            outside = outside[~clash]
        if not len(outside):
            break
        fits = (model.demands[outside] <= free).all(axis=1)
        if fits.any():
            best = outside[fits][np.argmax(values[outside[fits]])]
            taken[best] += 1
            free = free - model.demands[best]
            continue
        if not len(inside):
            break
        gain = values[outside][None, :] - values[inside][:, None]
        room = free[None, None, :] + model.demands[inside][:, None, :] - model.demands[outside][None, :, :]
        gain[(room < 0).any(axis=2)] = 0.0
        place = int(np.argmax(gain))
        if gain.flat[place] <= 1e-12:
            break
        gone, come = inside[place // len(outside)], outside[place % len(outside)]
        taken[gone] -= 1
        taken[come] += 1
        free = free + model.demands[gone] - model.demands[come]
    return Filling(bin_, taken, float(taken @ values))


def relaxed_values(model: PackingModel, values: FloatArray, bins: IntArray, rates: FloatArray) -> FloatArray:
    """For each bin an upper bound on any filling's value, from dimension prices ``rates`` (bins x dimensions).

    Paying for capacity at any rates and keeping what each pod is worth above them bounds the knapsack.
    """
    profit = values[:, None] - model.demands.astype(np.float64) @ rates.T
    most = _most_alone(model, bins)
    profit = np.where(model.allowed[:, bins], np.maximum(profit, 0.0), 0.0)
    capacity = (model.capacities[bins] * rates).sum(axis=1)
    return np.asarray(capacity + (profit * most).sum(axis=0), dtype=np.float64)


def _most_alone(model: PackingModel, bins: IntArray) -> IntArray:
    """classes x bins: how many pods of a class a bin holds at most."""
    demand = model.demands[:, None, :]
    fit = np.where(demand > 0, model.capacities[bins][None, :, :] // np.maximum(demand, 1), 1 << 40).min(axis=2)
    most = np.minimum(np.maximum(fit, 0), np.minimum(model.counts, model.per_node)[:, None])
    return np.asarray(most, dtype=np.int64)


def exact_filling(
    model: PackingModel, values: FloatArray, bin_: int, *, max_nodes: int, limit_s: float = INFINITY
) -> tuple[Filling, float]:
    """The best filling of a bin, and an upper bound on the value of any. Conflicts between classes are kept."""
    most = _most_alone(model, np.array([bin_]))[:, 0]
    items = np.flatnonzero(model.allowed[:, bin_] & (values > 1e-12) & (most > 0))
    taken = np.zeros(model.classes, dtype=np.int64)
    if not len(items):
        return Filling(bin_, taken, 0.0), 0.0
    program = LinearProgram()
    program.add_columns(-values[items], np.zeros(len(items)), most[items].astype(np.float64))
    program.require_integers(np.arange(len(items)))
    for dimension, capacity in enumerate(model.capacities[bin_].tolist()):
        demand = model.demands[items, dimension]
        if int((demand * most[items]).sum()) > capacity:
            used = np.flatnonzero(demand)
            unit = float(max(capacity, 1))
            program.add_row(-INFINITY, capacity / unit, used, demand[used] / unit)
    if model.conflicts is not None:
        _add_conflicts(model, program, items, most)
    answer = program.solve(max_nodes=max_nodes, relative_gap=1e-4, limit_s=limit_s)
    # A search that was stopped at once has no bound: what fits fractionally is all that is known.
    bound = -answer.bound if np.isfinite(answer.bound) else float(values[items] @ most[items])
    if answer.found:
        taken[items] = np.rint(answer.values[: len(items)]).astype(np.int64)
        if (taken @ model.demands > model.capacities[bin_]).any():
            # Within the solver's tolerance, yet one byte too much: not a filling.
            taken[:] = 0
    return Filling(bin_, taken, float(taken @ values)), bound


def _add_conflicts(model: PackingModel, program: LinearProgram, items: IntArray, most: IntArray) -> None:
    """A class with several pods needs a switch before it can exclude another; single pods exclude directly."""
    assert model.conflicts is not None
    clash = model.conflicts[np.ix_(items, items)]
    pairs = [(int(a), int(b)) for a, b in np.argwhere(clash) if a < b]
    if not pairs:
        return
    clashing = sorted({place for pair in pairs for place in pair})
    switch = {place: len(items) + number for number, place in enumerate(clashing)}
    program.add_columns(np.zeros(len(clashing)), np.zeros(len(clashing)), np.ones(len(clashing)))
    program.require_integers(np.array(list(switch.values())))
    for place, column in switch.items():
        program.add_row(-INFINITY, 0.0, np.array([place, column]), np.array([1.0, -float(most[items[place]])]))
    for a, b in pairs:
        program.add_row(-INFINITY, 1.0, np.array([switch[a], switch[b]]), np.ones(2))
