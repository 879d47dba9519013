"""Making a plan cheaper: take a few nodes out, pack their pods anew, keep the result if it is better.

Merging two nodes, splitting one, choosing a smaller one are all cases of this. Which nodes are tried is drawn from
a seeded stream, biased towards those whose price is least justified by what they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from holokube.base.rng import Rng
from holokube.karpenter.optimal.construct import Guide, Meter, Stock, construct, guide_for
from holokube.karpenter.optimal.model import FloatArray, IntArray, PackedNode, Packing, PackingModel, packing_of
from holokube.karpenter.pausing import Steps, without_pauses

MAX_PODS_REPACKED: Final = 90
"""Small parts are repacked quickly and well; large ones gain nothing over a new construction."""
NOISES: Final = (0.0, 0.02, 0.06, 0.15, 0.3)
"""By how much values are shaken before packing anew: without shaking the same plan would come out again."""

PATIENCE: Final = 0.0005
"""How much dearer the whole plan may become by one step, as a share, when a search begins."""


class Improver:
    """A plan under improvement."""

    def __init__(
        self, model: PackingModel, values: FloatArray, packing: Packing, rng: Rng, meter: Meter | None = None
    ) -> None:
        self._model = model
        self._values = values
        self._rng = rng
        self._meter = meter or Meter()
        self._stock = Stock.of(model)
        self._patience = 0.0
        self.nodes: list[PackedNode] = list(packing.nodes)
        self._unplaced = np.zeros(model.classes, dtype=np.int64)
        for index, number in packing.unplaced.items():
            self._unplaced[index] = number
        for node in self.nodes:
            self._stock.take(model, node.bin)
        self._useful_size = max(int(sum(sum(n.taken.values()) for n in self.nodes) / max(len(self.nodes), 1)), 1)

    @property
    def packing(self) -> Packing:
        """The plan as it stands."""
        return packing_of(self._model, self.nodes)

    def run(self, rounds: int, is_enough: Callable[[float], bool], is_late: Callable[[], bool]) -> int:
        """Up to so many attempts; ends early when the price is good enough or time is up. Attempts made."""
        return without_pauses(self.steps(rounds, is_enough, is_late))

    def steps(self, rounds: int, is_enough: Callable[[float], bool], is_late: Callable[[], bool]) -> Steps[int]:
        """The same attempt by attempt."""
        best, best_rank = list(self.nodes), self._rank()
        done = 0
        for done in range(rounds):
            if (is_enough(best_rank[1]) and not best_rank[0]) or is_late() or not self.nodes:
                break
            # Early on, a little worse is good enough: otherwise the search soon ends in a dead end.
            self._patience = PATIENCE * best_rank[1] * max(1 - 2 * done / rounds, 0.0)
            if self._attempt() and (rank := self._rank()) < best_rank:
                best, best_rank = list(self.nodes), rank
            yield
        self._restore(best)
        return done

    def _rank(self) -> tuple[int, float]:
        return int(self._unplaced.sum()), round(self._price(self.nodes), 9)

    def _restore(self, nodes: list[PackedNode]) -> None:
        for node in self.nodes:
            self._stock.take(self._model, node.bin, -1)
        self.nodes = nodes
        self._unplaced = self._model.counts.copy()
        for node in nodes:
            self._stock.take(self._model, node.bin)
            for index, number in node.taken.items():
                self._unplaced[index] -= number

    def _price(self, nodes: list[PackedNode]) -> float:
        return float(sum(self._model.prices[node.bin] for node in nodes))

    def _attempt(self) -> bool:
        """Repack one random part; whether the plan changed."""
        model = self._model
        out = self._choose()
        nodes = [self.nodes[place] for place in out]
        counts = self._unplaced.copy()
        for node in nodes:
            for index, number in node.taken.items():
                counts[index] += number
        kept = np.flatnonzero(counts)
        before_pods = int(self._unplaced.sum())
        before_price = self._price(nodes)
        for node in nodes:
            self._stock.take(model, node.bin, -1)
        part = model.of_classes(kept, counts[kept], self._stock.bins, self._stock.limits)
        guide = self._shaken(part, kept)
        left = part.counts.copy()
        cap = float("inf") if before_pods else before_price + self._patience + 1e-9
        made = construct(part, guide, left, Stock(self._stock.bins.copy(), self._stock.limits.copy()), cap, self._meter)
        if made is None or not self._is_better(before_pods, before_price, len(nodes), left, made):
            for node in nodes:
                self._stock.take(model, node.bin)
            return False
        gone = set(out)
        self.nodes = [node for place, node in enumerate(self.nodes) if place not in gone]
        for node in made:
            self._stock.take(model, node.bin)
            self.nodes.append(PackedNode(node.bin, {int(kept[i]): n for i, n in node.taken.items()}))
        self._unplaced[:] = 0
        self._unplaced[kept] = left
        return True

    def _is_better(
        self, pods: int, price: float, nodes: int, left: IntArray, made: list[PackedNode]
    ) -> bool:
        """Not worse: an equally good but different plan opens other ways."""
        new = (int(left.sum()), round(self._price(made) - self._patience, 9))
        old = (pods, round(price, 9))
        return new < old or (new == old and len(made) <= nodes)

    def _shaken(self, part: PackingModel, kept: IntArray) -> Guide:
        noise = NOISES[self._rng.randrange(len(NOISES))]
        values = self._values[kept]
        if noise:
            values = values * np.array([1 + noise * (2 * self._rng.random() - 1) for _ in range(len(kept))])
        # Large pods are harder to place later: some attempts value them a little above the going rate.
        lean = (0.0, 0.0, 0.04, 0.1)[self._rng.randrange(4)]
        if lean:
            values = values * (np.maximum(values, 1e-12) / max(float(values.max()), 1e-12)) ** lean
        return guide_for(part, values)

    def _choose(self) -> list[int]:
        """Places of the nodes to take out: one by its waste, the others at random."""
        waste = np.array([
            max(float(self._model.prices[n.bin]) - sum(self._values[i] * k for i, k in n.taken.items()), 0.0)
            for n in self.nodes
        ])  # fmt: skip
        waste += 1e-9 + 0.02 * float(waste.mean())
        wanted = 1 + self._rng.randrange(5)
        chosen: list[int] = []
        pods = int(self._unplaced.sum())
        while len(chosen) < min(wanted, len(self.nodes)):
            place = self._draw(waste) if self._rng.random() < 0.6 else self._rng.randrange(len(self.nodes))
            if place in chosen:
                wanted -= 1
                continue
            pods += sum(self.nodes[place].taken.values())
            if chosen and pods > MAX_PODS_REPACKED + 2 * self._useful_size:
                break
            chosen.append(place)
        return chosen or [self._rng.randrange(len(self.nodes))]

    def _draw(self, weights: FloatArray) -> int:
        target = self._rng.random() * float(weights.sum())
        return min(int(np.searchsorted(np.cumsum(weights), target)), len(weights) - 1)
