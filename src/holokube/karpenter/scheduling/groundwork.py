"""What stays the same however often a problem is solved: pools, types, nodes and counts, made ready as arrays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.census import Census, uid_of
from holokube.karpenter.scheduling.copying import shallow
from holokube.karpenter.scheduling.daemon_overhead import daemons_of
from holokube.karpenter.scheduling.default_spread import DefaultSpread
from holokube.karpenter.scheduling.domains import Universe
from holokube.karpenter.scheduling.existing_nodes import NodeTable, fitting
from holokube.karpenter.scheduling.pod_forms import FormBook, PodForm
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.requirement_states import StateSpace
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.templates import Template, template_requirements, usable_types
from holokube.karpenter.scheduling.topology_specs import SpecBook
from holokube.karpenter.scheduling.type_table import IntArray
from holokube.karpenter.scheduling.volume_demands import VolumeReader
from holokube.kube.resources import PODS, ResourceVector
from holokube.kube.taints import PREFER_NO_SCHEDULE
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}


class Groundwork:
    """A problem made ready. ``movable`` pods may be placed as well, though they are bound now."""

    def __init__(
        self,
        problem: Problem,
        movable: Sequence[JsonObject] = (),
        resources: Iterable[str] = (),
        watched: Iterable[str] = (),
    ) -> None:
        """``resources`` get a column even if no pod wants them, ``watched`` labels count even if none asks for them."""
        self.problem = problem
        options = problem.options
        pools = problem.ordered_pools
        self.volumes = VolumeReader(problem.storage)
        self.defaults = DefaultSpread(problem)
        self.pods = [self.defaults.applied(pod) for pod in problem.pods]
        bound = [pod for node in problem.state_nodes for pod in node.pods]
        self.specs = SpecBook(
            chain(self.pods, map(self.defaults.applied, movable), bound), problem.namespaces, watched
        )
        self.universe = Universe(pools, problem.types_of_pool)
        self.census = Census(problem.state_nodes, {uid_of(pod) for pod in self.pods}, self.specs, self.universe)
        self.daemons = daemons_of(
            problem.daemon_pods, size=options.size_daemons, ignore_resource_claims=options.ignore_dra_requests
        )
        self.space = StateSpace(problem.well_known)
        self.templates: list[Template] = []
        self.skipped_pools: list[NodePool] = []
        """Pools whose requirements leave no instance type."""
        for pool in pools:
            types = usable_types(
                problem.types_of_pool[pool.name], template_requirements(pool), problem.well_known,
                relax_min_values=options.min_values_policy == "BestEffort",
            )  # fmt: skip
            if types:
                self.templates.append(Template(pool, types, self.daemons, self.space, problem.well_known))
            else:
                self.skipped_pools.append(pool)
        self.nodes = NodeTable(problem.active_nodes, self.daemons, {pool.name: pool for pool in pools})
        self.columns = self._columns(problem, resources)
        for template in self.templates:
            template.build(self.columns, problem.volume_limits)
        self.nodes.build(self.columns, self.volumes, problem.volume_limits)
        self.forms = FormBook(
            self.specs, self.volumes, self.columns,
            with_wishes=options.preference_policy == "Respect",
            tolerate_preferences=any(t.effect == PREFER_NO_SCHEDULE for pool in pools for t in pool.taints),
        )  # fmt: skip
        self.limits = self._limits(pools)
        self.new_room: dict[PodForm, tuple[list[float], list[int]]] = {}
        """By form: prices, and how many pods the largest new node takes that is offered for no more."""
        self.openings: dict[PodForm, int | None] = {}
        """By form: the place of the template that a new node for it is made from, all limits aside."""
        self.alone_on_new: dict[PodForm, int] = {}
        """By form: how many of its pods such a node can take that has no others."""

    def _columns(self, problem: Problem, more: Iterable[str]) -> dict[str, int]:
        """A column for every resource that some pod wants."""
        names = {PODS, *more}
        for node in problem.state_nodes:
            names.update(node.pod_requests)
        for pod in self.pods:
            names.update(resource_names(pod))
        return {name: column for column, name in enumerate(sorted(names))}

    def _limits(self, pools: Sequence[NodePool]) -> dict[str, ResourceVector]:
        """What is left of each pool's limits beside the nodes that it has."""
        limits = {pool.name: dict(pool.limits) for pool in pools if pool.limits is not None}
        if not limits:
            return limits
        for node in self.nodes.nodes:
            remaining = limits.get(node.pool_name)
            if remaining is not None:
                for name in remaining:
                    remaining[name] -= node.capacity.get(name, 0)
        return limits

    def table(self, nodes: Sequence[StateNode], pools: Mapping[str, NodePool]) -> NodeTable:
        """Other nodes, under the same pools and DaemonSets."""
        found = NodeTable(nodes, self.daemons, pools)
        found.build(self.columns, self.volumes, self.problem.volume_limits)
        return found

    def at(
        self,
        problem: Problem,
        pools: Sequence[NodePool],
        pods: list[JsonObject],
        nodes: NodeTable,
        census: Census,
        templates: list[Template],
    ) -> Groundwork:
        """The same groundwork under a later problem, with its nodes and pods; all else is as it was.

        ``pools`` are those of the problem in their order.
        """
        later = shallow(self)
        later.problem, later.pods, later.nodes, later.templates = problem, pods, nodes, templates
        later.census = census
        later.forms.forget_pods(len(pods))
        later.volumes = VolumeReader(problem.storage)
        later.limits = later._limits(pools)  # noqa: SLF001 - it is a copy of this very object
        return later

    @property
    def has_plain_offers(self) -> bool:
        """Whether what a new node can hold is all that matters about it."""
        return not self.limits and not any(
            template.has_min_values or template.table.has_reserved for template in self.templates
        )

    def opening(self, form: PodForm) -> Template | None:
        """The first pool that a new node for a form can be of."""
        if form not in self.openings:
            found = [place for place, template in enumerate(self.templates) if _can_be_of(template, form)]
            self.openings[form] = found[0] if found else None
        place = self.openings[form]
        return self.templates[place] if place is not None else None

    def new_capacity(self, form: PodForm, price: float) -> int:
        """How many pods of a form one new node can take at most that may cost less than a price."""
        known = self.new_room.get(form)
        if known is None:
            offers: list[tuple[float, int]] = []
            for template in self.templates:
                counts = fitting(template.table.room, form)
                prices = template.table.lowest_prices(template.state)
                offers += [
                    (prices[place], int(count))
                    for place, count in zip(template.table.row_types.tolist(), counts.tolist(), strict=True)
                ]
            offers.sort()
            most = np.maximum.accumulate([count for _, count in offers]).tolist() if offers else []
            known = self.new_room[form] = [one for one, _ in offers], most
        place = bisect_left(known[0], price)
        return known[1][place - 1] if place else 0

    def takes_together(self, vector: IntArray, price: float) -> bool:
        """Whether one new node that may cost less than a price can take pods that ask for so much together."""
        for template in self.templates:
            table = template.table
            fits = np.logical_and.reduce(table.room >= vector[:, None], axis=0)
            prices = table.lowest_prices(template.state)
            if any(prices[place] < price for place in table.row_types[fits].tolist()):
                return True
        return False

    def form_of(self, pod: JsonObject) -> PodForm | str:
        """The form of a pod, or why it cannot be placed at all."""
        try:
            return self.forms.form_of(pod)
        except LookupError as error:
            return str(error.args[0])


def _can_be_of(template: Template, form: PodForm) -> bool:
    """Whether a new node for a pod can be of a pool."""
    table = template.table
    return template.is_tolerated(form.demands.tolerations) and bool(
        (fitting(table.room, form)[table.rows(template.state)] > 0).any()
    )


def resource_names(pod: Mapping[str, Any]) -> set[str]:
    """The resources that a pod speaks of."""
    spec = pod.get("spec") or _EMPTY
    names: set[str] = set(spec.get("overhead") or ())
    for part in (spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        requests = (part.get("resources") or _EMPTY).get("requests")
        if requests:
            names.update(requests)
    for status in (pod.get("status") or _EMPTY).get("containerStatuses") or ():
        names.update((status.get("resources") or _EMPTY).get("requests") or ())
        names.update(status.get("allocatedResources") or ())
    return names
