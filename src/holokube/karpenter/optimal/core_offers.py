"""The offers that matter among thousands: at each place the most room for its price, in every size and direction.

Dominance drops what is never needed; this drops what is hardly ever needed, so it is for plans, never for bounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, FloatArray, IntArray, PackingModel
from holokube.karpenter.optimal.pooling import least_costs

SHARES: Final = (0.5, 0.2, 0.8, 0.35, 0.65, 0.05, 0.95)
"""How much the first of the two dearest dimensions counts."""
STEPS_PER_DOUBLING: Final = (4, 3, 2, 1)
"""How finely sizes are told apart: as finely as there are not too many."""
MAX_OFFERS: Final = 400


def core_offers(model: PackingModel, offers: int, places: Sequence[Hashable]) -> IntArray:
    """Of the first ``offers`` bins those worth considering, ascending; ``places`` says what only like is compared with.

    Sizes are kept apart (by steps of the price), as what is left over at the end wants a small node.
    """
    usable = np.flatnonzero(model.allowed[:, :offers].any(axis=0) & (model.max_counts[:offers] > 0))
    if not len(usable):
        return usable
    worth = _worth(model, usable)
    for steps in STEPS_PER_DOUBLING:
        found = _best_of_sizes(model, usable, worth, places, steps)
        if len(found) <= MAX_OFFERS:
            break
    return found


def _best_of_sizes(
    model: PackingModel, usable: IntArray, worth: FloatArray, places: Sequence[Hashable], steps: int
) -> IntArray:
    best: dict[tuple[Hashable, int, int], tuple[float, int]] = {}
    kept: set[int] = set()
    for number, bin_ in enumerate(usable.tolist()):
        price = float(model.prices[bin_])
        if price <= 0 or model.max_counts[bin_] < UNLIMITED:
            kept.add(bin_)
            continue
        size = int(np.floor(np.log2(price) * steps))
        for direction in range(len(worth)):
            key = (places[bin_], size, direction)
            rank = (-float(worth[direction, number]) / price, bin_)
            if key not in best or rank < best[key]:
                best[key] = rank
    kept.update(bin_ for _, bin_ in best.values())
    return np.array(sorted(kept), dtype=np.int64)


def _worth(model: PackingModel, bins: IntArray) -> FloatArray:
    """directions x bins: what the room is worth, as far as the pods allowed there could fill it."""
    totals = model.demands.astype(np.float64) * model.counts[:, None]
    wanted = model.allowed[:, bins].T.astype(np.float64) @ totals
    room = np.minimum(np.maximum(model.capacities[bins], 0), wanted)
    costs = least_costs(model, totals.sum(axis=0))
    main = np.argsort(-costs, kind="stable")[:2]
    rates = costs[main] / np.maximum(totals.sum(axis=0)[main], 1.0)
    amounts = room[:, main] * rates
    if amounts.shape[1] < 2:
        return np.repeat(amounts.T, len(SHARES), axis=0)
    return np.array([share * amounts[:, 0] + (1 - share) * amounts[:, 1] for share in SHARES])
