"""Consolidation on plain arrays: any number of nodes to any other number, as long as that saves money.

A node that stays keeps its pods and may get more; a node that goes gives all its pods away, to room on nodes that stay
or to new nodes, which must cost less than what goes. Steps of this kind are tried one after the other: first nodes
whose pods fit elsewhere, then single nodes for cheaper ones, then random handfuls of nodes, new ones among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from holokube.base.rng import Rng
from holokube.karpenter.optimal.construct import Stock, construct, guide_for
from holokube.karpenter.optimal.model import UNLIMITED, BoolArray, FloatArray, IntArray, PackedNode, PackingModel

EPSILON: Final = 1e-6
"""Savings per hour below this are none."""
MAX_TAKEN_OUT: Final = 6


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


def regroup(cluster: Cluster, *, rounds: int, seed: int, is_late: Callable[[], bool] = lambda: False) -> Regrouping:
    """The best of three searches: dear nodes first, wasteful nodes first, nodes with few pods first."""
    prices = np.array([node.price for node in cluster.nodes])
    worth = np.array([sum(cluster.values[i] * n for i, n in node.content.items()) for node in cluster.nodes])
    pods = np.array([sum(node.content.values()) for node in cluster.nodes], dtype=np.float64)
    best = Regrouping()
    for number, order in enumerate((-prices, worth / np.maximum(prices, 1e-9), pods / np.maximum(prices, 1e-9))):
        search = _Search(cluster, Rng(seed).fork(str(number)), is_late)
        search.run(np.argsort(order, kind="stable").tolist(), rounds)
        if search.result.savings > best.savings + EPSILON:
            best = search.result
        if is_late():
            break
    return best


class _Search:
    def __init__(self, cluster: Cluster, rng: Rng, is_late: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._model = cluster.model
        self._rng = rng
        self._is_late = is_late
        self.result = Regrouping()
        self._left = dict(cluster.budgets)
        self._contents: list[dict[int, int]] = [dict(node.content) for node in cluster.nodes]
        self._free = self._model.capacities[cluster.offers :].copy()
        self._limits = self._model.limit_totals.copy()
        for place, content in enumerate(self._contents):
            self._free[place] -= self._demand(content)
            if cluster.nodes[place].is_candidate:
                self._limits -= self._model.limit_weights[:, cluster.offers + place]
        self._stays = np.ones(len(cluster.nodes), dtype=np.bool_)

    def _demand(self, content: Mapping[int, int]) -> IntArray:
        total = np.zeros(self._model.demands.shape[1], dtype=np.int64)
        for index, number in content.items():
            total += self._model.demands[index] * number
        return total

    def run(self, order: list[int], rounds: int) -> None:
        candidates = [place for place in order if self._cluster.nodes[place].is_candidate]
        for with_new in (False, True):
            for place in candidates:
                if self._is_late():
                    return
                if self._stays[place]:
                    self._attempt([place], [], with_new=with_new)
        for _ in range(rounds):
            if self._is_late():
                return
            out, new = self._choose(candidates)
            if out or new:
                self._attempt(out, new, with_new=True)

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
        wanted: dict[str, int] = {}
        for place in out:
            pool = self._cluster.nodes[place].pool
            wanted[pool] = wanted.get(pool, 0) + 1
        return all(number <= self._left.get(pool, 0) for pool, number in wanted.items())

    def _attempt(self, out: list[int], new: list[int], *, with_new: bool) -> bool:
        """Take nodes out, place their pods elsewhere; keep it if it saves money."""
        if not self._is_within_budget(out):
            return False
        cluster, model = self._cluster, self._model
        counts = np.zeros(model.classes, dtype=np.int64)
        for content in (*(self._contents[p] for p in out), *(self.result.new_nodes[p].taken for p in new)):
            for index, number in content.items():
                counts[index] += number
        price = sum(cluster.nodes[p].price for p in out)
        price += float(sum(model.prices[self.result.new_nodes[p].bin] for p in new))
        limits = self._limits.copy()
        for bin_ in (*(cluster.offers + p for p in out), *(self.result.new_nodes[p].bin for p in new)):
            limits += model.limit_weights[:, bin_]
        kept = np.flatnonzero(counts)
        made: list[PackedNode] = []
        if len(kept):
            part = self._part(kept, counts, limits, out, new, with_new=with_new)
            if not part.allowed.any(axis=1).all():
                return False
            left = part.counts.copy()
            found = construct(part, guide_for(part, cluster.values[kept]), left, Stock.of(part), price - EPSILON)
            if found is None or left.any():
                return False
            made = found
        self._apply(out, new, kept, made, price)
        return True

    def _part(
        self, kept: IntArray, counts: IntArray, limits: IntArray, out: list[int], new: list[int], *, with_new: bool
    ) -> PackingModel:
        """The pods to place, with what room there is now. Nodes with room cost nothing more."""
        cluster, model = self._cluster, self._model
        receiving = self._stays & np.array([node.may_receive for node in cluster.nodes], dtype=np.bool_)
        receiving[out] = False
        max_counts = model.max_counts.copy()
        for place, node in enumerate(self.result.new_nodes):
            if place not in new and max_counts[node.bin] < UNLIMITED:
                max_counts[node.bin] -= 1
        max_counts[cluster.offers :] = receiving
        if not with_new:
            max_counts[: cluster.offers] = 0
        elif not cluster.spot_to_spot and not new and all(cluster.nodes[p].is_spot for p in out):
            max_counts[: cluster.offers][cluster.spot_offers] = 0
        part = model.of_classes(kept, counts[kept], max_counts, limits)
        capacities = model.capacities.copy()
        capacities[cluster.offers :] = self._free
        prices = model.prices.copy()
        prices[cluster.offers :] = 0.0
        fits = np.all(part.demands[:, None, :] <= capacities[None, :, :], axis=2)
        allowed = part.allowed & fits
        self._keep_rules(allowed, kept)
        bins = np.flatnonzero((max_counts > 0) & allowed.any(axis=0))
        part = replace(part, capacities=capacities, prices=prices, allowed=allowed).of_bins(bins)
        self._bins = bins
        return part

    def _keep_rules(self, allowed: BoolArray, kept: IntArray) -> None:
        """Off nodes whose pods they may not be with."""
        model, offers = self._model, self._cluster.offers
        limited = model.per_node[kept] < UNLIMITED
        if model.conflicts is None and not limited.any():
            return
        for place, content in enumerate(self._contents):
            if not self._stays[place] or not content:
                continue
            there = np.array(sorted(content), dtype=np.int64)
            if model.conflicts is not None:
                allowed[model.conflicts[np.ix_(kept, there)].any(axis=1), offers + place] = False
            allowed[limited & np.isin(kept, there), offers + place] = False

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
            self._limits += model.limit_weights[:, cluster.offers + place]
        for place in sorted(new, reverse=True):
            gone = result.new_nodes.pop(place)
            self._limits += model.limit_weights[:, gone.bin]
        added = 0.0
        for part_node in made:
            bin_ = int(self._bins[part_node.bin])
            taken = {int(kept[index]): number for index, number in part_node.taken.items()}
            if bin_ < cluster.offers:
                result.new_nodes.append(PackedNode(bin_, taken))
                self._limits -= model.limit_weights[:, bin_]
                added += float(model.prices[bin_])
                continue
            place = bin_ - cluster.offers
            self._free[place] -= self._demand(taken)
            for content in (self._contents[place], result.received.setdefault(place, {})):
                for index, number in taken.items():
                    content[index] = content.get(index, 0) + number
        result.savings += price - added
