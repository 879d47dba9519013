"""Where pods could go: every offering of every usable type of every pool, and the room on nodes that are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, BoolArray, FloatArray, IntArray
from holokube.karpenter.optimal.solver_library import INFINITY
from holokube.karpenter.scheduling.daemon_overhead import Daemon, daemons_of
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.host_ports import any_conflict
from holokube.karpenter.scheduling.min_values import unmet_min_values
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.templates import Template
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement, Requirements
from holokube.kube.resources import ResourceVector, total_of
from holokube.pricing.instance_types import InstanceType, Offering

_NEGATIVE: Final = ("NotIn", "DoesNotExist")


@dataclass(frozen=True, eq=False)
class Offer:
    """A new node that can be had."""

    template: Template
    group: int
    """Which of the template's daemon groups."""
    instance_type: InstanceType
    offering: Offering
    room: IntArray
    """By resource, without what daemons will take; less than nothing if they take more than there is."""
    hoped_room: IntArray
    """The same as Karpenter reckons it: of a daemon with alternatives, it forgets those that some type did not meet."""

    @cached_property
    def requirements(self) -> Requirements:
        """What its node will be like."""
        pool = self.template.state.requirements
        return pool.merged(self.instance_type.requirements).merged(self.offering.requirements)

    def domain(self, key: str) -> str | None:
        """The value its node will have for a topology key; None if there is none, or it is not settled."""
        return next(iter(self.requirements[key].values)) if _is_single(self.requirements, key) else None


class Offers:
    """All bins of a problem: first the offers, then the rows of nodes that are there."""

    def __init__(self, ground: Groundwork) -> None:
        self._ground = ground
        self._well_known = ground.problem.well_known
        self.offers: list[Offer] = [offer for template in ground.templates for offer in self._of_template(template)]
        self._templates = {template: number for number, template in enumerate(ground.templates)}
        self._template_of = np.array([self._templates[offer.template] for offer in self.offers], dtype=np.intp)
        types = list(dict.fromkeys(offer.instance_type for offer in self.offers))
        places = list(dict.fromkeys(offer.offering.requirements for offer in self.offers))
        self._type_requirements = [one.requirements for one in types]
        self._place_requirements = places
        type_number = {one: number for number, one in enumerate(types)}
        place_number = {one: number for number, one in enumerate(places)}
        self._type_of = np.array([type_number[offer.instance_type] for offer in self.offers], dtype=np.intp)
        self._place_of = np.array([place_number[offer.offering.requirements] for offer in self.offers], dtype=np.intp)
        self._masks: dict[Requirements, BoolArray] = {}
        self._sour: dict[str, bool] = {}
        self._leaving = [node for node in ground.problem.state_nodes if node.is_marked_for_deletion]
        self._daemons = self._fresh_daemons()
        self.limited: list[tuple[str, str]] = []
        """Pool and resource of the limits last asked for; reservations come after them."""

    def _of_template(self, template: Template) -> list[Offer]:
        pool = template.state.requirements
        columns = self._ground.columns
        found = []
        for number, group in enumerate(template.groups):
            for one in group.types:
                for alike in one.allocatable_groups:
                    have, daemons = alike.allocatable, group.overhead
                    left = {name: have.get(name, 0) - daemons.get(name, 0) for name in (*have, *daemons)}
                    if min((*have.values(), *left.values()), default=0) < 0:
                        continue
                    hoped = np.fromiter((left.get(name, 0) for name in columns), dtype=np.int64, count=len(columns))
                    room = hoped
                    if self._has_choosy_daemons:
                        wanted = self._surely_taken(template, one)
                        missed = {name: max(milli - daemons.get(name, 0), 0) for name, milli in wanted.items()}
                        room = hoped - np.array([missed.get(name, 0) for name in columns], dtype=np.int64)
                    found += [
                        Offer(template, number, one, offering, room, hoped)
                        for offering in alike.offerings
                        if offering.is_launchable
                        and pool.is_compatible(offering.requirements, allow_undefined=self._well_known)
                    ]
        return found

    @cached_property
    def _has_choosy_daemons(self) -> bool:
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for pod in self._ground.problem.daemon_pods:
            nodes = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
            if len((nodes.get(required) or {}).get("nodeSelectorTerms") or ()) > 1:
                return True
        return False

    def _fresh_daemons(self) -> list[Daemon]:
        problem = self._ground.problem
        return daemons_of(
            problem.daemon_pods,
            size=problem.options.size_daemons,
            ignore_resource_claims=problem.options.ignore_dra_requests,
        )

    def _surely_taken(self, template: Template, one: InstanceType) -> ResourceVector:
        """What daemons take of a type, each asked anew."""
        requirements = template.state.requirements
        running = (
            daemon
            for daemon in self._fresh_daemons()
            if daemon.runs_on_new(template.taints, requirements, one, self._well_known)
        )
        return total_of(daemon.requests(one.allocatable) for daemon in running)

    @property
    def held(self) -> int:
        """How many nodes are there."""
        return len(self._ground.nodes)

    def __len__(self) -> int:
        return len(self.offers) + self.held

    def rooms(self, *, hoped: bool = False) -> IntArray:
        """bins x resources."""
        rooms = [offer.hoped_room if hoped else offer.room for offer in self.offers]
        new = np.array(rooms, dtype=np.int64).reshape(-1, len(self._ground.columns))
        return np.concatenate([new, self._ground.nodes.room.T])

    def prices(self) -> list[float]:
        """Nodes that are there are paid for."""
        return [offer.offering.price_usd_per_hour for offer in self.offers] + [0.0] * self.held

    def bin_of(self, pool: str, instance_type: InstanceType, offering: Offering) -> int | None:
        """The bin of an offer."""
        return self._bins.get((pool, id(instance_type), id(offering)))

    @cached_property
    def _bins(self) -> dict[tuple[str, int, int], int]:
        return {
            (offer.template.pool.name, id(offer.instance_type), id(offer.offering)): bin_
            for bin_, offer in enumerate(self.offers)
        }

    def domain(self, bin_: int, key: str) -> str | None:
        """The value of a topology key on a node of this bin."""
        if bin_ < len(self.offers):
            return self.offers[bin_].domain(key)
        return self._ground.nodes.nodes[bin_ - len(self.offers)].labels.get(key)

    def suitable(self, form: PodForm) -> BoolArray:
        """Bins that one pod may use by taints, labels, ports and volumes; room is not looked at."""
        found = np.zeros(len(self), dtype=np.bool_)
        for one in ways_of(form):
            found |= self._of_form(one)
        return found

    def surely_suitable(self, form: PodForm) -> BoolArray:
        """Those of them where it will not only be sent, but also run.

        Karpenter sends pods where the scheduler will not have them: if what they ask for contradicts itself, if a
        daemon still to come needs the same port, or if a node lacks a resource that a pod there holds already.
        """
        ways = [one for one in ways_of(form) if not contradicts_itself(one)]
        found = np.zeros(len(self), dtype=np.bool_)
        for one in ways:
            found |= self._of_form(one, strictly=True)
        nodes = self._ground.nodes.nodes
        for row in np.flatnonzero(found[len(self.offers) :]).tolist():
            if self._is_sour(nodes[row]) or (form.ports and self._expects_port(nodes[row], form)):
                found[len(self.offers) + row] = False
        return found

    def _is_sour(self, node: StateNode) -> bool:
        known = self._sour.get(node.name)
        if known is None:
            held, allocatable = node.pod_requests, node.allocatable
            known = any(milli > 0 and name not in allocatable for name, milli in held.items())
            self._sour[node.name] = known
        return known

    def _expects_port(self, node: StateNode, form: PodForm) -> bool:
        labels = Requirements.from_labels(node.labels)
        return any(any_conflict(form.ports, one.ports) and one.runs_on(node, labels) for one in self._daemons)

    def _of_form(self, form: PodForm, *, strictly: bool = False) -> BoolArray:
        volumes = form.volume_alternatives
        if strictly and volumes:
            # Volumes in different places leave no place; read as one requirement, a node without the label has it.
            volumes = tuple(v for v in volumes if not any(r.operator == "DoesNotExist" for r in v.values()))
            if not volumes:
                return np.zeros(len(self), dtype=np.bool_)
        return np.concatenate([self._new_for(form, volumes), self._held_for(form, volumes)])

    def _new_for(self, form: PodForm, volumes: tuple[Requirements, ...]) -> BoolArray:
        if not self.offers or (form.hostname is not None and form.hostname.is_positive):
            return np.zeros(len(self.offers), dtype=np.bool_)
        templates = self._ground.templates
        tolerated = np.array([template.is_tolerated(form.demands.tolerations) for template in templates])
        mask = tolerated[self._template_of] & self._mask(form.requirements)
        if volumes:
            wanted = (one.without(HOSTNAME_LABEL) for one in volumes)
            mask &= np.logical_or.reduce([self._mask(form.requirements.merged(one)) for one in wanted])
        if form.ports:
            mask &= np.array([
                not any_conflict(form.ports, offer.template.groups[offer.group].ports) for offer in self.offers
            ])  # fmt: skip
        return np.asarray(mask, dtype=np.bool_)

    def _mask(self, wanted: Requirements) -> BoolArray:
        """Offers whose pool, type and place agree with requirements."""
        found = self._masks.get(wanted)
        if found is None:
            pools = np.array([
                template.state.requirements.is_compatible(wanted, allow_undefined=self._well_known)
                for template in self._ground.templates
            ])  # fmt: skip
            types = np.array([one.intersects(wanted) for one in self._type_requirements])
            places = np.array([one.intersects(wanted) for one in self._place_requirements])
            found = pools[self._template_of] & types[self._type_of] & places[self._place_of]
            self._masks[wanted] = found
        return found

    def _held_for(self, form: PodForm, volumes: tuple[Requirements, ...]) -> BoolArray:
        nodes = self._ground.nodes
        mask = nodes.suitable(form).copy() if len(nodes) else np.zeros(0, dtype=np.bool_)
        if form.ports or volumes:
            for row in np.flatnonzero(mask).tolist():
                mask[row] = not any_conflict(form.ports, nodes.ports(row)) and self._mounts(form, volumes, row)
        return mask

    def _mounts(self, form: PodForm, volumes: tuple[Requirements, ...], row: int) -> bool:
        nodes = self._ground.nodes
        if not volumes:
            return True
        state = nodes.states[row].taking(form.requirements)
        hostname = nodes.nodes[row].hostname
        return state is not None and any(
            (HOSTNAME_LABEL not in wanted or wanted[HOSTNAME_LABEL].has(hostname))
            and state.taking(wanted.without(HOSTNAME_LABEL)) is not None
            for wanted in volumes
        )

    def flexible_enough(self) -> BoolArray:
        """Bins whose claims meet ``minValues``: types at least as roomy, at the same place, make up the numbers."""
        found = np.ones(len(self), dtype=np.bool_)
        if self._ground.problem.options.min_values_policy != "Strict":
            return found
        for number, offer in enumerate(self.offers):
            if offer.template.has_min_values:
                wanted = offer.template.state.requirements
                found[number] = not unmet_min_values(self.substitutes(offer, offer.room), wanted)
        return found

    def substitutes(self, offer: Offer, used: IntArray, *, slack: float = INFINITY) -> list[InstanceType]:
        """Types that could take the place of an offer: same pool and place, room for what is used; itself first.

        With ``slack`` only those that cost less than so much more.
        """
        there, rooms, prices = self._at_place[place_of(offer)]
        fits = np.flatnonzero((rooms >= used).all(axis=1) & (prices < offer.offering.price_usd_per_hour + slack))
        return list(dict.fromkeys((offer.instance_type, *(there[number].instance_type for number in fits.tolist()))))

    @cached_property
    def _at_place(self) -> dict[tuple[str, ...], tuple[list[Offer], IntArray, FloatArray]]:
        """Offers of one pool at one place, their rooms and prices."""
        there: dict[tuple[str, ...], list[Offer]] = {}
        for offer in self.offers:
            there.setdefault(place_of(offer), []).append(offer)
        return {
            place: (
                found,
                np.array([offer.room for offer in found]),
                np.array([offer.offering.price_usd_per_hour for offer in found]),
            )
            for place, found in there.items()
        }

    def leaves_open(self, key: str) -> bool:
        """Whether some new node could get any of several values of a label."""
        pools = [template.state.requirements for template in self._ground.templates]
        return all(
            any(not _is_single(one, key) for one in level)
            for level in (pools, self._type_requirements, self._place_requirements)
        )

    def limits(self, *, with_nodes: bool) -> tuple[list[list[int]], list[int]]:
        """Weights of bins and what is left, for each limit of a pool and for each reservation."""
        weights: list[list[int]] = []
        totals: list[int] = []
        self.limited = []
        for pool, left in self._ground.limits.items():
            for name, milli in left.items():
                if name == "nodes" and not with_nodes and milli > 0:
                    continue
                if with_nodes:
                    # Nodes on their way out still count for whoever looks at the pool.
                    milli -= sum(n.capacity.get(name, 0) for n in self._leaving if n.pool_name == pool)
                self.limited.append((pool, name))
                weights.append([self._charge(offer, pool, name) for offer in self.offers] + [0] * self.held)
                totals.append(max(milli, 0))
        for reservation, room in self._reservations().items():
            weights.append([int(o.offering.reservation_id == reservation) for o in self.offers] + [0] * self.held)
            totals.append(room)
        return weights, totals

    @staticmethod
    def _charge(offer: Offer, pool: str, name: str) -> int:
        if offer.template.pool.name != pool:
            return 0
        if name == "nodes":
            return 1000
        if offer.template.has_min_values:
            # The claim will list larger types as well, and may become any of them.
            return max(one.capacity.get(name, 0) for group in offer.template.groups for one in group.types)
        return offer.instance_type.capacity.get(name, 0)

    def _reservations(self) -> Mapping[str, int]:
        """How many more nodes a reservation has room for: the least that any of its offerings says."""
        problem = self._ground.problem
        room: dict[str, int] = {}
        if problem.options.reserved_capacity:
            for one in {one for types in problem.types_of_pool.values() for one in types}:
                for offering in one.offerings:
                    if offering.is_reserved:
                        name, capacity = offering.reservation_id, offering.reservation_capacity
                        room[name] = min(room.get(name, capacity), capacity)
        return room

    def how_often(self) -> list[int]:
        """How many nodes of each bin there can be."""
        room = self._reservations()
        return [room.get(offer.offering.reservation_id, UNLIMITED) for offer in self.offers] + [1] * self.held


def place_of(offer: Offer) -> tuple[str, ...]:
    """Pool, zone, capacity type and reservation: what types are interchangeable at."""
    offering = offer.offering
    return offer.template.pool.name, offering.zone, offering.capacity_type, offering.reservation_id


def _is_single(requirements: Requirements, key: str) -> bool:
    found = requirements.get(key)
    return found is not None and not found.complement and len(found.values) == 1


def contradicts_itself(form: PodForm) -> bool:
    """Whether a pod must find a label and must not: the algebra then reads that nobody may have it."""
    every = (*form.requirements.values(), *(() if form.hostname is None else (form.hostname,)))
    nowhere = {one.key for one in every if one.operator == "DoesNotExist"}
    if not nowhere:
        return False
    demands = form.demands
    expressions = (demands.node_terms or ({},))[0].get("matchExpressions") or ()
    wanted = {Requirement.from_json(one).key for one in expressions if one.get("operator") not in _NEGATIVE}
    return not nowhere.isdisjoint(wanted | set(Requirements.from_labels(demands.node_selector)))


def ways_of(form: PodForm) -> list[PodForm]:
    """The form with each of its alternatives, and at last with the aversion to PreferNoSchedule given up."""
    found = alternatives(form)
    return found + last_resorts(found[-1])


def alternatives(form: PodForm) -> list[PodForm]:
    """The form with each of its required node affinity terms in turn."""
    found = [form]
    while (found[-1].demands.node_terms or ())[1:]:
        after = found[-1].relaxed
        assert after is not None, "a form with several terms can give one up"
        found.append(after)
    return found


def last_resorts(form: PodForm) -> list[PodForm]:
    """What a form without alternatives may still give up."""
    after = form.relaxed
    return [] if after is None else [after]
