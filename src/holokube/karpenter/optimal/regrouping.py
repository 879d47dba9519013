"""Consolidation on plain arrays: any number of nodes to any other number, as long as that saves money.

A node that stays keeps its pods and may get more; a node that goes gives all its pods away, to room on nodes that stay
or to new nodes, which must cost less than what goes. Steps of this kind are tried one after the other: first nodes
whose pods fit elsewhere, then a dozen nodes at a time and single ones for cheaper ones, then random handfuls of nodes,
new ones among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from holokube.base.rng import Rng
from holokube.karpenter.optimal.construct import STEP_WORK, Guide, Meter, Stock, best_fit, construct, guide_for
from holokube.karpenter.optimal.model import UNLIMITED, BoolArray, FloatArray, IntArray, PackedNode, PackingModel
from holokube.karpenter.pausing import Steps

EPSILON: Final = 1e-6
"""Savings per hour below this are none."""
MAX_TAKEN_OUT: Final = 6
CHUNK: Final = 12
"""So many nodes are packed anew together: more of them fit better, fewer are quicker."""
MAX_DIRECTIONS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class RunningNode:
    """A node that is there. Its bin is the one with the same place among the model's last bins."""

    price: float
    content: Mapping[int, int]
    """Pods that would have to move, by class."""
    pool: str = ""
    is_candidate: bool = False
    """Whether it may go."""
    may_receive: bool = True
    """Whether pods may be moved to it."""
    is_spot: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """What consolidation starts from."""

    model: PackingModel
    """Its first bins are offers, the others the running nodes, with their room as if their ``content`` were gone. Its
    limits are what is left beside running nodes that are no candidates."""
    nodes: Sequence[RunningNode]
    budgets: Mapping[str, int]
    """How many nodes of each pool may go."""
    values: FloatArray
    """The going price of a pod of each class."""
    spot_offers: BoolArray
    """Which offers are spot."""
    spot_to_spot: bool = False
    """Whether spot nodes may be replaced by spot nodes."""
    least_saving: float = 0.0
    """Nodes are replaced only if that saves more than this share of their price: pods do not move for nothing."""
    most_removed: int = UNLIMITED
    """How many nodes may go in all."""

    @property
    def offers(self) -> int:
        """How many bins are offers."""
        return self.model.bins - len(self.nodes)


@dataclass(slots=True, eq=False)
class Regrouping:
    """What goes, what comes, and what nodes that stay get."""

    removed: set[int] = field(default_factory=set)
    """Places of running nodes."""
    new_nodes: list[PackedNode] = field(default_factory=list)
    received: dict[int, dict[int, int]] = field(default_factory=dict)
    """Pods that running nodes get, by place and class."""
    savings: float = 0.0


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


class _Search:
    def __init__(
        self, cluster: Cluster, rng: Rng, meter: Meter, work: int, is_late: Callable[[], bool]
    ) -> None:
        self._cluster = cluster
        self._model = cluster.model
        self._rng = rng
        self._meter = meter
        self._work = work
        self._late = is_late
        self.result = Regrouping()
        self._left = dict(cluster.budgets)
        self._contents: list[dict[int, int]] = [dict(node.content) for node in cluster.nodes]
        self._free = self._model.capacities[cluster.offers :].copy()
        self._limits = self._model.limit_totals.copy()
        self._present = np.zeros((len(cluster.nodes), self._model.classes), dtype=np.float32)
        """Which classes nodes have pods of."""
        self._receives = np.array([node.may_receive for node in cluster.nodes], dtype=np.bool_)
        for place, content in enumerate(self._contents):
            self._free[place] -= self._demand(content)
            self._present[place, list(content)] = 1.0
            if cluster.nodes[place].is_candidate:
                self._limits -= self._model.limit_weights[:, cluster.offers + place]
        self._stays = np.ones(len(cluster.nodes), dtype=np.bool_)

    def _is_late(self) -> bool:
        return self._meter.spent >= self._work or self._late()

    def _demand(self, content: Mapping[int, int]) -> IntArray:
        total = np.zeros(self._model.demands.shape[1], dtype=np.int64)
        for index, number in content.items():
            total += self._model.demands[index] * number
        return total

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

    def _affordable(self, places: Sequence[int]) -> list[int]:
        """As many of them as budgets let go."""
        found: list[int] = []
        for place in places:
            if self._is_within_budget([*found, place]):
                found.append(place)
        return found

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

    def _is_within_budget(self, out: Sequence[int]) -> bool:
        if len(self.result.removed) + len(out) > self._cluster.most_removed:
            return False
        wanted: dict[str, int] = {}
        for place in out:
            pool = self._cluster.nodes[place].pool
            wanted[pool] = wanted.get(pool, 0) + 1
        return all(number <= self._left.get(pool, 0) for pool, number in wanted.items())

    def _attempt(self, out: list[int], new: list[int]) -> bool:
        """Take nodes out, place their pods elsewhere; keep it if it saves money."""
        if not (out or new) or not self._is_within_budget(out):
            return False
        cluster, model = self._cluster, self._model
        counts = np.zeros(model.classes, dtype=np.int64)
        for content in (*(self._contents[p] for p in out), *(self.result.new_nodes[p].taken for p in new)):
            for index, number in content.items():
                counts[index] += number
        price = sum(cluster.nodes[p].price for p in out)
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

    def _part(
        self, kept: IntArray, counts: IntArray, limits: IntArray, out: list[int], new: list[int]
    ) -> tuple[PackingModel, IntArray]:
        """The pods to place, with what room there is now, and its bins. Nodes with room cost nothing more."""
        cluster, model = self._cluster, self._model
        receiving = self._stays & self._receives
        receiving[out] = False
        receivers = np.flatnonzero(receiving)
        max_counts = model.max_counts[: cluster.offers].copy()
        for place, node in enumerate(self.result.new_nodes):
            if place not in new and max_counts[node.bin] < UNLIMITED:
                max_counts[node.bin] -= 1
        if not cluster.spot_to_spot and all(cluster.nodes[p].is_spot for p in (*self.result.removed, *out)):
            max_counts[cluster.spot_offers] = 0
        offers = np.flatnonzero((max_counts > 0) & model.allowed[kept, : cluster.offers].any(axis=0))
        demands = model.demands[kept]
        here = model.allowed[np.ix_(kept, cluster.offers + receivers)]
        here &= (demands[:, None, :] <= self._free[receivers][None, :, :]).all(axis=2)
        here &= self._is_compatible(kept, receivers)
        useful = here.any(axis=0)
        receivers, here = receivers[useful], here[:, useful]
        bins = np.concatenate([offers, cluster.offers + receivers])
        part = PackingModel(
            demands=demands,
            counts=counts[kept],
            capacities=np.concatenate([model.capacities[offers], self._free[receivers]]),
            prices=np.concatenate([model.prices[offers], np.zeros(len(receivers))]),
            max_counts=np.concatenate([max_counts[offers], np.ones(len(receivers), dtype=np.int64)]),
            allowed=np.concatenate([model.allowed[np.ix_(kept, offers)], here], axis=1),
            conflicts=None if model.conflicts is None else model.conflicts[np.ix_(kept, kept)],
            per_node=model.per_node[kept],
            limit_weights=model.limit_weights[:, bins],
            limit_totals=limits,
        )
        return part, bins

    def _is_compatible(self, kept: IntArray, receivers: IntArray) -> BoolArray:
        """classes x nodes: off nodes whose pods they may not be with."""
        model = self._model
        found = np.ones((len(kept), len(receivers)), dtype=np.bool_)
        limited = model.per_node[kept] < UNLIMITED
        if limited.any():
            found[limited] &= self._present[np.ix_(receivers, kept[limited])].T == 0
        if model.conflicts is not None:
            found &= model.conflicts[kept].astype(np.float32) @ self._present[receivers].T == 0
        return found

    def _apply(
        self, out: list[int], new: list[int], kept: IntArray, made: Sequence[PackedNode], price: float
    ) -> None:
        cluster, model, result = self._cluster, self._model, self.result
        for place in out:
            node = cluster.nodes[place]
            self._left[node.pool] -= 1
            self._stays[place] = False
            result.removed.add(place)
            result.received.pop(place, None)
            self._contents[place] = {}
            self._present[place] = 0.0
            self._limits += model.limit_weights[:, cluster.offers + place]
        for place in sorted(new, reverse=True):
            gone = result.new_nodes.pop(place)
            self._limits += model.limit_weights[:, gone.bin]
        added = 0.0
        for part_node in made:
            bin_ = part_node.bin
            taken = {int(kept[index]): number for index, number in part_node.taken.items()}
            if bin_ < cluster.offers:
                result.new_nodes.append(PackedNode(bin_, taken))
                self._limits -= model.limit_weights[:, bin_]
                added += float(model.prices[bin_])
                continue
            place = bin_ - cluster.offers
            self._free[place] -= self._demand(taken)
            self._present[place, list(taken)] = 1.0
            for content in (self._contents[place], result.received.setdefault(place, {})):
                for index, number in taken.items():
                    content[index] = content.get(index, 0) + number
        result.savings += price - added
