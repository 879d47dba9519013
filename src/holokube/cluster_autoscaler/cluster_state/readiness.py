"""Which nodes are ready, starting, broken or on their way out, by group and in all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.cluster_autoscaler.node_facts import FAKE_NODE_REASON, NodeFacts, NodeReadings, changed_places
from holokube.cluster_autoscaler.objects import RESOURCE_UNREADY, name_of
from holokube.kube.types import JsonObject

FAKE_UNREGISTERED = "unregistered"
FAKE_CREATE_ERROR = "create-error"
DEFAULT_STARTUP_TIME_S = 900.0


@dataclass(slots=True)
class Readiness:
    """Names of nodes by what they are up to."""

    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    """Broken after they had started."""
    deleted: list[str] = field(default_factory=list)
    """Still nodes, no longer part of a target size."""
    not_started: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    registered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    resource_unready: list[str] = field(default_factory=list)
    """Those of the unready that lack a resource; only shown, decides nothing."""
    time_s: float | None = None
    """When it was looked at; None for a group that has nothing to look at."""


class Unregistered(NamedTuple):
    """A machine without a node."""

    node: JsonObject
    since_s: float

    @property
    def id(self) -> str:
        """The instance's id."""
        return name_of(self.node)


class LookedAt(NamedTuple):
    """What the readiness of nodes depends on besides the time."""

    nodes: Sequence[JsonObject]
    group_of_node: Mapping[str, str]
    options: Mapping[str, GroupOptions]
    deleted: frozenset[str]


class Measured(NamedTuple):
    """The readiness of nodes, and of what."""

    of: LookedAt
    by_group: dict[str, Readiness]
    total: Readiness
    until_s: float
    """When the first node grows out of its state by the time alone: one that has not started."""

    def renewed(self, looked_at: LookedAt, now_s: float, readings: NodeReadings) -> Measured | None:
        """The same for what is looked at later; None if nodes have to be measured again."""
        ours = self.of
        if (
            ours.group_of_node is not looked_at.group_of_node or ours.deleted != looked_at.deleted
            or ours.options != looked_at.options or now_s >= self.until_s or not isinstance(ours.nodes, tuple)
        ):  # fmt: skip
            return None
        if ours.nodes is looked_at.nodes:
            return self
        places = changed_places(ours.nodes, looked_at.nodes)
        of = readings.of
        if places is None or not all(
            _is_plainly_ready(of(ours.nodes[place])) and _is_plainly_ready(of(looked_at.nodes[place]))
            for place in places
        ):
            return None
        return self._replace(of=looked_at)

    def with_machines(
        self, unregistered: Iterable[Unregistered], group_of_instance: Mapping[str, str], now_s: float
    ) -> tuple[dict[str, Readiness], Readiness]:
        """The readiness by group and in all, with machines that are no nodes, as of now."""
        options = self.of.options
        total = replace(self.total, unregistered=[], long_unregistered=[], time_s=now_s)
        by_group = {
            group_id: replace(found, unregistered=[], long_unregistered=[], time_s=now_s)
            for group_id, found in self.by_group.items()
        }
        for machine in unregistered:
            group_id = group_of_instance.get(machine.id)
            if group_id is None or group_id not in options:
                continue
            of_group = by_group.get(group_id)
            if of_group is None:
                of_group = by_group[group_id] = Readiness(time_s=now_s)
            is_long = machine.since_s + options[group_id].max_node_provision_time_s < now_s
            for counts in (of_group, total):
                (counts.long_unregistered if is_long else counts.unregistered).append(machine.id)
        return by_group, total


def _is_plainly_ready(facts: NodeFacts) -> bool:
    return facts.is_ready and not facts.is_suspended


def fake_node(instance_id: str, reason: str) -> JsonObject:
    """The node that stands for a machine without one."""
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": instance_id, "annotations": {FAKE_NODE_REASON: reason}},
        "spec": {"providerID": instance_id},
    }


def measure_nodes(looked_at: LookedAt, now_s: float, readings: NodeReadings) -> Measured:
    """The readiness of nodes, by group and in all."""
    nodes, group_of_node, options, deleted = looked_at
    known = readings.of_all(nodes)
    if not deleted and False not in [facts.is_ready and not facts.is_suspended for facts in known]:
        return _all_ready(looked_at, [facts.name for facts in known])
    total = Readiness()
    by_group: dict[str, Readiness] = {}
    # A node without a group goes by the start-up time of the group looked at last, as upstream has it.
    startup_time_s = DEFAULT_STARTUP_TIME_S
    until_s = math.inf
    group_id_of, registered, ready = group_of_node.get, total.registered.append, total.ready.append
    for facts in known:
        name = facts.name
        group_id = group_id_of(name)
        found = None
        if group_id is not None:
            found = by_group.get(group_id)
            if found is None:
                found = by_group[group_id] = Readiness()
            if group_id in options:
                startup_time_s = options[group_id].max_node_startup_time_s
            found.registered.append(name)
        registered(name)
        if facts.is_ready and not facts.is_suspended and name not in deleted:
            ready(name)
            if found is not None:
                found.ready.append(name)
            continue
        state = _state_of(facts, startup_time_s, deleted, now_s)
        for counts in (total,) if found is None else (found, total):
            getattr(counts, state).append(name)
            if state == "unready" and facts.readiness.reason == RESOURCE_UNREADY:
                counts.resource_unready.append(name)
        if state == "not_started":
            until_s = min(until_s, facts.created_s + startup_time_s)
    return Measured(looked_at, by_group, total, until_s)


def _all_ready(looked_at: LookedAt, names: list[str]) -> Measured:
    """The same where every node is ready, as they mostly are."""
    members: dict[str, list[str]] = {}
    for name, group_id in zip(names, map(looked_at.group_of_node.get, names), strict=True):
        if group_id is not None:
            if group_id not in members:
                members[group_id] = []
            members[group_id].append(name)
    by_group = {group_id: Readiness(ready=list(its), registered=its) for group_id, its in members.items()}
    return Measured(looked_at, by_group, Readiness(ready=list(names), registered=names), math.inf)


def _state_of(facts: NodeFacts, startup_time_s: float, deleted: frozenset[str], now_s: float) -> str:
    """The list of a ``Readiness`` that a node belongs to which is not ready, or of which that does not matter."""
    if facts.name in deleted:
        return "deleted"
    if facts.is_suspended:
        return "suspended"
    return "not_started" if facts.created_s + startup_time_s > now_s else "unready"
