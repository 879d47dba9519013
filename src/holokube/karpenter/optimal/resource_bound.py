"""The quick lower bound: enough of every resource must be bought for those who need it.

Pods with the same choice of bins are one group. Of each resource, a group needs its sum, taken from bins it may
use; which pod takes it where is not asked, so no plan can be cheaper. The dual values are the going rates of
resources and price each class: a good first guess for everything that follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, FloatArray, PackingModel
from holokube.karpenter.optimal.pooling import Pooled, pooled
from holokube.karpenter.optimal.solver_library import INFINITY, LinearProgram

MAX_WHOLE_COLUMNS: Final = 3000
WHOLE_WORK: Final = 150_000
"""Columns times branch-and-bound nodes that a bound with whole nodes may take."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceBound:
    """A price no plan can be below, and what one pod of each class costs at these rates."""

    price: float
    class_values: FloatArray
    rates: FloatArray
    """bins x dimensions: what a unit of capacity is worth there."""
    small: Pooled | None = None
    """The model as it was shrunk for that; None if no pod has a place."""


def resource_bound(model: PackingModel) -> ResourceBound:
    """The bound for all pods that some bin allows, with fractions of nodes; other pods are left out."""
    nothing = ResourceBound(0.0, np.zeros(model.classes), np.zeros(model.capacities.shape))
    small = pooled(model)
    if small is None:
        return nothing
    program, capacity_row = _program(small)
    answer = program.solve()
    if not answer.found:
        # Bins that run out (nodes that exist, limits) cannot hold everything: nothing useful is proven.
        return replace(nothing, small=small)
    rates = np.zeros(small.capacities.shape)
    for (pool, dimension), row in capacity_row.items():
        rates[pool, dimension] = max(0.0, -answer.row_duals[row]) / small.scale[dimension]
    of_bins = np.zeros(model.capacities.shape)
    of_bins[:, small.dimensions] = rates[small.pool_of]
    return ResourceBound(lowered(answer.bound), _class_values(model, of_bins), of_bins, small)


def whole_node_bound(
    model: PackingModel, *, max_nodes: int, limit_s: float = INFINITY, small: Pooled | None = None
) -> float:
    """The same with whole nodes only: higher, most of all for few pods. Stopped early it is still a bound.

    ``small`` is the model shrunk, if that has been done.
    """
    small = small or pooled(model)
    if small is None or limit_s <= 0:
        return 0.0
    program, _ = _program(small)
    if program.columns > MAX_WHOLE_COLUMNS:
        return 0.0
    program.require_integers(np.flatnonzero(small.prices > 0))
    # Large programs take long for every node, so they get fewer.
    nodes = min(max_nodes, WHOLE_WORK // max(program.columns, 1))
    answer = program.solve(max_nodes=nodes, relative_gap=1e-4, limit_s=limit_s, only_bound=True)
    return lowered(answer.bound) if np.isfinite(answer.bound) else 0.0


def lowered(price: float) -> float:
    """A bound must hold in spite of the solver's tolerances."""
    return max(0.0, price * (1 - 1e-6) - 1e-9)


def _class_values(model: PackingModel, rates: FloatArray) -> FloatArray:
    """The cheapest place for one pod of each class at the going rates."""
    costs = model.demands.astype(np.float64) @ rates.T
    costs[~model.allowed] = np.inf
    values = costs.min(axis=1, initial=np.inf)
    return np.where(np.isfinite(values), values, 0.0)


def _program(small: Pooled) -> tuple[LinearProgram, dict[tuple[int, int], int]]:
    pools = len(small.prices)
    program = LinearProgram()
    upper = np.where(small.max_counts >= UNLIMITED, INFINITY, small.max_counts)
    program.add_columns(small.prices, np.zeros(pools), upper)
    by_need: dict[tuple[int, int], list[int]] = {}
    by_capacity: dict[tuple[int, int], list[int]] = {}
    column = pools
    for group, dimension in np.argwhere(small.needs > 0).tolist():
        for pool in np.flatnonzero(small.masks[group]).tolist():
            by_need.setdefault((group, dimension), []).append(column)
            by_capacity.setdefault((pool, dimension), []).append(column)
            column += 1
    flows = column - pools
    program.add_columns(np.zeros(flows), np.zeros(flows), np.full(flows, INFINITY))
    flat = [column for columns in by_need.values() for column in columns]
    wanted = [float(small.needs[one]) for one in by_need]
    program.add_rows(wanted, INFINITY, [*map(len, by_need.values())], flat, np.ones(len(flat)))
    flat = []
    amounts: list[float] = []
    for (pool, dimension), columns in by_capacity.items():
        flat += (*columns, pool)
        amounts += (*([1.0] * len(columns)), -float(small.capacities[pool, dimension]))
    lengths = [len(columns) + 1 for columns in by_capacity.values()]
    program.add_rows([-INFINITY] * len(lengths), 0.0, lengths, flat, amounts)
    capacity_row = {one: row for row, one in enumerate(by_capacity, start=len(by_need))}
    for weights, total in zip(small.limit_weights, small.limit_totals, strict=True):
        used = np.flatnonzero(weights)
        unit = float(max(int(weights.max(initial=1)), 1))
        program.add_row(-INFINITY, float(total) / unit, used, weights[used] / unit)
    return program, capacity_row
