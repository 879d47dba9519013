"""Which candidates are worth a simulation. The first reason against one is the reason that is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.objects import annotations_of, name_of, node_is_ready
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.input import ScaleDownInput
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable, Utilization
from holokube.cluster_autoscaler.scale_down.unremovable import UnremovableNodes
from holokube.cluster_autoscaler.scale_down.utilization import UtilizationTable
from holokube.cluster_autoscaler.taints import TO_BE_DELETED, taint_time_s
from holokube.kube.types import JsonObject

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DELETION_TIME_MAX_S = 300.0
"""A node that was marked for deletion longer ago was forgotten by whoever marked it."""


def is_scale_down_disabled(node: JsonObject) -> bool:
    """Whether somebody asked to leave the node alone."""
    return annotations_of(node).get(SCALE_DOWN_DISABLED) == "true"


def is_being_deleted(node: JsonObject, now_s: float) -> bool:
    """Whether the node was marked for deletion a short while ago."""
    try:
        marked_s = taint_time_s(node, TO_BE_DELETED)
    except ValueError:
        return False
    return marked_s is not None and now_s - marked_s < DELETION_TIME_MAX_S


@dataclass(frozen=True, slots=True)
class Eligibility:
    """What became of the candidates."""

    eligible: list[str] = field(default_factory=list)
    ineligible: list[Unremovable] = field(default_factory=list)
    utilization: dict[str, Utilization] = field(default_factory=dict)
    """Of every candidate that was looked at so closely."""


def filter_out_unremovable(
    candidates: Iterable[JsonObject], given: ScaleDownInput, options: AutoscalerOptions, known: UnremovableNodes
) -> Eligibility:
    """Split the candidates into those worth a simulation and those that stay."""
    now_s = given.observation.now_s
    table = UtilizationTable(given.snapshot.state, now_s, ignore_mirror_pods=options.ignore_mirror_pods_utilization)
    found = Eligibility()
    for node in candidates:
        name = name_of(node)
        if not given.snapshot.has_node(name):
            detail = "the node is not in the snapshot"
            found.ineligible.append(Unremovable(node, UnremovableReason.UNEXPECTED_ERROR, detail=detail))
            continue
        earlier = known.recent(name)
        if earlier is not None:
            found.ineligible.append(Unremovable(
                node, UnremovableReason.RECENTLY_UNREMOVABLE, earlier=earlier, recheck_at_s=earlier.recheck_at_s
            ))  # fmt: skip
            continue
        stays = _why_not(given.snapshot.node(name), given, options, table, found.utilization)
        if stays is None:
            found.eligible.append(name)
        else:
            found.ineligible.append(stays)
    return found


def _why_not(
    node: JsonObject,
    given: ScaleDownInput,
    options: AutoscalerOptions,
    table: UtilizationTable,
    utilization: dict[str, Utilization],
) -> Unremovable | None:
    name = name_of(node)
    if is_being_deleted(node, given.observation.now_s):
        return Unremovable(node, UnremovableReason.CURRENTLY_BEING_DELETED)
    if is_scale_down_disabled(node):
        return Unremovable(node, UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION)
    group = given.group_of(name)
    if group is None:
        return Unremovable(node, UnremovableReason.NOT_AUTOSCALED)
    gpu = given.gpu_config(node)
    used = table.of(name, ignore_daemon_sets=group.options.ignore_daemon_sets_utilization, gpu=gpu)
    if used is None:
        detail = "the node has no allocatable cpu or memory"
        return Unremovable(node, UnremovableReason.UNEXPECTED_ERROR, detail=detail)
    if not options.scale_down_unready_enabled and not node_is_ready(node):
        return Unremovable(node, UnremovableReason.SCALE_DOWN_UNREADY_DISABLED)
    utilization[name] = used
    threshold = (
        group.options.scale_down_gpu_utilization_threshold
        if gpu is not None
        else group.options.scale_down_utilization_threshold
    )
    # Exactly the threshold is still little enough.
    if used.value > threshold:
        return Unremovable(node, UnremovableReason.NOT_UNDERUTILIZED, utilization=used, threshold=threshold)
    return None
