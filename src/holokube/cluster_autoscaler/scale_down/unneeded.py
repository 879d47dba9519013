"""The nodes that could do without, since when, and which of them have waited long enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.objects import name_of, node_is_ready
from holokube.cluster_autoscaler.scale_down.eligibility import is_scale_down_disabled
from holokube.cluster_autoscaler.scale_down.input import ScaleDownInput
from holokube.cluster_autoscaler.scale_down.minimum_resources import MinimumResources
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import NodeToRemove, Removals, UnneededNode, Unremovable
from holokube.cluster_autoscaler.taints import DELETION_CANDIDATE, taint_time_s
from holokube.kube.types import JsonObject

GroupOf = Callable[[str], GroupView | None]


class _Entry(NamedTuple):
    removal: NodeToRemove
    since_s: float
    removal_threshold_s: float
    """For how long it has to be unneeded; 0 for a node of no group."""
    is_ready: bool
    options: GroupOptions | None = None
    """What that was read from."""


class UnneededNodes:
    """A node that drops out once starts anew."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Entry] = {}
        self._listed: list[UnneededNode] | None = None

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def update(self, removals: Iterable[NodeToRemove], group_of: GroupOf, now_s: float) -> None:
        """These nodes are unneeded now, and no others. Those that already were keep their time."""
        updated: dict[str, _Entry] = {}
        for removal in removals:
            name = removal.name
            known, group = self._by_name.get(name), group_of(name)
            since_s = known.since_s if known is not None else now_s
            options = None if group is None else group.options
            if known is not None and known.removal.node is removal.node and known.options == options:
                updated[name] = known if known.removal is removal else known._replace(removal=removal)
                continue
            is_ready = node_is_ready(removal.node)
            updated[name] = _Entry(removal, since_s, _threshold_s(group, is_ready=is_ready), is_ready, options)
        self._by_name, self._listed = updated, None

    def restore(self, nodes: Iterable[JsonObject], group_of: GroupOf, now_s: float, ttl_s: float) -> None:
        """Take over the times that an earlier process left in taints, unless they are too old to be trusted."""
        restored: dict[str, _Entry] = {}
        for node in nodes:
            try:
                since_s = taint_time_s(node, DELETION_CANDIDATE)
            except ValueError:
                continue
            if since_s is not None and since_s + ttl_s >= now_s:
                name = name_of(node)
                is_ready = node_is_ready(node)
                threshold_s = _threshold_s(group_of(name), is_ready=is_ready)
                restored[name] = _Entry(NodeToRemove(node), since_s, threshold_s, is_ready)
        self._by_name, self._listed = restored, None

    def clear(self) -> None:
        """Forget all of them."""
        self._by_name, self._listed = {}, None

    def drop(self, name: str) -> None:
        """Forget one."""
        self._by_name.pop(name, None)
        self._listed = None

    def as_list(self) -> list[UnneededNode]:
        """The nodes, in the order in which they were found."""
        if self._listed is None:
            self._listed = [
                UnneededNode(entry.removal.node, entry.since_s, entry.removal_threshold_s)
                for entry in self._by_name.values()
            ]
        return self._listed

    def removable(self, given: ScaleDownInput, minimum: MinimumResources, now_s: float) -> Removals:
        """The nodes that may go now, empty ones and those to drain, and why the others have to wait.

        Sizes and minimum resources are counted down as nodes are chosen, so where not all can go, those go that have
        the fewest pods to move, empty nodes before all. What goes is in the order in which it was found. (Upstream
        chooses empty nodes first as well; apart from that it walks a map from a random place, and for the few nodes
        that are ripe at a time the order in which they were found is the one it takes most often.)
        """
        sizes = {group.id: group.target_size for group in given.groups.values() if group.target_size is not None}
        found = Removals()
        chosen: set[str] = set()
        for entry in sorted(self._by_name.values(), key=lambda entry: len(entry.removal.pods_to_reschedule)):
            stays = _why_not(entry, given, minimum, sizes, now_s)
            if stays is not None:
                found.unremovable.append(stays)
            else:
                chosen.add(entry.removal.name)
        for name, entry in self._by_name.items():
            if name in chosen:
                (found.empty if entry.removal.is_empty else found.drain).append(entry.removal)
        return found


def _threshold_s(group: GroupView | None, *, is_ready: bool) -> float:
    if group is None:
        return 0.0
    options = group.options
    return options.scale_down_unneeded_time_s if is_ready else options.scale_down_unready_time_s


def _why_not(
    entry: _Entry, given: ScaleDownInput, minimum: MinimumResources, sizes: dict[str, int], now_s: float
) -> Unremovable | None:
    node = entry.removal.node
    if is_scale_down_disabled(node):
        return Unremovable(node, UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION)
    # Exactly as long as asked for is not long enough.
    if entry.removal_threshold_s > 0 and entry.since_s + entry.removal_threshold_s >= now_s:
        detail = f"unneeded for {now_s - entry.since_s:.0f} s, must be more than {entry.removal_threshold_s:.0f} s"
        reason = (
            UnremovableReason.NOT_UNNEEDED_LONG_ENOUGH if entry.is_ready
            else UnremovableReason.NOT_UNREADY_LONG_ENOUGH)
        return Unremovable(node, reason, detail=detail)
    group = given.group_of(entry.removal.name)
    if group is None:
        return Unremovable(node, UnremovableReason.NOT_AUTOSCALED)
    size = sizes.get(group.id)
    if size is None:
        detail = f"the size of group {group.id} is unknown"
        return Unremovable(node, UnremovableReason.UNEXPECTED_ERROR, detail=detail)
    size_left = size - given.deletions.count(group.id)
    if size_left <= group.min_size:
        detail = f"group {group.id} would have {size_left - 1} nodes, at least {group.min_size} have to stay"
        return Unremovable(node, UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED, detail=detail)
    short = minimum.take(node, group)
    if short:
        detail = f"the cluster would have too little {', '.join(short)}"
        return Unremovable(node, UnremovableReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED, detail=detail)
    sizes[group.id] = size - 1
    return None
