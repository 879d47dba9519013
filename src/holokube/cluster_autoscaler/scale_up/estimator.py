"""How many nodes of a group it takes for how many of the pods: upstream's binpacking.

Groups of equal pods come largest first. Each goes (a) onto the nodes added so far, round robin, until one pod finds no
room, and (b) onto the node added last, then onto a new one, and so on. It is a packing by next fit within a group and
by first fit across groups, and not the best there is: it is the one that users of the autoscaler know.

Pods that ask for nothing but room are counted, not placed (:mod:`.new_nodes`). ``count=False`` places every pod by
itself; the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.scale_up.grouping import PodGroup
from holokube.cluster_autoscaler.scale_up.new_nodes import NewNodes
from holokube.cluster_autoscaler.scale_up.node_budget import NodeBudget
from holokube.cluster_autoscaler.scale_up.option import Batch
from holokube.cluster_autoscaler.scale_up.ordering import largest_first, with_shortcut_last
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject
from holokube.packing.podclass import PodClass

_HOSTNAME: Final = "kubernetes.io/hostname"
_SPREAD_REFUSAL: Final = "node(s) didn't match pod topology spread constraints"


@dataclass(slots=True)
class Estimate:
    """What came of it."""

    node_count: int = 0
    pods: list[JsonObject] = field(default_factory=list, repr=False)
    """Those that found room, in the order in which they did."""
    kinds: list[Batch] = field(default_factory=list, repr=False)
    refusal: str = ""
    """Why no further nodes were added although pods were left; empty if that is not so."""


def estimate(
    groups: Sequence[PodGroup],
    template: NodeInfo,
    snapshot: ClusterSnapshot,
    budget: NodeBudget,
    *,
    fastpath: bool = False,
    count: bool = True,
) -> Estimate:
    """Pack pods onto nodes like the template. The snapshot is left as it was."""
    ordered = largest_first(groups, template.node)
    use_shortcut = False
    if fastpath:
        ordered, use_shortcut = with_shortcut_last(ordered, template.node)
    snapshot.fork()
    try:
        # Pods of the template may carry selectors as well, and every class must outlive all of them.
        snapshot.state.classify([*(group.pods[0] for group in ordered), *template.pods])
        classes = [snapshot.class_of(group.pods[0]) for group in ordered]
        packing = _Packing(snapshot, NewNodes(snapshot, template, classes), budget, count)
        for i, (group, cls) in enumerate(zip(ordered, classes, strict=True)):
            packing.pack(group.pods, cls, shortcut=use_shortcut and i == len(ordered) - 1)
        return packing.result()
    finally:
        snapshot.rollback()


class _Packing:
    """One estimate on its way."""

    def __init__(self, snapshot: ClusterSnapshot, nodes: NewNodes, budget: NodeBudget, count: bool) -> None:
        self._snapshot = snapshot
        self._nodes = nodes
        self._budget = budget
        self._count = count
        self._may_add = True
        self._estimate = Estimate()
        self._elsewhere: set[str] = set()
        """Nodes besides the new ones that took pods: upstream counts them in."""
        self._not_simulated = 0
        """Nodes that exist by arithmetic only."""

    def result(self) -> Estimate:
        """What came of it."""
        estimate = self._estimate
        estimate.node_count = sum(self._nodes.occupied) + len(self._elsewhere) + self._not_simulated
        if not self._may_add:
            estimate.refusal = self._budget.refusal
        return estimate

    def pack(self, pods: Sequence[JsonObject], cls: PodClass, *, shortcut: bool) -> None:
        """Pack pods that are alike."""
        if self._count and self._nodes.is_countable(cls):
            placed = self._nodes.spread(cls, len(pods))
            if self._may_add:
                add = self._count_by_shortcut if shortcut else self._count_on_new_nodes
                placed += add(cls, len(pods) - placed)
        else:
            self._nodes.enter_snapshot()
            placed = self._place_on_added_nodes(pods, cls)
            if self._may_add:
                rest = pods[placed:]
                placed += self._place_by_shortcut(rest, cls) if shortcut else self._place_on_new_nodes(rest, cls)
        if placed:
            self._estimate.pods.extend(pods[:placed])
            self._estimate.kinds.append(Batch(pods[0], placed))

    def _take_node(self) -> bool:
        self._may_add = self._budget.take() == 1
        return self._may_add

    # By arithmetic

    def _count_on_new_nodes(self, cls: PodClass, pods: int) -> int:
        nodes, left = self._nodes, pods
        if left and len(nodes):
            on_last = min(left, nodes.room_last(cls))
            if on_last:
                nodes.put(cls, len(nodes) - 1, on_last)
                left -= on_last
        if not left or nodes.last_is_empty:
            return pods - left
        room = nodes.room_fresh(cls)
        if not room:
            # A node that turns out to be of no use stays, and is not counted.
            if self._take_node():
                nodes.add()
            return pods - left
        wanted = -(-left // room)
        given = self._budget.take(wanted)
        self._may_add = given == wanted
        on_them = min(left, given * room)
        if given:
            first = len(nodes)
            nodes.add(given)
            on_last = on_them - room * (given - 1)
            if on_last == room:
                nodes.put_each(cls, first, room)
            else:
                self._put_all_but_last(cls, first, room)
                nodes.put(cls, len(nodes) - 1, on_last)
        return pods - left + on_them

    def _put_all_but_last(self, cls: PodClass, first: int, room: int) -> None:
        for node in range(first, len(self._nodes) - 1):
            self._nodes.put(cls, node, room)

    def _count_by_shortcut(self, cls: PodClass, pods: int) -> int:
        if not pods or not self._take_node():
            return 0
        self._nodes.add()
        per_node = min(pods, self._nodes.room_fresh(cls))
        if per_node:
            self._nodes.put(cls, len(self._nodes) - 1, per_node)
        return self._multiply(per_node, pods)

    def _multiply(self, per_node: int, pods: int) -> int:
        """How many pods find room once one node has taken as many as it could."""
        if not per_node:
            return 0
        wanted = -(-pods // per_node) - 1
        given = self._budget.take(wanted) if wanted else 0
        self._may_add = given == wanted
        self._not_simulated += given
        return min(pods, per_node * (1 + given))

    # Pod by pod

    def _place_on_added_nodes(self, pods: Iterable[JsonObject], cls: PodClass) -> int:
        placed = 0
        for pod in pods:
            name = self._snapshot.schedule_pod_on_any_node(pod, allowed=self._nodes.names.__contains__)
            if name is None:
                break
            self._nodes.note_placed(cls, name)
            placed += 1
        return placed

    def _place_on_new_nodes(self, pods: Iterable[JsonObject], cls: PodClass) -> int:
        nodes, placed = self._nodes, 0
        for pod in pods:
            if not len(nodes) or not self._place_without_new_node(pod, cls):
                # What does not fit on an empty node does not fit on another one either.
                if nodes.last_is_empty or not self._take_node():
                    break
                nodes.add()
                nodes.enter_snapshot()
                if not self._snapshot.schedule_pod(pod, nodes.last_name):
                    break
                nodes.note_placed(cls, nodes.last_name)
            placed += 1
        return placed

    def _place_without_new_node(self, pod: JsonObject, cls: PodClass) -> bool:
        nodes, last_name = self._nodes, self._nodes.last_name
        if self._snapshot.schedule_pod(pod, last_name):
            nodes.note_placed(cls, last_name)
            return True
        if not _spreads_over_hosts(pod) or _SPREAD_REFUSAL not in self._snapshot.try_pod(pod, last_name):
            return False
        name = self._snapshot.schedule_pod_on_any_node(pod, allowed=lambda other: other != last_name)
        if name is None:
            return False
        if name in nodes.names:
            nodes.note_placed(cls, name)
        else:
            self._elsewhere.add(name)
        return True

    def _place_by_shortcut(self, pods: Sequence[JsonObject], cls: PodClass) -> int:
        if not pods or not self._take_node():
            return 0
        nodes, per_node = self._nodes, 0
        nodes.add()
        nodes.enter_snapshot()
        for pod in pods:
            if not self._snapshot.schedule_pod(pod, nodes.last_name):
                break
            nodes.note_placed(cls, nodes.last_name)
            per_node += 1
        return self._multiply(per_node, len(pods))


def _spreads_over_hosts(pod: JsonObject) -> bool:
    constraints = pod["spec"].get("topologySpreadConstraints") or ()
    return any(constraint.get("topologyKey") == _HOSTNAME for constraint in constraints)
