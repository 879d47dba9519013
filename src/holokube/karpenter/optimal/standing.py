"""A cluster as consolidation sees it: nodes with what is on them and what room is left, and what was decided so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, BoolArray, FloatArray, IntArray, PackedNode, PackingModel

EPSILON: Final = 1e-6
"""Savings per hour below this are none."""


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
    scored: tuple[int, ...] = ()
    """Dimensions that a scheduler goes by when it chooses between nodes."""

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


class Standing:
    """Books of a search: what each node holds and has left, counted on as nodes are taken out and others made."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._model = cluster.model
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

    def _demand(self, content: Mapping[int, int]) -> IntArray:
        total = np.zeros(self._model.demands.shape[1], dtype=np.int64)
        for index, number in content.items():
            total += self._model.demands[index] * number
        return total

    def _affordable(self, places: Sequence[int]) -> list[int]:
        """As many of them as budgets let go."""
        found: list[int] = []
        for place in places:
            if self._is_within_budget([*found, place]):
                found.append(place)
        return found

    def _is_within_budget(self, out: Sequence[int]) -> bool:
        if len(self.result.removed) + len(out) > self._cluster.most_removed:
            return False
        wanted: dict[str, int] = {}
        for place in out:
            pool = self._cluster.nodes[place].pool
            wanted[pool] = wanted.get(pool, 0) + 1
        return all(number <= self._left.get(pool, 0) for pool, number in wanted.items())

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

    def _planned(self, out: Sequence[int], kept: IntArray, made: Sequence[PackedNode], price: float) -> Regrouping:
        """What it comes to when nodes of that price go; ``made`` is of some classes only, with bins of the model."""
        offers = self._cluster.offers
        found = Regrouping(removed=set(out), savings=price)
        for node in made:
            taken = {int(kept[index]): number for index, number in node.taken.items()}
            if node.bin < offers:
                found.new_nodes.append(PackedNode(node.bin, taken))
                found.savings -= float(self._model.prices[node.bin])
            else:
                found.received[node.bin - offers] = taken
        return found

    def join(self, plan: Regrouping) -> None:
        """Decide on it, besides what was decided on before."""
        cluster, model, result = self._cluster, self._model, self.result
        for place in sorted(plan.removed):
            self._left[cluster.nodes[place].pool] -= 1
            self._stays[place] = False
            result.removed.add(place)
            result.received.pop(place, None)
            self._contents[place] = {}
            self._present[place] = 0.0
            self._limits += model.limit_weights[:, cluster.offers + place]
        for node in plan.new_nodes:
            result.new_nodes.append(node)
            self._limits -= model.limit_weights[:, node.bin]
        for place, taken in plan.received.items():
            self._free[place] -= self._demand(taken)
            self._present[place, list(taken)] = 1.0
            for content in (self._contents[place], result.received.setdefault(place, {})):
                for index, number in taken.items():
                    content[index] = content.get(index, 0) + number
        result.savings += plan.savings
