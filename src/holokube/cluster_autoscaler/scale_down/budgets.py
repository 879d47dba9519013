"""How many of the nodes that could go are deleted at the same time.

Groups that only scale between nothing and everything (``ZeroOrMaxNodeScaling``) go whole or not at all. They come
first, and one of them may exceed the limits if nothing else was taken, since a group larger than the limits would
otherwise never go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.input import Deletions
from holokube.cluster_autoscaler.scale_down.registered import registered_nodes
from holokube.cluster_autoscaler.scale_down.report import NodeToRemove
from holokube.kube.types import JsonObject


@dataclass(slots=True)
class GroupBatch:
    """Nodes of one group that are deleted together."""

    group: GroupView
    nodes: list[NodeToRemove] = field(default_factory=list)
    batch_size: int = 0
    """How many nodes of the group have to be ready for deletion before any is deleted; 0: each goes by itself."""


@dataclass(slots=True)
class _Budget:
    parallel: int
    drain: int
    can_overflow: bool = True

    def refuses(self, empty: int, drain: int) -> bool:
        """Whether an atomic group is too much."""
        if self.parallel >= empty + drain and self.drain >= drain:
            return False
        return self.parallel == 0 or (drain > 0 and self.drain == 0) or not self.can_overflow

    def take(self, empty: int, drain: int) -> None:
        self.parallel -= empty + drain
        self.drain -= drain
        self.can_overflow = False


def crop_to_budgets(
    empty: Iterable[NodeToRemove],
    drain: Iterable[NodeToRemove],
    *,
    options: AutoscalerOptions,
    deletions: Deletions,
    groups: Mapping[str, GroupView],
    group_of_node: Mapping[str, str],
    nodes: Sequence[JsonObject],
) -> tuple[list[GroupBatch], list[GroupBatch]]:
    """The empty nodes and the nodes to drain that may be deleted now, by group.

    ``nodes`` are all nodes of the snapshot: a group whose registered nodes all go is complete even if some of its
    machines never registered.
    """
    in_flight = len(deletions.empty) + len(deletions.drained)
    budget = _Budget(
        options.max_scale_down_parallelism - in_flight, options.max_drain_parallelism - len(deletions.drained)
    )
    empty_single, empty_atomic = _by_group(empty, groups, group_of_node)
    drain_single, drain_atomic = _by_group(drain, groups, group_of_node)
    empty_taken, drain_taken = _crop_atomic(empty_atomic, drain_atomic, budget, nodes)
    budget.parallel -= _crop_single(empty_taken, empty_single, budget.parallel)
    _crop_single(drain_taken, drain_single, min(budget.parallel, budget.drain))
    return empty_taken, drain_taken


def _by_group(
    removals: Iterable[NodeToRemove], groups: Mapping[str, GroupView], group_of_node: Mapping[str, str]
) -> tuple[list[GroupBatch], dict[str, GroupBatch]]:
    """Batches of ordinary groups, and of atomic ones by their id, each in the order of their first node."""
    single: dict[str, GroupBatch] = {}
    atomic: dict[str, GroupBatch] = {}
    for removal in removals:
        group = groups.get(group_of_node.get(removal.name, ""))
        if group is None:
            continue
        batches = atomic if group.options.zero_or_max_node_scaling else single
        batches.setdefault(group.id, GroupBatch(group)).nodes.append(removal)
    return list(single.values()), atomic


def _crop_atomic(
    empty: Mapping[str, GroupBatch], drain: Mapping[str, GroupBatch], budget: _Budget, nodes: Sequence[JsonObject]
) -> tuple[list[GroupBatch], list[GroupBatch]]:
    empty_taken: list[GroupBatch] = []
    drain_taken: list[GroupBatch] = []
    for group_id, batch in empty.items():
        partner = drain.get(group_id)
        to_drain = len(partner.nodes) if partner is not None else 0
        if budget.refuses(len(batch.nodes), to_drain):
            break
        if not _is_whole(batch, to_drain, nodes):
            continue
        empty_taken.append(batch)
        if partner is not None:
            partner.batch_size = batch.batch_size
            drain_taken.append(partner)
        budget.take(len(batch.nodes), to_drain)
    budget.drain = min(budget.parallel, budget.drain)
    for group_id, batch in drain.items():
        if group_id in empty:
            continue
        if budget.drain < len(batch.nodes) and (budget.drain == 0 or not budget.can_overflow):
            break
        if _is_whole(batch, 0, nodes):
            drain_taken.append(batch)
            budget.take(0, len(batch.nodes))
    return empty_taken, drain_taken


def _is_whole(batch: GroupBatch, others: int, nodes: Sequence[JsonObject]) -> bool:
    """Whether all of an atomic group would go; sets how many deletions wait for each other."""
    target = batch.group.target_size
    if target is None:
        return False
    registered = len(registered_nodes(batch.group, nodes))
    batch.batch_size = registered if len(batch.nodes) == registered else target
    return len(batch.nodes) + others in (target, registered)


def _crop_single(taken: list[GroupBatch], batches: Iterable[GroupBatch], budget: int) -> int:
    """Take nodes group by group until the budget is used; returns how many."""
    left = budget
    for batch in batches:
        if left < 1:
            break
        del batch.nodes[left:]
        taken.append(batch)
        left -= len(batch.nodes)
    return budget - left
