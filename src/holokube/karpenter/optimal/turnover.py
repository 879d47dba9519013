"""Which nodes to turn over in one command: those that give least for their price, for what a rehearsal says saves most.

The pods of the worst nodes are packed anew, for many nodes at a time and for few, onto small nodes and onto large ones.
Each such plan is rehearsed, and counts by what would come of it. So a command is found in the time it takes to pack
some dozens of plans, whatever the size of the cluster, and one that would not come true is not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import Final, NamedTuple

import numpy as np

from holokube.base.rng import Rng
from holokube.karpenter.optimal.construct import Guide, Meter, Stock, construct, fill_best_fit, guide_for
from holokube.karpenter.optimal.model import UNLIMITED, FloatArray, PackedNode, PackingModel
from holokube.karpenter.optimal.rehearsal import Rehearsal
from holokube.karpenter.optimal.standing import EPSILON, Cluster, Regrouping, Standing
from holokube.karpenter.pausing import Steps

MAX_DIRECTIONS: Final = 9
LARGEST: Final = (UNLIMITED, 16, 8, 4)
"""How dear a new node may be, in prices of an average pod. What was planned for small nodes a scheduler meets more
often, as few pods fit a small gap; large ones waste less on what every node needs for itself."""
SLACKS: Final = (0.0, 0.03)
"""The share of new nodes that is planned to stay free."""
FEWEST: Final = 3
MANY_COST: Final = 0.5
"""More than a fifth of the nodes go at once only if what replaces them costs at most this share."""
LOT: Final = 200
"""Pods that are packed together."""
HANDFULS: Final = 60
"""Random choices of nodes, when the worst have been tried; and one for so many more candidates:"""
CANDIDATES_PER_HANDFUL: Final = 4


class Rehearsed(NamedTuple):
    """A plan, and what came of it in a rehearsal."""

    plan: Regrouping
    savings: float


def turn_over(
    cluster: Cluster,
    *,
    seed: int,
    work: int = UNLIMITED,
    share: float = 1.0,
    known: Sequence[Regrouping] = (),
    is_late: Callable[[], bool] = lambda: False,
) -> Steps[Rehearsed]:
    """The plan of which a rehearsal makes most; one that removes nothing if none saves enough.

    First the best for the worst nodes, or of the ``known`` plans; then handfuls of nodes besides, as long as all of it
    together saves more. ``work`` bounds the search, not a single plan; ``share`` is of the nodes that are few.
    """
    search = _Turnover(cluster, Rng(seed).fork("turnover"), share)

    def is_over() -> bool:
        return is_late() or search.meter.spent >= work

    yield from search.begin(known, is_over)
    yield from search.go_on(is_over)
    return Rehearsed(search.result, search.savings)


def few_of(candidates: int, share: float = 1.0) -> int:
    """How many nodes are few."""
    return max(FEWEST, int(candidates // 5 * share))


class _Turnover(Standing):
    def __init__(self, cluster: Cluster, rng: Rng, share: float) -> None:
        super().__init__(cluster)
        self._stage = Rehearsal(cluster)
        """The cluster as it is, while this one's books go on with what was decided."""
        self._rng = rng
        self.meter = Meter()
        self._gain = 0.0
        prices = np.array([max(node.price, 1e-9) for node in cluster.nodes])
        self._worth = np.array([sum(cluster.values[i] * n for i, n in node.content.items()) for node in cluster.nodes])
        order = np.argsort(self._worth / prices, kind="stable").tolist()
        self._candidates = [place for place in order if cluster.nodes[place].is_candidate]
        """The worst first."""
        self._few = few_of(len(self._candidates), share)

    @property
    def savings(self) -> float:
        """What a rehearsal saves with all that was decided."""
        price = fsum(self._cluster.nodes[place].price for place in sorted(self.result.removed))
        return self._gain + self._cluster.least_saving * price

    def begin(self, known: Sequence[Regrouping], is_over: Callable[[], bool]) -> Steps[None]:
        """Decides on the best of the plans for the worst nodes."""
        best: Regrouping | None = None
        for plan in known:
            gain = self._gain_of(plan.removed, plan)
            price = fsum(self._cluster.nodes[place].price for place in sorted(plan.removed))
            if gain > self._gain and price - plan.savings <= price * self._dearest(len(plan.removed)):
                best, self._gain = plan, gain
            yield
        for out in self._worst():
            if is_over():
                break
            found, gain = yield from self._best_for(out, self._gain)
            if found is not None:
                best, self._gain = found, gain
        if best is not None:
            self.join(best)

    def go_on(self, is_over: Callable[[], bool]) -> Steps[None]:
        """Decides on handfuls besides, as far as they do not get in the way of what was decided on before."""
        if len(self._candidates) <= FEWEST:
            return
        for _ in range(HANDFULS + len(self._candidates) // CANDIDATES_PER_HANDFUL):
            room = self._few - len(self.result.removed)
            if is_over() or room < FEWEST:
                break
            out = self._handful()[:room]
            plan, _ = (yield from self._best_for(out, 0.0)) if out else (None, 0.0)
            if plan is None:
                continue
            gain = self._gain_of(self.result.removed | plan.removed, plan, self.result.new_nodes)
            if gain > self._gain + EPSILON:
                self.join(plan)
                self._gain = gain

    def _worst(self) -> Iterator[list[int]]:
        """The worst nodes: as many as may go, half of them, and so on."""
        size = min(len(self._candidates), self._cluster.most_removed)
        last: list[int] = []
        while size:
            out = self._affordable(self._candidates[:size])
            if out and out != last and self._may_pay(out):
                yield out
            last = out
            size = size // 2 if size // 2 >= FEWEST else 0

    def _handful(self) -> list[int]:
        front = self._candidates[: max(2 * FEWEST, len(self._candidates) // 2)]
        wanted = FEWEST + self._rng.randrange(3 * FEWEST)
        drawn = sorted({self._rng.randrange(len(front)) for _ in range(wanted)})
        # Whoever gets pods by what was decided on before is to keep them.
        free = [front[at] for at in drawn if self._stays[front[at]] and front[at] not in self.result.received]
        return self._affordable(free)

    def _best_for(self, out: list[int], least: float) -> Steps[tuple[Regrouping | None, float]]:
        """The best plan for the pods of these nodes if it gains more, with small new nodes and with large ones."""
        best: Regrouping | None = None
        for largest in LARGEST:
            for slack in SLACKS:
                plan = self._plan(out, largest, slack, least)
                yield
                if plan is None:
                    continue
                gain = self._gain_of(plan.removed, plan)
                if gain > least + EPSILON:
                    best, least = plan, gain
                if not plan.new_nodes:
                    return best, least
        return best, least

    def _gain_of(self, removed: Collection[int], plan: Regrouping, others: Sequence[PackedNode] = ()) -> float:
        """What a rehearsal saves, less what moving is worth."""
        price = fsum(self._cluster.nodes[place].price for place in sorted(removed))
        # Every plan gets the same luck.
        paid = self._stage.price_of(removed, [*others, *plan.new_nodes], self._rng.fork("order"), self.meter)
        return price * (1 - self._cluster.least_saving) - paid

    def _plan(self, out: list[int], largest: int, slack: float, least: float) -> Regrouping | None:
        """Room on nodes that stay first, then new nodes; None if that gains too little or leaves a pod out."""
        cluster, model = self._cluster, self._model
        counts = np.zeros(model.classes, dtype=np.int64)
        limits = self._limits.copy()
        for place in out:
            limits += model.limit_weights[:, cluster.offers + place]
            for index, number in self._contents[place].items():
                counts[index] += number
        price = fsum(cluster.nodes[place].price for place in out)
        kept = np.flatnonzero(counts)
        if not len(kept):
            return self._planned(out, kept, [], price)
        part, bins = self._part(kept, counts, limits, out, [])
        part = self._narrowed(part, int((bins < cluster.offers).sum()), largest, slack, cluster.values[kept])
        if not part.allowed.any(axis=1).all():
            return None
        cap = min(price * (1 - cluster.least_saving) - least, price * self._dearest(len(out)))
        made = self._packed(part, cluster.values[kept], cap)
        if made is None:
            return None
        return self._planned(out, kept, [PackedNode(int(bins[node.bin]), node.taken) for node in made], price)

    def _packed(self, part: PackingModel, values: FloatArray, price_cap: float) -> list[PackedNode] | None:
        """Nodes for all pods, below the cap. Many pods are packed in several lots, which takes much less time."""
        guide = guide_for(part, values)
        guide = Guide(values, guide.weights[:MAX_DIRECTIONS])
        left, stock = part.counts.copy(), Stock.of(part)
        made: list[PackedNode] = []
        lots = 1
        if int(left.sum()) > LOT:
            owned = np.flatnonzero(part.prices <= 0)
            made += fill_best_fit(part, values, left, stock, owned)
            stock.bins[owned] = 0
            lots = max(1, -(-int(left.sum()) // LOT))
        for number in range(lots):
            # Every so-many-th class, so that each lot is a fair sample.
            lot = np.zeros_like(left)
            lot[number::lots] = left[number::lots]
            spent = float(part.prices[[node.bin for node in made]].sum())
            nodes = construct(part, guide, lot, stock, price_cap - spent, self.meter)
            if nodes is None or lot.any():
                return None
            made += nodes
        return made

    def _may_pay(self, out: list[int]) -> bool:
        """Whether it is thinkable that new nodes for what finds no room elsewhere cost little enough."""
        share = self._dearest(len(out))
        if share >= 1.0:
            return True
        cluster = self._cluster
        receiving = self._stays & self._receives
        receiving[out] = False
        capacities = np.maximum(self._model.capacities[cluster.offers :][:, list(cluster.scored)], 1)
        free = (np.maximum(self._free[:, list(cluster.scored)], 0) / capacities).min(axis=1, initial=1.0)
        prices = np.array([node.price for node in cluster.nodes])
        return float(self._worth[out].sum() - (free * prices)[receiving].sum()) <= share * float(prices[out].sum())

    def _dearest(self, out: int) -> float:
        """Which share of the price new nodes may cost: many pods at once make a rehearsal a guess, so it must pay."""
        return 1.0 if out <= self._few else MANY_COST

    def _narrowed(
        self, part: PackingModel, offers: int, largest: int, slack: float, values: FloatArray
    ) -> PackingModel:
        """With new nodes of a size only, and some room left on each; whoever needs a larger one has all of them."""
        capacities, allowed = part.capacities, part.allowed.copy()
        if slack:
            scored = list(self._cluster.scored)
            capacities = capacities.copy()
            capacities[:offers, scored] = (capacities[:offers, scored] * (1 - slack)).astype(np.int64)
            allowed[:, :offers] &= (part.demands[:, None, :] <= capacities[None, :offers, :]).all(axis=2)
        if largest < UNLIMITED:
            average = float(values @ part.counts) / max(int(part.counts.sum()), 1)
            too_large = np.flatnonzero(part.prices[:offers] > largest * average)
            small = np.delete(np.arange(offers), too_large)
            modest = allowed[:, small].any(axis=1)
            allowed[np.ix_(modest, too_large)] = False
        return replace(part, capacities=capacities, allowed=allowed)
