"""Groups that go whole or not at all (``ZeroOrMaxNodeScaling``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.scale_down.input import ScaleDownInput
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.registered import registered_nodes
from holokube.cluster_autoscaler.scale_down.report import NodeToRemove, Unremovable
from holokube.kube.types import JsonObject


def keep_partial_groups(
    removals: Iterable[NodeToRemove],
    given: ScaleDownInput,
    nodes: Sequence[JsonObject] | Callable[[], Sequence[JsonObject]],
) -> tuple[list[NodeToRemove], list[Unremovable]]:
    """Let the nodes of an atomic group go only if all its machines, or all its registered nodes, would.

    Must be the last to choose: whoever takes nodes away later would break up a group again. Atomic groups come after
    the rest, each in the order of its first node.
    """
    kept: list[NodeToRemove] = []
    unremovable: list[Unremovable] = []
    by_group: dict[str, tuple[GroupView, list[NodeToRemove]]] = {}
    for removal in removals:
        group = given.group_of(removal.name)
        if group is None:
            unremovable.append(Unremovable(removal.node, UnremovableReason.NOT_AUTOSCALED))
        elif group.options.zero_or_max_node_scaling:
            by_group.setdefault(group.id, (group, []))[1].append(removal)
        else:
            kept.append(removal)
    for group, members in by_group.values():
        if group.target_size is None:
            unremovable.extend(Unremovable(one.node, UnremovableReason.UNEXPECTED_ERROR) for one in members)
            continue
        size = group.target_size
        if size != len(members):
            size = len(registered_nodes(group, nodes() if callable(nodes) else nodes))
        if size == len(members):
            kept.extend(members)
        else:
            detail = f"group {group.id} goes as a whole, and {len(members)} of {size} nodes could go"
            unremovable.extend(
                Unremovable(one.node, UnremovableReason.ATOMIC_SCALE_DOWN_FAILED, detail=detail) for one in members
            )
    return kept, unremovable
