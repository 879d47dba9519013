"""A plan rehearsed: where would a scheduler, which knows nothing of it, put the pods, and what had to be bought then?

A plan puts pods together that fit each other. A scheduler gets them back one by one, in any order, and puts each where
it likes: all that a plan saves on full nodes can be lost that way, and a plan that is a little dearer but leaves the
scheduler no choice may be the better one. The scheduler here is the default one, as far as it matters: it puts a pod
where most stays free of what is scarcest. With one that packs, clusters rehearsed so came to no higher prices.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from holokube.base.rng import Rng
from holokube.karpenter.optimal.construct import Meter
from holokube.karpenter.optimal.model import UNLIMITED, BoolArray, IntArray, PackedNode
from holokube.karpenter.optimal.standing import Standing

MARKUP: Final = 1.12
"""What pods cost, above the going price, that are left over and bought for a few at a time."""
POD_WORK: Final = 400
"""What it takes to place one pod, besides the nodes that are looked at."""


class Rehearsal(Standing):
    """The cluster with the eyes of a scheduler."""

    def price_of(self, out: Collection[int], new_nodes: Sequence[PackedNode], rng: Rng, meter: Meter) -> float:
        """Of what there is to be bought when these nodes go and those come."""
        cluster, model = self._cluster, self._model
        order: list[int] = []
        for place in sorted(out):
            for index, number in sorted(self._contents[place].items()):
                order += [index] * number
        if not order:
            return 0.0
        rng.shuffle(order)
        kept = np.unique(np.array(order, dtype=np.int64))
        receivers = self._receivers(out, kept)
        bins = np.array([node.bin for node in new_nodes], dtype=np.int64)
        free = np.concatenate([self._free[receivers], model.capacities[bins]])
        held = np.concatenate([cluster.offers + receivers, bins])
        able = model.allowed[np.ix_(kept, held)]
        able[:, : len(receivers)] &= self._is_compatible(kept, receivers)
        meter.spent += len(order) * (POD_WORK + len(held) * (1 + model.demands.shape[1]) // 4)
        left, used = self._placed(order, kept, free, model.capacities[held], able)
        bought = float(model.prices[bins[used[len(receivers) :]]].sum())
        return bought + MARKUP * float(cluster.values[left].sum())

    def _receivers(self, out: Collection[int], kept: IntArray) -> IntArray:
        """Nodes that have room for the smallest of the pods."""
        receiving = self._stays & self._receives
        receiving[list(out)] = False
        least = self._model.demands[kept].min(axis=0)
        return np.flatnonzero(receiving & (self._free >= least).all(axis=1))

    def _placed(
        self, order: Sequence[int], kept: IntArray, free: IntArray, capacities: IntArray, able: BoolArray
    ) -> tuple[IntArray, BoolArray]:
        """Pods that found no place, by class, and which nodes got one. ``free`` and ``able`` are used up."""
        model, scored = self._model, list(self._cluster.scored)
        unit = 1.0 / np.maximum(capacities[:, scored], 1)
        row_of = {index: row for row, index in enumerate(kept.tolist())}
        numbers = np.zeros(able.shape, dtype=np.int64)
        left: list[int] = []
        used = np.zeros(len(free), dtype=np.bool_)
        for index in order:
            row = row_of[index]
            rest = free - model.demands[index]
            places = np.flatnonzero(able[row] & (rest >= 0).all(axis=1))
            if not len(places):
                left.append(index)
                continue
            chosen = int(places[np.argmax((rest[places][:, scored] * unit[places]).min(axis=1, initial=2.0))])
            free[chosen] = rest[chosen]
            used[chosen] = True
            if model.conflicts is not None:
                able[model.conflicts[kept, index], chosen] = False
            if model.per_node[index] < UNLIMITED:
                numbers[row, chosen] += 1
                able[row, chosen] &= numbers[row, chosen] < model.per_node[index]
        return np.array(left, dtype=np.int64), used
