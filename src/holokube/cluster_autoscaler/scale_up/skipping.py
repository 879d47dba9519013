"""Which groups cannot be enlarged at present, whatever the pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.scale_up.quotas import QuotaTracker
from holokube.cluster_autoscaler.scale_up.reasons import (
    ATOMIC_OVER_NODES_TOTAL,
    IN_BACKOFF,
    MAX_SIZE_REACHED,
    NOT_READY,
)


class Safety(Protocol):
    """What the registry of the cluster's state thinks of a group."""

    @property
    def is_safe(self) -> bool:
        """Whether it may be enlarged."""

    @property
    def is_healthy(self) -> bool:
        """Whether its nodes are there and well; if it is not safe although it is healthy, it is in backoff."""


SafetyOf = Callable[[str], Safety]
"""The safety of a group by its id."""


def unsafe_reason(group: GroupView, safety_of: SafetyOf) -> str:
    """Why a group is left alone; empty if it is not. A group that does not exist yet cannot have failed."""
    if not group.exists:
        return ""
    safety = safety_of(group.id)
    if safety.is_safe:
        return ""
    return IN_BACKOFF if safety.is_healthy else NOT_READY


def skip_reason(
    group: GroupView,
    templates: Mapping[str, NodeInfo],
    quotas: QuotaTracker,
    *,
    safety_of: SafetyOf,
    max_nodes_total: int,
    current_nodes: int,
) -> str:
    """Why a group is not looked at; empty if it is."""
    unsafe = unsafe_reason(group, safety_of)
    if unsafe:
        return unsafe
    if group.target_size is None:
        return NOT_READY
    if group.target_size >= group.max_size:
        return MAX_SIZE_REACHED
    nodes = 1
    if group.options.zero_or_max_node_scaling:
        nodes = group.max_size - group.target_size
        if max_nodes_total and current_nodes + nodes > max_nodes_total:
            return ATOMIC_OVER_NODES_TOTAL
    template = templates.get(group.id)
    if template is None:
        return NOT_READY
    return quota_reason(group, template, quotas, nodes)


def quota_reason(group: GroupView, template: NodeInfo, quotas: QuotaTracker, nodes: int) -> str:
    """Why so many nodes of a group are too many for the cluster's limits; empty if they are not."""
    try:
        return quotas.check(group.id, template.node, nodes).reason
    except AutoscalerError:
        # Accelerators that nobody can count yet: the group has to wait until somebody can.
        return NOT_READY
