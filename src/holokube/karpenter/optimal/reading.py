"""A problem read as a packing model, and a packing read back as claims and placements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from holokube.karpenter.api.node_pool import NODES
from holokube.karpenter.optimal.core_offers import core_offers
from holokube.karpenter.optimal.domain_choice import settled
from holokube.karpenter.optimal.end_state import Spot, misplaced
from holokube.karpenter.optimal.host_rules import host_rules, without_taken_places
from holokube.karpenter.optimal.model import IntArray, PackedNode, Packing, PackingModel
from holokube.karpenter.optimal.offers import Offer, Offers, contradicts_itself, place_of, ways_of
from holokube.karpenter.optimal.pod_groups import PodGroup, bundled, groups_of
from holokube.karpenter.optimal.solver_library import INFINITY
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.min_values import unmet_min_values
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import PlannedClaim
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, ZONE_LABEL, Requirement, Requirements
from holokube.kube.resources import add
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import NO_REQUIREMENTS, RESERVATION_ID_LABEL, InstanceType


@dataclass(frozen=True, slots=True, eq=False)
class Placements:
    """What a packing means: claims to make, pods for nodes that are there, and pods without a place."""

    claims: list[PlannedClaim]
    existing: dict[str, list[JsonObject]]
    unplaced: list[JsonObject]

    @property
    def price_usd_per_hour(self) -> float:
        """Of the claims together."""
        total = 0.0
        for claim in self.claims:
            total += claim.price_usd_per_hour
        return total


class Reading:
    """One problem, with wishes left aside: they are no constraints."""

    def __init__(self, problem: Problem) -> None:
        options = replace(problem.options, preference_policy="Ignore")
        self.ground = Groundwork(replace(problem, options=options))
        self.offers = Offers(self.ground)
        groups, self.refused = groups_of(self.ground, self.offers)
        self._groups = without_taken_places(self.ground, self.offers, groups)
        self._rooms = self.offers.rooms()
        self._hoped_rooms = self.offers.rooms(hoped=True)
        self.plan_groups: list[PodGroup] = []
        self._net_dimensions: list[bool] = []
        self._scored: tuple[int, ...] = ()
        """Dimensions of the last model that a scheduler scores nodes by."""

    def bound_model(self) -> PackingModel:
        """Only what every plan must keep: topology over domains and ``minValues`` are left out."""
        return self._model(self._groups, for_bound=True)

    @property
    def bound_places(self) -> list[list[int]]:
        """For each class of that model, the places of its pods in the problem's list."""
        return [[place for unit in group.units for place in unit] for group in self._groups]

    def plan_model(self) -> PackingModel:
        """Everything, with domains chosen; its packings are plans."""
        groups = bundled(self.ground, self.offers, self._sure)
        self.plan_groups = settled(self.ground, self.offers, groups)
        return self._model(self.plan_groups, for_bound=False)

    def narrowed(self, model: PackingModel) -> PackingModel:
        """A model of this reading with only the offers that matter most; never for bounds."""
        offers = len(self.offers.offers)
        core = core_offers(model, offers, [place_of(offer) for offer in self.offers.offers])
        max_counts = model.max_counts.copy()
        max_counts[:offers] = 0
        max_counts[core] = model.max_counts[core]
        return replace(model, max_counts=max_counts)

    @cached_property
    def _sure(self) -> list[PodGroup]:
        """Groups with only the bins where they will run."""
        return [group.narrowed(self.offers.surely_suitable(group.form)) for group in self._groups]

    def _model(self, groups: list[PodGroup], *, for_bound: bool) -> PackingModel:
        offers = self.offers
        rules = host_rules(self.ground, offers, groups, for_bound=for_bound)
        columns = len(self.ground.columns)
        demands = np.array([group.demand for group in groups], dtype=np.int64).reshape(len(groups), columns)
        wanted = np.flatnonzero(demands.any(axis=0)) if len(groups) else np.arange(0)
        demands = np.column_stack([demands[:, wanted], *rules.demands]) if len(groups) else demands[:, wanted]
        rooms = self._hoped_rooms if for_bound else self._rooms
        capacities = np.column_stack([rooms[:, wanted], *rules.capacities])
        self._net_dimensions = [True] * len(wanted) + rules.are_net
        scored = {self.ground.columns[name] for name in ("cpu", "memory") if name in self.ground.columns}
        self._scored = tuple(place for place, column in enumerate(wanted.tolist()) if column in scored)
        allowed = np.array([group.allowed for group in groups], dtype=np.bool_).reshape(len(groups), len(offers))
        if not for_bound:
            allowed = allowed & offers.flexible_enough()
        weights, totals = offers.limits(with_nodes=not for_bound)
        return PackingModel.build(
            demands,
            [len(group.units) for group in groups],
            capacities,
            offers.prices(),
            max_counts=offers.how_often(),
            allowed=allowed,
            conflicts=rules.conflicts,
            per_node=rules.per_node,
            limit_weights=weights,
            limit_totals=totals,
        )

    @property
    def is_plain(self) -> bool:
        """Whether nothing but resources, labels and taints matters, so that both models are the same."""
        return not any(form.specs or form.ports or form.volumes for group in self._groups for form in group.parts)

    def placements(self, packing: Packing) -> Placements:
        """The packing in words of the problem."""
        pods = self.ground.problem.pods
        waiting = [list(group.units) for group in self.plan_groups]
        claims: list[PlannedClaim] = []
        existing: dict[str, list[JsonObject]] = {}
        unplaced: list[JsonObject] = []
        for node in packing.nodes:
            places: list[int] = []
            forms: list[PodForm] = []
            for index, number in sorted(node.taken.items()):
                for _ in range(number):
                    places += waiting[index].pop(0)
                forms += self.plan_groups[index].parts
            mine = [pods[place] for place in places]
            if node.bin >= len(self.offers.offers):
                row = node.bin - len(self.offers.offers)
                existing.setdefault(self.ground.nodes.nodes[row].name, []).extend(mine)
                continue
            claim = self._claim(node, forms, mine)
            if claim is None:
                unplaced += mine
            else:
                claims.append(claim)
        unplaced += [pods[place] for units in waiting for unit in units for place in unit]
        return Placements(claims, existing, unplaced)

    def _claim(
        self, node: PackedNode, forms: Sequence[PodForm], pods: list[JsonObject], *, slack: float = INFINITY
    ) -> PlannedClaim | None:
        """The claim for a new node; None if what its pods ask for excludes each other after all.

        With ``slack`` the launch may only choose types that cost less than so much more.
        """
        offer = self.offers.offers[node.bin]
        requirements = _pinned(offer)
        for form in dict.fromkeys(forms):
            narrowed = _narrowed(requirements, offer, form, self.ground.problem.well_known)
            if narrowed is None:
                return None
            requirements = narrowed
        used = np.zeros(len(self.ground.columns), dtype=np.int64)
        for index, number in node.taken.items():
            used += self.plan_groups[index].demand * number
        types = [offer.instance_type] if self._is_limited(offer) else self._substitutes(
            offer, used, requirements, node, slack
        )
        if self.ground.problem.options.min_values_policy == "Strict" and unmet_min_values(types, requirements):
            return None
        return PlannedClaim(
            pool=offer.template.pool,
            requirements=requirements,
            candidate_types=tuple(types),
            pods=tuple(pods),
            requests=add(self._vector(used), offer.template.least_overhead(types)),
            well_known=self.ground.problem.well_known,
            max_instance_types=self.ground.problem.options.max_instance_types,
        )

    def _is_limited(self, offer: Offer) -> bool:
        """Whether another type might take more of a limit than was counted."""
        return offer.template.pool.name in self.ground.limits and not offer.template.has_min_values

    def _substitutes(
        self, offer: Offer, used: IntArray, requirements: Requirements, node: PackedNode, slack: float
    ) -> list[InstanceType]:
        """Types that would do as well, so that a launch has a choice; the domains chosen for pods stay as they are."""
        keys = {spec.key for index in node.taken for form in self.plan_groups[index].parts for spec in form.specs}
        found = []
        for one in self.offers.substitutes(offer, used, slack=slack):
            same = all(
                one.requirements.of(key) == offer.instance_type.requirements.of(key)
                for key in keys
                if key not in (HOSTNAME_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
            )
            if one is offer.instance_type or (same and one.requirements.intersects(requirements)):
                found.append(one)
        return found

    def _vector(self, used: IntArray) -> dict[str, int]:
        return {name: int(used[column]) for name, column in self.ground.columns.items() if used[column]}

    def wrong_pods(self, claims: Sequence[PlannedClaim], existing: Mapping[str, Sequence[JsonObject]]) -> set[str]:
        """Pods that would not run where such a plan sends them, by ``namespace/name``; room is not looked at.

        This looks at the end of a plan only, whoever made it, and so is a second opinion on the planner's own.
        """
        groups = {
            pod_key(self.ground.pods[place]): group for group in self._sure for unit in group.units for place in unit
        }
        spots: list[Spot] = []
        wrong: set[str] = set()
        for number, claim in enumerate(claims):
            best = claim.cheapest()
            launched = None if best is None else self.offers.bin_of(claim.pool.name, *best)
            if launched is None:
                wrong.update(map(pod_key, claim.pods))
            else:
                spots += [Spot(pod_key(pod), groups[pod_key(pod)], launched, f"new {number}") for pod in claim.pods]
        for name, pods in existing.items():
            row = self.ground.nodes.rows[name]
            host = self.ground.nodes.nodes[row].hostname
            bin_ = len(self.offers.offers) + row
            spots += [Spot(pod_key(pod), groups[pod_key(pod)], bin_, host) for pod in pods]
        wrong |= {spot.key for spot in spots if not spot.group.allowed[spot.bin]}
        return wrong | misplaced(self.ground, self.offers, spots)

    def crowded_out(self, existing: Mapping[str, Sequence[JsonObject]]) -> set[str]:
        """Pods sent to nodes that are not there, or have no room for all of them."""
        demands = {
            pod_key(self.ground.pods[place]): group.demand
            for group in self._groups
            for unit in group.units
            for place in unit
        }
        found: set[str] = set()
        for name, pods in existing.items():
            row = self.ground.nodes.rows.get(name)
            keys = [pod_key(pod) for pod in pods]
            if row is None or not all(key in demands for key in keys):
                found.update(keys)
                continue
            wanted = np.sum([demands[key] for key in keys], axis=0)
            if (wanted > self._rooms[len(self.offers.offers) + row]).any():
                found.update(keys)
        return found

    def without_wrong(self, placements: Placements) -> Placements:
        """The same without pods that would not run where they are sent; they stay without a place."""
        while wrong := self.wrong_pods(placements.claims, placements.existing):
            claims = [_keeping(claim, wrong) for claim in placements.claims]
            existing = {
                name: [pod for pod in pods if pod_key(pod) not in wrong] for name, pods in placements.existing.items()
            }
            placements = Placements(
                [claim for claim in claims if claim.pods],
                {name: pods for name, pods in existing.items() if pods},
                placements.unplaced + [pod for pod in self.ground.problem.pods if pod_key(pod) in wrong],
            )
        return placements

    def is_within_limits(self, claims: Sequence[PlannedClaim]) -> bool:
        """Whether pools stay within their limits even if every claim becomes the largest node that it may."""
        _, totals = self.offers.limits(with_nodes=True)
        for (pool, name), total in zip(self.offers.limited, totals, strict=False):
            mine = [claim for claim in claims if claim.pool.name == pool]
            if name == NODES:
                used = 1000 * len(mine)
            else:
                used = sum(max(one.capacity.get(name, 0) for one in claim.instance_types) for claim in mine)
            if used > total:
                return False
        return True

    @cached_property
    def hopeless(self) -> set[str]:
        """Pods that no node could ever take, by ``namespace/name``."""
        found = set(self.refused)
        for group in self._groups:
            if not (group.allowed & (self._hoped_rooms >= group.demand).all(axis=1)).any():
                found.update(pod_key(self.ground.pods[place]) for unit in group.units for place in unit)
        return found

    def errors(self, placements: Placements) -> dict[str, str]:
        """Why pods have no place, by ``namespace/name``."""
        found = dict(self.refused)
        for pod in placements.unplaced:
            found[pod_key(pod)] = "no node, neither one that is there nor one that could be made, has a place for it"
        return found


def _keeping(claim: PlannedClaim, wrong: Collection[str]) -> PlannedClaim:
    return replace(claim, pods=tuple(pod for pod in claim.pods if pod_key(pod) not in wrong))


def _pinned(offer: Offer) -> Requirements:
    """The pool's requirements, at the place of the offer."""
    place = offer.offering
    pins = {
        ZONE_LABEL: place.zone,
        CAPACITY_TYPE_LABEL: place.capacity_type,
        RESERVATION_ID_LABEL: place.reservation_id,
    }
    wanted = (Requirement.new(key, "In", (value,)) for key, value in pins.items() if value)
    return offer.template.state.requirements.adding(*wanted)


def _narrowed(
    requirements: Requirements, offer: Offer, form: PodForm, well_known: frozenset[str]
) -> Requirements | None:
    """With what one pod asks for; None if that cannot be met any more."""
    for one in ways_of(form):
        if contradicts_itself(one) or (one.hostname is not None and one.hostname.is_positive):
            continue
        for volume in one.volume_alternatives or (NO_REQUIREMENTS,):
            wanted = one.requirements.merged(volume.without(HOSTNAME_LABEL))
            if requirements.is_compatible(wanted, allow_undefined=well_known):
                narrowed = requirements.merged(wanted)
                if _is_possible(offer, narrowed):
                    return narrowed
    return None


def _is_possible(offer: Offer, wanted: Requirements) -> bool:
    return offer.instance_type.requirements.intersects(wanted) and offer.offering.requirements.intersects(wanted)
