"""Which nodes are considered for removal, and in which order."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.priority_order import sort_as_go
from holokube.cluster_autoscaler.scale_down.cooldown import LocalDelays
from holokube.cluster_autoscaler.scale_down.drain import Emptiness, emptiness_of
from holokube.cluster_autoscaler.scale_down.drain_rules import DrainContext, DrainRule
from holokube.cluster_autoscaler.scale_down.input import ScaleDownInput
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.kube.types import JsonObject


class Candidates(NamedTuple):
    """The nodes in the order in which they are simulated, and those that are not."""

    nodes: list[JsonObject]
    others: list[Unremovable]


def find_candidates(
    given: ScaleDownInput,
    options: AutoscalerOptions,
    rules: tuple[DrainRule, ...],
    previous: Collection[str],
    delays: LocalDelays,
) -> Candidates:
    """The nodes of groups above their minimum size, best candidates first.

    Empty nodes cost nobody anything, so they come first; among equals those that were unneeded in the turn before,
    since they are nearer to their removal; then the order of the list, as far as Go's sort keeps it.
    """
    nodes: list[JsonObject] = []
    others: list[Unremovable] = []
    for node in given.observation.nodes:
        stays = _why_not(node, given, options, delays)
        if stays is None:
            nodes.append(node)
        else:
            others.append(stays)
    # Budgets and controllers are not asked here: a node is empty or it is not.
    context = DrainContext(given.observation.now_s, options)

    def rank(node: JsonObject) -> int:
        name = name_of(node)
        emptiness = Emptiness(False)
        if given.snapshot.has_node(name):
            emptiness = emptiness_of(given.snapshot.pods_on(name), rules, context)
        return 4 * (not emptiness.is_empty) + 2 * emptiness.has_on_completion_pods + (name not in previous)

    return Candidates(sort_as_go(nodes, rank), others)


def _why_not(
    node: JsonObject, given: ScaleDownInput, options: AutoscalerOptions, delays: LocalDelays
) -> Unremovable | None:
    group = given.group_of(name_of(node))
    if group is None:
        return Unremovable(node, UnremovableReason.NOT_AUTOSCALED)
    if group.target_size is None:
        detail = f"the size of group {group.id} is unknown"
        return Unremovable(node, UnremovableReason.UNEXPECTED_ERROR, detail=detail)
    if group.target_size <= group.min_size:
        detail = f"group {group.id} has {group.target_size} nodes, at least {group.min_size} have to stay"
        return Unremovable(node, UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED, detail=detail)
    if options.scale_down_delay_type_local:
        waits = delays.reason(group.id, options, given.observation.now_s)
        if waits is not None:
            return Unremovable(node, UnremovableReason.NOT_UNNEEDED_OTHER_REASON, detail=waits)
    return None
