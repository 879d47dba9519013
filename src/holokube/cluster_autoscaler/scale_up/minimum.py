"""Raising groups that are smaller than they may be: ``--enforce-node-group-min-size``."""

from __future__ import annotations

from typing import NamedTuple

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.scale_up.balancing import Increase
from holokube.cluster_autoscaler.scale_up.increase import cap_by_nodes_total
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.quotas import QuotaTracker
from holokube.cluster_autoscaler.scale_up.skipping import quota_reason, unsafe_reason


class MinimumPlan(NamedTuple):
    """Which groups to raise."""

    increases: tuple[Increase, ...]
    skipped: dict[str, str]
    """Why groups below their minimum stay there."""


def plan_minimum_sizes(given: ScaleUpInput) -> MinimumPlan:
    """Bring groups up to their minimum, as far as limits allow."""
    quotas = given.quotas()
    increases, skipped = [], {}
    for group in given.groups:
        if not group.exists or group.target_size is None or group.target_size >= group.min_size:
            continue
        planned = _raise(group, group.target_size, given, quotas)
        if isinstance(planned, Increase):
            increases.append(planned)
        else:
            skipped[group.id] = planned
    return MinimumPlan(tuple(increases), skipped)


def _raise(group: GroupView, target_size: int, given: ScaleUpInput, quotas: QuotaTracker) -> Increase | str:
    """The increase, or why there is none."""
    reason = unsafe_reason(group, given.safety_of)
    if reason:
        return reason
    template = given.templates.get(group.id)
    if template is None:
        return "no node info"
    reason = quota_reason(group, template, quotas, 1)
    if reason:
        return reason
    try:
        nodes = quotas.check(group.id, template.node, group.min_size - target_size).allowed
    except AutoscalerError as error:
        return error.message
    # Upstream compares with the size of the group where it compares with the size of the cluster elsewhere.
    nodes, _ = cap_by_nodes_total(nodes, target_size, given.options.max_nodes_total)
    if nodes < 1:
        return "max node total count already reached"
    return Increase(group.id, target_size, target_size + nodes, group.max_size)
