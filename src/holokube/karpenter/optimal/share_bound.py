"""A sharper quick bound: each class is shared out among bins, and takes of every dimension where it goes.

Besides the sums of amounts it knows what fractions hide: where a pod takes more than half of a bin, no second such pod
fits; where it takes more than a third, no third; and so on. The function that says so for an amount ``x`` of a bin of
size one is ``floor((k + 1) x) / k``; whatever fits in the bin sums up to at most one by it, too. So it does if pods
below a share count as nothing, and those that leave room for nothing above it as the whole bin.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, FloatArray, IntArray, PackingModel
from holokube.karpenter.optimal.resource_bound import lowered
from holokube.karpenter.optimal.solver_library import INFINITY, LinearProgram

MAX_SHARES: Final = 30_000
"""Classes times bins that a program is made for, with three dimensions; with more of them, fewer."""
MAX_FINE_SHARES: Final = 8_000
"""Up to so many, all steps and cuts are looked at; beyond, only the coarse ones."""
STEPS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
COARSE_STEPS: Final = (1, 2, 3, 5)
CUTS: Final = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
"""Percent of a bin below which pods are left aside."""
_CUT_AT: Final = (CUTS, tuple(100 - percent for percent in CUTS))
_PRODUCTS_FIT: Final = (1 << 63) // 100
"""Amounts below it can be multiplied by percents."""


def share_bound(model: PackingModel, max_shares: int = MAX_SHARES) -> tuple[float, FloatArray] | None:
    """The bound, and what one pod of each class costs by it; None where the program would be too large."""
    classes = np.flatnonzero(model.allowed.any(axis=1) & (model.counts > 0))
    shares = int(model.allowed[classes].sum())
    if not len(classes) or shares * model.demands.shape[1] > max_shares * 3:
        return None
    program = LinearProgram()
    upper = np.where(model.max_counts >= UNLIMITED, INFINITY, model.max_counts)
    program.add_columns(model.prices, np.zeros(model.bins), upper)
    column = np.full(model.allowed.shape, -1, dtype=np.int64)
    taking = np.zeros_like(model.allowed)
    taking[classes] = model.allowed[classes]
    column[taking] = model.bins + np.arange(shares)
    program.add_columns(np.zeros(shares), np.zeros(shares), np.full(shares, INFINITY))
    for index in classes.tolist():
        mine = column[index][taking[index]]
        program.add_row(float(model.counts[index]), INFINITY, mine, np.ones(len(mine)))
    for bin_ in range(model.bins):
        _add_bin(program, model, bin_, column[:, bin_], is_fine=shares <= MAX_FINE_SHARES)
    for weights, total in zip(model.limit_weights, model.limit_totals, strict=True):
        used = np.flatnonzero(weights)
        unit = float(max(int(weights.max(initial=1)), 1))
        program.add_row(-INFINITY, float(total) / unit, used, weights[used] / unit)
    answer = program.solve()
    if not answer.found:
        return None
    values = np.zeros(model.classes)
    values[classes] = np.maximum(answer.row_duals[: len(classes)], 0.0)
    return lowered(answer.bound), values


def _add_bin(
    program: LinearProgram, model: PackingModel, bin_: int, column: IntArray, *, is_fine: bool
) -> None:
    """What goes to a bin fits in as many as are bought, by every dimension and every step."""
    inside = np.flatnonzero(column >= 0)
    columns = np.append(column[inside], bin_)
    for dimension in range(model.demands.shape[1]):
        capacity = int(model.capacities[bin_, dimension])
        demand = model.demands[inside, dimension]
        if capacity <= 0 or not demand.any():
            continue
        amounts = shares_taken(demand, capacity, is_fine=is_fine)
        amounts = np.column_stack([amounts, np.full(len(amounts), -1.0)])[amounts.any(axis=1)]
        there = amounts != 0
        lower = [-INFINITY] * len(amounts)
        program.add_rows(
            lower, 0.0, there.sum(axis=1), np.broadcast_to(columns, amounts.shape)[there], amounts[there]
        )


def shares_taken(demand: IntArray, capacity: int, *, is_fine: bool) -> FloatArray:
    """What each pod takes of a bin: by itself, by every step and by every cut; in integers, so that it is exact."""
    whole = demand if max(capacity, int(demand.max())) < _PRODUCTS_FIT else demand.astype(object)
    share = demand / capacity
    # ``floor((k + 1) x) / k``, but ``x`` itself where ``(k + 1) x`` is whole.
    steps = np.array(STEPS if is_fine else COARSE_STEPS)[:, None]
    parts = whole * (steps + 1)
    stepped = np.where(parts % capacity == 0, share, (parts // capacity).astype(np.float64) / steps)
    if not is_fine:
        return np.vstack([share, stepped])
    # Nothing below the cut, everything above what the cut leaves, and the share itself in between.
    low, high = (np.array([one * capacity for one in at], dtype=whole.dtype)[:, None] for at in _CUT_AT)
    cut = np.where(whole * 100 > high, 1.0, np.where(whole * 100 < low, 0.0, share))
    return np.vstack([share, stepped, cut])
