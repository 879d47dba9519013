"""Rules about pods on one node: spread over hosts, anti-affinity, ports, volumes, labels that are still open.

"At most k of these on a node" becomes a dimension, or a number per class if it concerns one class; everything else a
pair of classes in conflict. For a bound, only rules count that every plan must keep: pods that own a constraint count
against it, others may have come later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from holokube.karpenter.optimal.model import UNLIMITED, BoolArray, IntArray
from holokube.karpenter.optimal.offers import Offers, alternatives
from holokube.karpenter.optimal.pod_groups import PodGroup, specs_of
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.host_ports import any_conflict
from holokube.karpenter.scheduling.topology_specs import GroupKind, GroupSpec
from holokube.kube.requirements import Requirement


@dataclass(slots=True, eq=False)
class HostRules:
    """Further dimensions (with demands by group and capacities by bin), numbers per node, and conflicts."""

    demands: list[IntArray] = field(default_factory=list)
    capacities: list[IntArray] = field(default_factory=list)
    are_net: list[bool] = field(default_factory=list)
    """By dimension: whether the pods to be placed, if they run already, are counted as taking room where they are."""
    per_node: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    conflicts: BoolArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))


def without_taken_places(ground: Groundwork, offers: Offers, groups: list[PodGroup]) -> list[PodGroup]:
    """Groups without the bins that anti-affinity with pods that stay forbids, from either side."""
    shunning = list(dict.fromkeys(spec for pod in ground.census.pods.values() for spec in pod.anti_specs))
    return [_apart(ground, offers, group, shunning) for group in groups]


def _apart(ground: Groundwork, offers: Offers, group: PodGroup, shunning: list[GroupSpec]) -> PodGroup:
    forbidden = np.zeros(len(offers), dtype=np.bool_)
    for form in group.parts:
        for spec in form.specs:
            if spec.kind is GroupKind.ANTI_AFFINITY:
                forbidden |= _occupied(ground, offers, spec, ground.census.base(spec, inverse=False).counts)
            elif spec.kind is GroupKind.SPREAD and spec.is_hostname:
                counts = ground.census.base(spec, inverse=False).counts
                room = spec.max_skew - int(spec.selects(form.labels))
                forbidden |= _occupied(ground, offers, spec, {host: int(n > room) for host, n in counts.items()})
        for spec in shunning:
            if spec.selects(form.labels):
                forbidden |= _occupied(ground, offers, spec, ground.census.base(spec, inverse=True).counts)
    return group.narrowed(~forbidden) if forbidden.any() else group


def _occupied(ground: Groundwork, offers: Offers, spec: GroupSpec, counts: Mapping[str, int]) -> BoolArray:
    """Bins in domains that have pods already."""
    found = np.zeros(len(offers), dtype=np.bool_)
    if not any(counts.values()):
        return found
    if spec.is_hostname:
        for row, node in enumerate(ground.nodes.nodes):
            found[len(offers.offers) + row] = counts.get(node.hostname, 0) > 0
        return found
    for bin_ in range(len(offers)):
        domain = offers.domain(bin_, spec.key)
        found[bin_] = domain is not None and counts.get(domain, 0) > 0
    return found


def host_rules(ground: Groundwork, offers: Offers, groups: list[PodGroup], *, for_bound: bool) -> HostRules:
    """The rules for these groups."""
    number = len(groups)
    rules = HostRules(
        per_node=np.full(number, UNLIMITED, dtype=np.int64), conflicts=np.zeros((number, number), dtype=np.bool_)
    )
    for spec in specs_of(groups, GroupKind.SPREAD):
        if spec.is_hostname:
            counted = [group.counted_by(spec, owners_only=for_bound) for group in groups]
            taken = ground.census.base(spec, inverse=False).counts
            _at_most(ground, offers, rules, counted, spec.max_skew, taken, for_bound=for_bound)
    for spec in specs_of(groups, GroupKind.ANTI_AFFINITY):
        if spec.is_hostname:
            both = [group.counted_by(spec, owners_only=True) for group in groups]
            _at_most(ground, offers, rules, both, 1, {}, for_bound=for_bound)
            _keep_apart(rules, groups, spec)
    _ports_apart(rules, groups)
    if not for_bound:
        _attachments(ground, offers, rules, groups)
        _open_labels_apart(offers, rules, groups)
    np.fill_diagonal(rules.conflicts, False)
    return rules


def _at_most(
    ground: Groundwork, offers: Offers, rules: HostRules, counted: list[int], most: int, taken: Mapping[str, int], *,
    for_bound: bool,
) -> None:  # fmt: skip
    """No node gets more than ``most`` of what is counted, with what is taken there already."""
    demand = np.array(counted, dtype=np.int64)
    concerned = np.flatnonzero(demand)
    if not len(concerned):
        return
    if len(concerned) == 1 and not for_bound and not any(taken.values()):
        only = concerned[0]
        rules.per_node[only] = min(rules.per_node[only], most // demand[only])
        return
    capacity = np.full(len(offers), most, dtype=np.int64)
    for row, node in enumerate(ground.nodes.nodes):
        capacity[len(offers.offers) + row] = max(most - taken.get(node.hostname, 0), 0)
    rules.demands.append(demand)
    rules.capacities.append(capacity)
    rules.are_net.append(False)


def _keep_apart(rules: HostRules, groups: list[PodGroup], spec: GroupSpec) -> None:
    """Owners of an anti-affinity term, and what it is about. Two that are both are counted, not paired."""
    owners = np.array([group.owns(spec) for group in groups])
    selected = np.array([group.counted_by(spec) > 0 for group in groups])
    both = np.array([group.counted_by(spec, owners_only=True) > 0 for group in groups])
    pairs = np.outer(owners, selected) & ~np.outer(both, both)
    rules.conflicts |= pairs | pairs.T


def _ports_apart(rules: HostRules, groups: list[PodGroup]) -> None:
    """Pods that need one port of the node."""
    wanted = [tuple(port for form in group.parts.elements() for port in form.ports) for group in groups]
    using = [number for number, ports in enumerate(wanted) if ports]
    for place, first in enumerate(using):
        rules.per_node[first] = 1
        for second in using[place + 1 :]:
            if any_conflict(wanted[first], wanted[second]):
                rules.conflicts[first, second] = rules.conflicts[second, first] = True


def _attachments(ground: Groundwork, offers: Offers, rules: HostRules, groups: list[PodGroup]) -> None:
    """Volumes that nodes can attach, by driver. A claim shared by pods counts for each of them."""
    drivers = sorted({driver for group in groups for form in group.parts for driver in form.volumes})
    limits_of_type = ground.problem.volume_limits
    for driver in drivers:
        new = [limits_of_type.get(o.instance_type.name, {}).get(driver, UNLIMITED) for o in offers.offers]
        held = []
        for row in range(offers.held):
            attached, limits = ground.nodes.volumes(row)
            limit = limits.get(driver, UNLIMITED)
            held.append(max(limit - len(attached.get(driver, ())), 0))
        if min((*new, *held), default=UNLIMITED) < UNLIMITED // 2:
            demand = [sum(len(f.volumes.get(driver, ())) for f in group.parts.elements()) for group in groups]
            rules.demands.append(np.array(demand, dtype=np.int64))
            rules.capacities.append(np.array(new + held, dtype=np.int64))
            rules.are_net.append(True)


def _open_labels_apart(offers: Offers, rules: HostRules, groups: list[PodGroup]) -> None:
    """Pods that ask for different values of a label that a new node could still get.

    Different wishes may be compatible; but only equal ones are so in any number.
    """
    wished: dict[str, dict[int, frozenset[Requirement]]] = {}
    for number, group in enumerate(groups):
        of_group: dict[str, set[Requirement]] = {}
        for form in group.parts:
            for one in alternatives(form):
                for key, requirement in one.requirements.items():
                    of_group.setdefault(key, set()).add(requirement)
        for key, requirements_of_key in of_group.items():
            wished.setdefault(key, {})[number] = frozenset(requirements_of_key)
    for key, by_group in wished.items():
        if len(set(by_group.values())) < 2 or not offers.leaves_open(key):
            continue
        for first, mine in by_group.items():
            for second, theirs in by_group.items():
                if mine != theirs:
                    rules.conflicts[first, second] = True
