"""Bins that are never needed: another holds the same pods and costs no more.

A catalogue of 800 types in three zones and two capacity types is 4,800 bins, of which some dozens matter.
"""

from __future__ import annotations

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, IntArray, PackingModel


def useful_bins(model: PackingModel) -> IntArray:
    """Indexes of the bins worth considering, ascending.

    A bin is dropped only for one that may be opened without end, takes no more of any limit, and whose capacity
    counts as at least as large. What exceeds all that the pods it allows could use together counts as equal.
    """
    alive = np.flatnonzero(model.allowed[model.counts > 0].any(axis=0) & (model.max_counts > 0))
    usable = _usable_capacities(model)
    # The cheapest first, and among equals the largest, so that whoever dominates a bin is seen before it.
    order = sorted(alive.tolist(), key=lambda b: (model.prices[b], *(-usable[b]).tolist(), b))
    allowed = model.allowed.T
    kept: list[int] = []
    rivals: list[int] = []
    for bin_ in order:
        if rivals and _is_dominated(model, usable, allowed, bin_, np.array(rivals)):
            continue
        kept.append(bin_)
        if model.max_counts[bin_] >= UNLIMITED:
            rivals.append(bin_)
    return np.array(sorted(kept), dtype=np.int64)


def _usable_capacities(model: PackingModel) -> IntArray:
    """Capacities cut to what the allowed pods ask for in all."""
    totals = model.demands.astype(np.float64) * model.counts[:, None]
    wanted = model.allowed.T.astype(np.float64) @ totals
    return np.minimum(model.capacities, np.ceil(np.minimum(wanted * (1 + 1e-9), 4e18)).astype(np.int64))


def _is_dominated(
    model: PackingModel, usable: IntArray, allowed: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    bin_: int, rivals: IntArray,
) -> bool:  # fmt: skip
    larger = (model.capacities[rivals] >= usable[bin_]).all(axis=1)
    rivals = rivals[larger]
    if len(rivals) and len(model.limit_weights):
        rivals = rivals[(model.limit_weights[:, rivals] <= model.limit_weights[:, [bin_]]).all(axis=0)]
    if not len(rivals):
        return False
    return bool((allowed[rivals] | ~allowed[bin_]).all(axis=1).any())
