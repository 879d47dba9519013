"""Pods that are alike, as the planner moves them: in units of one, or of several that must share a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from holokube.karpenter.optimal.model import BoolArray, IntArray
from holokube.karpenter.optimal.offers import Offers
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.host_ports import HostPort, any_conflict
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.problem import pod_key
from holokube.karpenter.scheduling.solve_run import RESOURCE_CLAIMS_IGNORED
from holokube.karpenter.scheduling.topology_specs import GroupKind, GroupSpec


@dataclass(frozen=True, slots=True, eq=False)
class PodGroup:
    """Interchangeable units of pods."""

    units: tuple[tuple[int, ...], ...]
    """Places of pods in the groundwork's list; the pods of a unit share a node."""
    parts: Counter[PodForm]
    """What forms one unit is made of."""
    demand: IntArray
    """Of one unit, by resource."""
    allowed: BoolArray
    """Bins that a unit may use; room is not looked at."""
    cell: tuple[str | None, ...] | None = field(default=None)
    """The topology domains chosen for it, if that matters."""

    @property
    def form(self) -> PodForm:
        """The form of all its pods, or of the first."""
        return next(iter(self.parts))

    def owns(self, spec: GroupSpec) -> bool:
        """Whether a pod of a unit is bound by a topology group."""
        return any(spec in form.specs for form in self.parts)

    def counted_by(self, spec: GroupSpec, *, owners_only: bool = False) -> int:
        """How many pods of a unit count for a topology group."""
        return sum(
            number
            for form, number in self.parts.items()
            if spec.selects(form.labels) and (not owners_only or spec in form.specs)
        )

    def narrowed(self, allowed: BoolArray) -> PodGroup:
        """The same with fewer bins."""
        return replace(self, allowed=self.allowed & allowed)


def groups_of(ground: Groundwork, offers: Offers) -> tuple[list[PodGroup], dict[str, str]]:
    """The pods by form, and why some cannot be placed at all."""
    by_form: dict[PodForm, list[int]] = {}
    refused: dict[str, str] = {}
    for place, pod in enumerate(ground.pods):
        form = ground.form_of(pod)
        if isinstance(form, str):
            refused[pod_key(pod)] = form
        elif form.has_resource_claims and ground.problem.options.ignore_dra_requests:
            refused[pod_key(pod)] = RESOURCE_CLAIMS_IGNORED
        else:
            by_form.setdefault(form, []).append(place)
    groups = [
        PodGroup(tuple((place,) for place in places), Counter([form]), form.vector, offers.suitable(form))
        for form, places in by_form.items()
    ]
    return groups, refused


def specs_of(groups: list[PodGroup], kind: GroupKind) -> list[GroupSpec]:
    """Topology groups of one kind that any pod is bound by."""
    found = dict.fromkeys(spec for group in groups for form in group.parts for spec in form.specs)
    return [spec for spec in found if spec.kind is kind]


def bound_counts(ground: Groundwork, spec: GroupSpec) -> Mapping[str, int]:
    """Pods by domain that a group counts before anything is placed.

    An affinity term without a selector is about no pod; Karpenter takes it, among pods that run, for all of them.
    """
    if spec.kind is GroupKind.AFFINITY and spec.count_selector is not spec.selector:
        return {}
    return ground.census.base(spec, inverse=False).counts


def bundled(ground: Groundwork, offers: Offers, groups: list[PodGroup]) -> list[PodGroup]:
    """Groups after joining what must share a node: pods with affinity to pods of their own kind, by hostname.

    If such pods run already, the others go to them; else all of them are one unit, or as many as any node holds.
    """
    for spec in specs_of(groups, GroupKind.AFFINITY):
        if not spec.is_hostname:
            continue
        owners = [group for group in groups if group.owns(spec)]
        rest = [group for group in groups if not group.owns(spec)]
        counts = bound_counts(ground, spec)
        if any(counts.values()):
            hosts = np.zeros(len(offers), dtype=np.bool_)
            for row, node in enumerate(ground.nodes.nodes):
                hosts[len(offers.offers) + row] = counts.get(node.hostname, 0) > 0
            groups = rest + [group.narrowed(hosts) for group in owners]
            continue
        owners.sort(key=lambda group: not group.counted_by(spec))
        if not owners[0].counted_by(spec):
            leaders = [group for group in rest if group.counted_by(spec)]
            if not leaders:
                # Nobody they want to be with is there or will be.
                groups = rest + [group.narrowed(np.zeros(len(offers), dtype=np.bool_)) for group in owners]
                continue
            leader = max(leaders, key=lambda group: int(group.allowed.sum()))
            rest.remove(leader)
            if len(leader.units) > 1:
                rest.append(replace(leader, units=leader.units[1:]))
            owners = [replace(leader, units=leader.units[:1]), *owners]
        groups = rest + _one_unit(offers, owners)
    return groups


def _one_unit(offers: Offers, owners: list[PodGroup]) -> list[PodGroup]:
    """All owners on one node, the first of whom must be there; those that find no room are units without a bin."""
    rooms = offers.rooms()
    demand = np.zeros(rooms.shape[1], dtype=np.int64)
    allowed = np.ones(len(offers), dtype=np.bool_)
    parts: Counter[PodForm] = Counter()
    units: list[int] = []
    left: list[PodGroup] = []
    taken: list[HostPort] = []
    for group in owners:
        wanted = [port for form in group.parts.elements() for port in form.ports]
        for place, unit in enumerate(group.units):
            bins = allowed & group.allowed & (rooms >= demand + group.demand).all(axis=1)
            if not bins.any() or (left and not units) or any_conflict(wanted, taken):
                nowhere = np.zeros(len(offers), dtype=np.bool_)
                left.append(replace(group, units=group.units[place:], allowed=nowhere))
                break
            allowed &= group.allowed
            demand = demand + group.demand
            parts.update(group.parts)
            units += unit
            taken += wanted
    bundle = [PodGroup((tuple(units),), parts, demand, allowed)] if units else []
    return bundle + left
