"""Consolidation on plain arrays: any number of nodes to any other number, as long as that saves money.

A node that stays keeps its pods and may get more; a node that goes gives all its pods away, to room on nodes that stay
or to new nodes, which must cost less than what goes. Steps of this kind are tried one after the other: first nodes
whose pods fit elsewhere, then a dozen nodes at a time and single ones for cheaper ones, then random handfuls of nodes,
new ones among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum
from typing import Final

import numpy as np

from holokube.base.rng import Rng
from holokube.karpenter.optimal.construct import STEP_WORK, Guide, Meter, Stock, best_fit, construct, guide_for
from holokube.karpenter.optimal.model import UNLIMITED, IntArray, PackedNode
from holokube.karpenter.optimal.standing import EPSILON, Cluster, Regrouping, Standing
from holokube.karpenter.pausing import Steps

MAX_TAKEN_OUT: Final = 6
CHUNK: Final = 12
"""So many nodes are packed anew together: more of them fit better, fewer are quicker."""
MAX_DIRECTIONS: Final = 9


def regroup(
    cluster: Cluster,
    *,
    rounds: int,
    seed: int,
    work: int = UNLIMITED,
    is_late: Callable[[], bool] = lambda: False,
) -> Steps[Regrouping]:
    """The best of three searches: wasteful nodes first, dear nodes first, nodes with few pods first.

    ``work`` bounds all of them together; what one leaves, the next may use. Step by step, as it may take long.
    """
    prices = np.array([node.price for node in cluster.nodes])
    worth = np.array([sum(cluster.values[i] * n for i, n in node.content.items()) for node in cluster.nodes])
    pods = np.array([sum(node.content.values()) for node in cluster.nodes], dtype=np.float64)
    best = Regrouping()
    meter = Meter()
    orders = (worth - prices, -prices, pods / np.maximum(prices, 1e-9))
    for number, order in enumerate(orders):
        share = work // len(orders) * (number + 1)
        search = _Search(cluster, Rng(seed).fork(str(number)), meter, share, is_late)
        yield from search.run(np.argsort(order, kind="stable").tolist(), rounds)
        if search.result.savings > best.savings + EPSILON:
            best = search.result
        if is_late() or meter.spent >= work:
            break
    return best


class _Search(Standing):
    def __init__(
        self, cluster: Cluster, rng: Rng, meter: Meter, work: int, is_late: Callable[[], bool]
    ) -> None:
        super().__init__(cluster)
        self._rng = rng
        self._meter = meter
        self._work = work
        self._late = is_late

    def _is_late(self) -> bool:
        return self._meter.spent >= self._work or self._late()

    def run(self, order: list[int], rounds: int) -> Steps[None]:
        candidates = [place for place in order if self._cluster.nodes[place].is_candidate]
        for place in candidates:
            if self._is_late() or self._is_full():
                break
            if self._is_within_budget([place]):
                self._attempt_elsewhere(place)
                yield
        for size in (CHUNK, 1):
            staying = [place for place in candidates if self._stays[place]]
            for start in range(0, len(staying), size):
                if self._is_late():
                    return
                self._attempt(self._affordable(staying[start : start + size]), [])
                yield
        for _ in range(rounds):
            if self._is_late():
                return
            out, new = self._choose(candidates)
            if out or new:
                self._attempt(out, new)
                yield

    def _is_full(self) -> bool:
        return len(self.result.removed) >= self._cluster.most_removed

    def _attempt_elsewhere(self, place: int) -> bool:
        """One node whose pods all find room on others goes for nothing."""
        model, cluster, content = self._model, self._cluster, self._contents[place]
        kept = np.array(sorted(content), dtype=np.int64)
        counts = np.array([content[index] for index in kept.tolist()], dtype=np.int64)
        receiving = self._stays & self._receives
        receiving[place] = False
        receivers = np.flatnonzero(receiving & (self._free >= 0).all(axis=1))
        self._meter.spent += (1 + len(kept)) * (STEP_WORK + 2 * len(receivers))
        made: list[PackedNode] = []
        if len(kept):
            allowed = model.allowed[np.ix_(kept, cluster.offers + receivers)]
            if not allowed.any(axis=1).all():
                return False
            allowed &= self._is_compatible(kept, receivers)
            part = model.of_classes(kept, counts, model.max_counts, self._limits)
            left = counts.copy()
            found = best_fit(part, cluster.values[kept], left, self._free[receivers].copy(), allowed)
            if left.any():
                return False
            made = [PackedNode(cluster.offers + int(receivers[at]), taken) for at, taken in sorted(found.items())]
        self._apply([place], [], kept, made, cluster.nodes[place].price)
        return True

    def _choose(self, candidates: list[int]) -> tuple[list[int], list[int]]:
        """Running nodes, by waste or at random, and perhaps some of the new ones to think over again."""
        staying = [place for place in candidates if self._stays[place]]
        out: list[int] = []
        for _ in range(1 + self._rng.randrange(MAX_TAKEN_OUT)):
            if staying:
                # The front of the list is where the order sees most to gain.
                front = self._rng.randrange(len(staying)) if self._rng.random() < 0.5 else self._rng.randrange(
                    max(len(staying) // 4, 1)
                )  # fmt: skip
                place = staying[front]
                if place not in out:
                    out.append(place)
        new = sorted({
            self._rng.randrange(len(self.result.new_nodes)) for _ in range(self._rng.randrange(3))
        }) if self.result.new_nodes else []  # fmt: skip
        return out, new

    def _attempt(self, out: list[int], new: list[int]) -> bool:
        """Take nodes out, place their pods elsewhere; keep it if it saves money."""
        if not (out or new) or not self._is_within_budget(out):
            return False
        cluster, model = self._cluster, self._model
        counts = np.zeros(model.classes, dtype=np.int64)
        for content in (*(self._contents[p] for p in out), *(self.result.new_nodes[p].taken for p in new)):
            for index, number in content.items():
                counts[index] += number
        price = fsum(cluster.nodes[p].price for p in out)
        churn = cluster.least_saving * price
        price += float(sum(model.prices[self.result.new_nodes[p].bin] for p in new))
        limits = self._limits.copy()
        for bin_ in (*(cluster.offers + p for p in out), *(self.result.new_nodes[p].bin for p in new)):
            limits += model.limit_weights[:, bin_]
        kept = np.flatnonzero(counts)
        made: list[PackedNode] = []
        if len(kept):
            part, bins = self._part(kept, counts, limits, out, new)
            if not part.allowed.any(axis=1).all():
                return False
            left = part.counts.copy()
            guide = guide_for(part, cluster.values[kept])
            guide = Guide(guide.values, guide.weights[:MAX_DIRECTIONS])
            found = construct(part, guide, left, Stock.of(part), price - churn - EPSILON, self._meter)
            if found is None or left.any():
                return False
            made = [PackedNode(int(bins[node.bin]), node.taken) for node in found]
        self._apply(out, new, kept, made, price)
        return True

    def _apply(
        self, out: list[int], new: list[int], kept: IntArray, made: Sequence[PackedNode], price: float
    ) -> None:
        for place in sorted(new, reverse=True):
            gone = self.result.new_nodes.pop(place)
            self._limits += self._model.limit_weights[:, gone.bin]
        self.join(self._planned(out, kept, made, price))
