"""Which nodes are ready, starting, broken or on their way out, by group and in all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from holokube.cluster_autoscaler.cloud.provider import GroupOptions, Instance
from holokube.cluster_autoscaler.objects import (
    RESOURCE_UNREADY,
    condition_of,
    creation_s,
    name_of,
    provider_id,
    readiness_of,
)
from holokube.cluster_autoscaler.objects import Readiness as NodeReadiness
from holokube.kube.types import JsonObject

FAKE_NODE_REASON = "k8s.io/cluster-autoscaler/fake-node-reason"
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


def fake_node(instance_id: str, reason: str) -> JsonObject:
    """The node that stands for a machine without one."""
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": instance_id, "annotations": {FAKE_NODE_REASON: reason}},
        "spec": {"providerID": instance_id},
    }


def is_suspended(node: JsonObject) -> bool:
    """Whether the first condition ``Suspended`` is true."""
    condition = condition_of(node, "Suspended")
    return condition is not None and condition.get("status") == "True"


def not_registered(nodes: Iterable[JsonObject], instances: Mapping[str, Iterable[Instance]],
                   now_s: float) -> list[Unregistered]:
    """The machines that should have become a node and have not."""
    registered = {provider_id(node) for node in nodes}
    return [
        Unregistered(fake_node(instance.id, FAKE_UNREGISTERED), now_s)
        for of_group in instances.values() for instance in of_group
        if instance.id not in registered and instance.is_expected_to_register
    ]


def measure(
    nodes: Iterable[JsonObject],
    unregistered: Iterable[Unregistered],
    *,
    group_of_node: Mapping[str, str],
    group_of_instance: Mapping[str, str],
    options: Mapping[str, GroupOptions],
    deleted: frozenset[str],
    now_s: float,
) -> tuple[dict[str, Readiness], Readiness]:
    """Readiness by group, and of the whole cluster."""
    total = Readiness(time_s=now_s)
    by_group: dict[str, Readiness] = {}
    # A node without a group goes by the start-up time of the group looked at last, as upstream has it.
    startup_time_s = DEFAULT_STARTUP_TIME_S
    for node in nodes:
        group_id = group_of_node.get(name_of(node))
        if group_id is not None and group_id in options:
            startup_time_s = options[group_id].max_node_startup_time_s
        state = readiness_of(node)
        if group_id is not None:
            _count(by_group.setdefault(group_id, Readiness()), node, state, startup_time_s, deleted, now_s)
        _count(total, node, state, startup_time_s, deleted, now_s)
    for machine in unregistered:
        group_id = group_of_instance.get(machine.id)
        if group_id is None or group_id not in options:
            continue
        of_group = by_group.setdefault(group_id, Readiness())
        is_long = machine.since_s + options[group_id].max_node_provision_time_s < now_s
        for counts in (of_group, total):
            (counts.long_unregistered if is_long else counts.unregistered).append(machine.id)
    for of_group in by_group.values():
        of_group.time_s = now_s
    return by_group, total


def _count(into: Readiness, node: JsonObject, state: NodeReadiness, startup_time_s: float,
           deleted: frozenset[str], now_s: float) -> None:
    name = name_of(node)
    into.registered.append(name)
    if name in deleted:
        into.deleted.append(name)
    elif is_suspended(node):
        into.suspended.append(name)
    elif state.is_ready:
        into.ready.append(name)
    elif creation_s(node) + startup_time_s > now_s:
        into.not_started.append(name)
    else:
        into.unready.append(name)
        if state.reason == RESOURCE_UNREADY:
            into.resource_unready.append(name)
