"""From the option that was chosen to the groups that are enlarged, by how much, within all limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.scale_up.balancing import Increase, balance
from holokube.cluster_autoscaler.scale_up.input import ScaleUpInput
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.cluster_autoscaler.scale_up.options import OptionsReport
from holokube.cluster_autoscaler.scale_up.quotas import QuotaTracker
from holokube.cluster_autoscaler.scale_up.similar_groups import find_similar
from holokube.cluster_autoscaler.scale_up.skipping import quota_reason

__all__ = ["Increase", "IncreasePlan", "NodesTotalReached", "cap_by_nodes_total", "plan_increases"]


@dataclass(frozen=True, slots=True)
class IncreasePlan:
    """What to ask the provider for."""

    increases: tuple[Increase, ...]
    """In the order in which they are asked for."""
    caps: tuple[str, ...] = ()
    """Why it is less than the option wanted."""
    is_nodes_total_reached: bool = False
    """Whether the limit of all nodes was met, which users are told by an event."""


class NodesTotalReached(AutoscalerError):
    """There is no room for a single node more in the whole cluster."""

    def __init__(self) -> None:
        super().__init__("max node total count already reached", kind=ErrorKind.TRANSIENT)


def plan_increases(
    best: Option, given: ScaleUpInput, report: OptionsReport, quotas: QuotaTracker
) -> IncreasePlan:
    """Cap an option by the limits of the cluster, then share it among similar groups.

    ``quotas`` are used up by it.
    """
    caps = []
    nodes, is_capped = cap_by_nodes_total(best.node_count, len(given.nodes), given.options.max_nodes_total)
    if is_capped:
        caps.append(f"max-nodes-total leaves {nodes} of {best.node_count} nodes")
    if nodes < 1:
        raise NodesTotalReached
    check = quotas.check(best.group_id, best.node.node, nodes)
    if check.allowed < nodes:
        caps.append(f"{check.reason}: leaves {check.allowed} of {nodes} nodes")
    group = given.group(best.group_id)
    similar = find_similar(group, given, report.pod_groups, frozenset(report.considered))
    sharing = [
        other for other in given.groups
        if other.id in similar.ids and not quota_reason(other, given.templates[other.id], quotas, 1)
    ]  # fmt: skip
    increases, quota_caps = _cap_each(balance([group, *sharing], check.allowed), given, quotas)
    wanted = sum(increase.delta for increase in increases)
    if not quota_caps and wanted < check.allowed:
        caps.append(f"max size of the groups leaves {wanted} of {check.allowed} nodes")
    return IncreasePlan(increases, (*caps, *quota_caps), is_capped)


def cap_by_nodes_total(nodes: int, current_nodes: int, max_nodes_total: int) -> tuple[int, bool]:
    """How many of so many nodes the cluster has room for, and whether that is less."""
    if max_nodes_total > 0 and nodes + current_nodes > max_nodes_total:
        return max_nodes_total - current_nodes, True
    return nodes, False


def _cap_each(
    increases: Sequence[Increase], given: ScaleUpInput, quotas: QuotaTracker
) -> tuple[tuple[Increase, ...], tuple[str, ...]]:
    """Groups use up the limits one after the other; what one may not have is not given to the next."""
    capped, caps = [], []
    for increase in increases:
        node = given.templates[increase.group_id].node
        check = quotas.check(increase.group_id, node, increase.delta)
        if check.allowed < increase.delta:
            caps.append(f"{check.reason}: leaves {check.allowed} of {increase.delta} nodes of {increase.group_id}")
        if check.allowed > 0:
            quotas.consume(increase.group_id, node, check.allowed)
            capped.append(replace(increase, new_size=increase.current_size + check.allowed))
    return tuple(capped), tuple(caps)
