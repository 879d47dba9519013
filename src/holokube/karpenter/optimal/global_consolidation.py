"""Global consolidation: which nodes to remove, which to make instead, and how far that is from the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Protocol

import numpy as np

from holokube.karpenter.optimal.core_offers import core_offers
from holokube.karpenter.optimal.dominance import useful_bins
from holokube.karpenter.optimal.host_rules import without_taken_places
from holokube.karpenter.optimal.model import UNLIMITED, IntArray, PackedNode, PackingModel
from holokube.karpenter.optimal.offers import place_of
from holokube.karpenter.optimal.pod_groups import PodGroup, groups_of, specs_of
from holokube.karpenter.optimal.reading import Reading
from holokube.karpenter.optimal.regrouping import regroup
from holokube.karpenter.optimal.resource_bound import resource_bound
from holokube.karpenter.optimal.search import QUICK, Effort, Search, gap_of
from holokube.karpenter.optimal.solver_library import INFINITY, load
from holokube.karpenter.optimal.standing import Cluster, Regrouping, RunningNode
from holokube.karpenter.optimal.trust import Trust
from holokube.karpenter.optimal.turnover import few_of, turn_over
from holokube.karpenter.pausing import Steps, without_pauses
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import PlannedClaim
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.topology_specs import GroupKind
from holokube.kube.requirements import CAPACITY_TYPE_LABEL
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import SPOT


class Removable(Protocol):
    """A node that nothing keeps from being removed: a candidate of consolidation."""

    @property
    def node(self) -> StateNode:
        """The node."""

    @property
    def price(self) -> float:
        """What it costs per hour."""

    @property
    def movable_pods(self) -> Sequence[JsonObject]:
        """Pods that need another place when it goes."""


@dataclass(frozen=True, slots=True, eq=False)
class GlobalMove:
    """Nodes to remove together, and where their pods go."""

    removed: tuple[str, ...]
    """Names of nodes."""
    claims: list[PlannedClaim]
    existing: dict[str, list[JsonObject]]
    """Pods that go to nodes that stay, by the name of the node."""
    price_before: float
    """Of all candidates."""
    price_after: float
    """Of the candidates that stay, and of the new nodes."""
    bound: float
    """Below this price candidates and what replaces them cannot get, in any number of moves."""
    rehearsed: tuple[float, float] | None = None
    """The price over what the pods are worth, now and after the move, as a rehearsal has it."""

    @property
    def savings(self) -> float:
        """Dollars per hour."""
        return self.price_before - self.price_after

    @property
    def gap(self) -> float:
        """By which share the price after the move may be above the cheapest."""
        return gap_of(self.price_after, self.bound)


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """How far a search for a move goes, and what a move may be. Counts only: the same on any machine."""

    rounds: int = 300
    """Random handfuls of nodes that are tried."""
    work: int = 300_000_000
    """Steps of a search; ten to twenty seconds of one core."""
    least_saving: float = 0.01
    """Of the price of nodes that are replaced: for less, pods are not moved."""
    least_share: float = 0.0
    """Of the price of all candidates: a move that saves less is none."""
    most_removed: int = UNLIMITED
    """Nodes that go in one move."""
    slack: float = 0.0
    """The share of a new node that is left free: a scheduler does not put pods together as well as a plan does, and who
    finds no room makes another node necessary."""
    is_rehearsed: bool = False
    """Whether plans count by what a scheduler would make of them; for moves that are carried out."""
    rehearsals_work: int = 0
    """Steps of the search with rehearsals, which comes after the other."""
    seed: int = 0


def consolidate_globally(
    problem: Problem,
    candidates: Sequence[Removable],
    budgets: Mapping[str, int],
    *,
    spot_to_spot: bool = False,
    limits: MoveLimits | None = None,
    effort: Effort = QUICK,
    seconds_left: Callable[[], float] = lambda: INFINITY,
) -> GlobalMove:
    """The move that saves most, of those found; one that removes nothing if none saves anything.

    ``budgets`` say how many nodes of each pool may go. ``problem.pods`` are left aside: whoever is pending is
    provisioned for first. Pods bound by topology over zones stay in their zone.
    """
    load()
    reading = MovingReading(problem, candidates)
    bound = Search(reading.moving_bound_model(), effort, seconds_left=seconds_left)
    bound.prove()
    steps = reading.best_move(
        budgets, limits or MoveLimits(), bound.bound + reading.fixed_price, spot_to_spot=spot_to_spot,
        is_late=lambda: seconds_left() <= 0,
    )  # fmt: skip
    return without_pauses(steps)


class MovingReading(Reading):
    """A cluster whose candidates' pods may move."""

    def __init__(self, problem: Problem, candidates: Sequence[Removable]) -> None:
        pods: list[JsonObject] = []
        home: dict[str, str] = {}
        for candidate in candidates:
            for pod in candidate.movable_pods:
                pods.append(pod)
                home[pod_key(pod)] = candidate.node.name
        super().__init__(replace(problem, pods=pods))
        self._candidates = {candidate.node.name: candidate for candidate in candidates}
        groups, refused = groups_of(self.ground, self.offers)
        groups = [group.narrowed(self.offers.surely_suitable(group.form)) for group in groups]
        rows = self.ground.nodes.rows
        self._home = [rows[home[pod_key(pod)]] for pod in self.ground.pods]
        stuck = _kept_together(groups)
        # Pods that nobody could place, or that must stay with others, keep their nodes.
        self._fixed = {home[key] for key in refused} | {
            self.ground.nodes.nodes[self._home[place]].name for place in stuck
        }
        self.fixed_price = fsum(self._candidates[name].price for name in sorted(self._fixed))
        self._kept_offers: IntArray = np.arange(len(self.offers.offers))
        self.plan_groups = without_taken_places(self.ground, self.offers, self._by_domain(groups))

    def _by_domain(self, groups: Iterable[PodGroup]) -> list[PodGroup]:
        """Groups split by the domains that topology knows their pods in; there they stay."""
        groups = list(groups)
        found = dict.fromkeys(spec for kind in GroupKind for spec in specs_of(groups, kind))
        specs = [spec for spec in found if not spec.is_hostname]
        if not specs:
            return groups
        keys = sorted({spec.key for spec in specs})
        cells = [tuple(self.offers.domain(bin_, key) for key in keys) for bin_ in range(len(self.offers))]
        first = len(self.offers.offers)
        split: list[PodGroup] = []
        for group in groups:
            if not any(group.owns(spec) or group.counted_by(spec) for spec in specs):
                split.append(group)
                continue
            by_cell: dict[tuple[str | None, ...], list[tuple[int, ...]]] = {}
            for unit in group.units:
                by_cell.setdefault(cells[first + self._home[unit[0]]], []).append(unit)
            for cell, units in by_cell.items():
                there = np.array([one == cell for one in cells], dtype=np.bool_)
                split.append(replace(group, units=tuple(units), allowed=group.allowed & there, cell=cell))
        return split

    def moving_model(self) -> PackingModel:
        """Offers, and nodes with their room as if the pods that may move were gone."""
        return self._with_candidates(self._model(self.plan_groups, for_bound=False), self.plan_groups)

    def moving_bound_model(self) -> PackingModel:
        """The same without what is only this search's own rule: pods may leave their zones."""
        model = self._with_candidates(self._model(self._groups, for_bound=True), self._groups)
        allowed = model.allowed.copy()
        for row, content in enumerate(self._contents(self._groups)):
            # Where a pod is, it may be, whatever has changed since it came.
            allowed[list(content), len(self.offers.offers) + row] = True
        return replace(model, allowed=allowed)

    def _with_candidates(self, model: PackingModel, groups: list[PodGroup]) -> PackingModel:
        first = len(self.offers.offers)
        capacities, prices = model.capacities.copy(), model.prices.copy()
        net = np.array(self._net_dimensions, dtype=np.bool_)
        for row, content in enumerate(self._contents(groups)):
            used = np.zeros(len(net), dtype=np.int64)
            for index, number in content.items():
                used += model.demands[index] * number
            # A node that is over-committed has no room, but holds what it holds.
            room = np.maximum(capacities[first + row], 0)
            capacities[first + row] = np.where(net, room + used, np.maximum(room, used))
            candidate = self._removable(row)
            if candidate is not None:
                prices[first + row] = candidate.price
        weights, totals = self._charged(model)
        return replace(model, capacities=capacities, prices=prices, limit_weights=weights, limit_totals=totals)

    def _removable(self, row: int) -> Removable | None:
        name = self.ground.nodes.nodes[row].name
        return None if name in self._fixed else self._candidates.get(name)

    def _charged(self, model: PackingModel) -> tuple[IntArray, IntArray]:
        """Limits with what candidates take of them: a node that goes gives it back."""
        weights, totals = model.limit_weights.copy(), model.limit_totals.copy()
        for number, (pool, resource) in enumerate(self.offers.limited):
            for row, node in enumerate(self.ground.nodes.nodes):
                if node.pool_name == pool and self._removable(row) is not None:
                    weights[number, len(self.offers.offers) + row] = node.capacity.get(resource, 0)
                    totals[number] += node.capacity.get(resource, 0)
        return weights, totals

    def _contents(self, groups: list[PodGroup]) -> list[dict[int, int]]:
        """By row of the node table: pods that may move, by class."""
        contents: list[Counter[int]] = [Counter() for _ in range(self.offers.held)]
        for index, group in enumerate(groups):
            for unit in group.units:
                contents[self._home[unit[0]]][index] += 1
        return [dict(content) for content in contents]

    def cluster(self, budgets: Mapping[str, int], *, spot_to_spot: bool) -> Cluster:
        """The cluster as plain arrays."""
        model = self.moving_model()
        first = len(self.offers.offers)
        core = core_offers(model, first, [place_of(offer) for offer in self.offers.offers])
        narrow = model.of_bins(core)
        self._kept_offers = core[useful_bins(narrow)]
        model = model.of_bins(np.concatenate([self._kept_offers, np.arange(first, model.bins)]))
        settled = self.ground.nodes.settled(self.ground.problem.now_s)
        has_room = self._rooms[first:].min(axis=1, initial=0) >= 0
        contents = self._contents(self.plan_groups)
        nodes = []
        for row, node in enumerate(self.ground.nodes.nodes):
            candidate = self._removable(row)
            nodes.append(RunningNode(
                price=candidate.price if candidate is not None else 0.0,
                content=contents[row],
                pool=node.pool_name,
                is_candidate=candidate is not None,
                may_receive=bool(settled[row]) and node.is_initialized and bool(has_room[row]),
                is_spot=node.labels.get(CAPACITY_TYPE_LABEL) == SPOT,
            ))  # fmt: skip
        offers = [self.offers.offers[bin_] for bin_ in self._kept_offers.tolist()]
        spot = np.array([offer.offering.capacity_type == SPOT for offer in offers], dtype=np.bool_)
        # What pods are worth goes by what new nodes cost; with all nodes in it the program would be large.
        values = resource_bound(model.of_bins(np.arange(len(offers)))).class_values
        return Cluster(model, nodes, budgets, values, spot, spot_to_spot, scored=self._scored)

    def best_move(
        self,
        budgets: Mapping[str, int],
        limits: MoveLimits,
        bound: float = 0.0,
        *,
        spot_to_spot: bool = False,
        is_late: Callable[[], bool] = lambda: False,
        trust: Trust | None = None,
    ) -> Steps[GlobalMove]:
        """The move that saves most, of those found; no larger than ``trust`` in rehearsals goes."""
        cluster = replace(
            self.cluster(budgets, spot_to_spot=spot_to_spot),
            least_saving=limits.least_saving,
            most_removed=limits.most_removed,
        )
        if limits.slack:
            cluster = replace(cluster, model=self._with_slack(cluster.model, cluster.offers, limits.slack))
        before = fsum(candidate.price for candidate in self._candidates.values())
        if limits.is_rehearsed:
            return (yield from self._rehearsed(cluster, limits, is_late, trust or Trust(), before, bound))
        found = yield from self._regrouped(cluster, limits, is_late)
        return self.move(found if found.savings >= limits.least_share * before else Regrouping(), before, bound)

    def _regrouped(self, cluster: Cluster, limits: MoveLimits, is_late: Callable[[], bool]) -> Steps[Regrouping]:
        return regroup(cluster, rounds=limits.rounds, seed=limits.seed, work=limits.work, is_late=is_late)

    def _rehearsed(
        self, cluster: Cluster, limits: MoveLimits, is_late: Callable[[], bool], trust: Trust, before: float,
        bound: float,
    ) -> Steps[GlobalMove]:  # fmt: skip
        """What a rehearsal makes most of, no larger than what rehearsals can be trusted with."""
        nothing = GlobalMove((), [], {}, before, before, bound)
        worth = max(float(cluster.values @ cluster.model.counts), 1e-9)
        share = trust.look(before / worth)
        if not share:
            return nothing
        known = [(yield from self._regrouped(cluster, limits, is_late))]
        few = few_of(len(self._candidates), share)
        if len(known[0].removed) > few:
            known.append((yield from self._regrouped(replace(cluster, most_removed=few), limits, is_late)))
        found = yield from turn_over(
            cluster, seed=limits.seed, work=limits.rehearsals_work, share=share, known=known, is_late=is_late
        )
        if not found.plan.removed or found.savings < limits.least_share * before:
            return nothing
        made = self.move(found.plan, before, bound)
        return replace(made, rehearsed=(before / worth, (before - found.savings) / worth))

    def _with_slack(self, model: PackingModel, offers: int, slack: float) -> PackingModel:
        """Offers with less room."""
        net = np.array(self._net_dimensions, dtype=np.bool_)
        capacities, allowed = model.capacities.copy(), model.allowed.copy()
        capacities[:offers, net] = (capacities[:offers, net] * (1 - slack)).astype(np.int64)
        allowed[:, :offers] &= (model.demands[:, None, :] <= capacities[None, :offers, :]).all(axis=2)
        return replace(model, capacities=capacities, allowed=allowed)

    def move(self, found: Regrouping, before: float, bound: float) -> GlobalMove:
        """The regrouping in words of the cluster."""
        waiting = self._waiting(found)
        claims: list[PlannedClaim] = []
        for packed in found.new_nodes:
            node = PackedNode(int(self._kept_offers[packed.bin]), packed.taken)
            pods = [pod for index, number in sorted(node.taken.items()) for pod in _pop(waiting, index, number)]
            forms = [form for index in node.taken for form in self.plan_groups[index].parts]
            claim = self._claim(node, forms, pods, slack=found.savings / len(found.new_nodes))
            if claim is None:
                # What pods ask of one new node excludes each other after all; such moves are not worth mending.
                return GlobalMove((), [], {}, before, before, bound)
            claims.append(claim)
        existing = {
            self.ground.nodes.nodes[row].name: [
                pod for index, number in sorted(content.items()) for pod in _pop(waiting, index, number)
            ]
            for row, content in sorted(found.received.items())
        }
        removed = tuple(self.ground.nodes.nodes[row].name for row in sorted(found.removed))
        return GlobalMove(removed, claims, existing, before, before - found.savings, bound)

    def _waiting(self, found: Regrouping) -> list[list[JsonObject]]:
        """Pods of removed nodes, by class."""
        pods = self.ground.problem.pods
        return [
            [pods[unit[0]] for unit in group.units if self._home[unit[0]] in found.removed]
            for group in self.plan_groups
        ]


def _pop(waiting: list[list[JsonObject]], index: int, number: int) -> list[JsonObject]:
    taken, waiting[index] = waiting[index][:number], waiting[index][number:]
    return taken


def _kept_together(groups: list[PodGroup]) -> list[int]:
    """Places of pods that must share a node with others."""
    specs = [spec for spec in specs_of(groups, GroupKind.AFFINITY) if spec.is_hostname]
    return [
        place
        for group in groups
        if any(group.owns(spec) or group.counted_by(spec) for spec in specs)
        for unit in group.units
        for place in unit
    ]
