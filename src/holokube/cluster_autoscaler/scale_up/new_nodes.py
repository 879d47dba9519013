"""The nodes that an estimate adds, as long as possible without adding them.

Nodes of one template differ only in what is placed on them. For pods that ask for nothing but room, it is enough to
know how much of each resource is left on every node: a table of integers. Only when pods come that look at other
pods, at ports or at volumes, the nodes are put into the snapshot with everything placed so far, and from then on both
are kept up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.objects import is_cordoned
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.cluster_autoscaler.templates import fresh_copy
from holokube.packing.arrays import IntArray, RowArray
from holokube.packing.podclass import PodClass
from holokube.packing.state import ClusterState

_HOSTNAME: Final = "kubernetes.io/hostname"


class _Placement(NamedTuple):
    node: int
    cls: PodClass
    pods: int


class NewNodes:
    """See the module. Nodes are known by their number, from zero."""

    def __init__(self, snapshot: ClusterSnapshot, template: NodeInfo, classes: Iterable[PodClass]) -> None:
        """``classes`` are those of all pods that may come; the snapshot is forked and will be rolled back."""
        self._snapshot = snapshot
        self._template = template
        self._base = len(snapshot)
        # A search for any node passes over cordoned ones, whatever the pods would bear.
        self._is_cordoned = is_cordoned(template.node)
        self._requests: dict[PodClass, tuple[RowArray, IntArray]] = {}
        state = snapshot.state
        for cls in classes:
            if cls not in self._requests:
                # Asking makes the columns, so that the table below has all of them.
                self._requests[cls] = state.request_arrays(cls)
        self._fits_fresh: dict[PodClass, bool] = {}
        """For classes that ask for nothing but room, even beside the pods that every node of the group has."""
        with snapshot.trial():
            probe = fresh_copy(template, "e-0")
            snapshot.add_node(probe)
            row = state.nodes.row(probe.node["metadata"]["name"])
            self._fresh: IntArray = state.nodes.allocatable[row] - state.nodes.used[row]
            for cls in self._requests:
                if is_countable(state, cls):
                    self._fits_fresh[cls] = state.fits(cls, row)
        self._left: IntArray = np.zeros((64, len(self._fresh)), dtype=np.int64)
        self.names: dict[str, int] = {}
        """The number of each node."""
        self.occupied: list[bool] = []
        """Whether a pod was placed on the node, by number."""
        self._in_snapshot = 0
        self._not_in_snapshot: list[_Placement] = []

    def __len__(self) -> int:
        return len(self.occupied)

    @property
    def last_name(self) -> str:
        """The name of the node that was added last."""
        return next(reversed(self.names))

    @property
    def last_is_empty(self) -> bool:
        """Whether a node was added that no pod was placed on yet."""
        return bool(self.occupied) and not self.occupied[-1]

    def add(self, nodes: int = 1) -> None:
        """Add so many nodes."""
        first, end = len(self), len(self) + nodes
        if end > len(self._left):
            table = np.zeros((max(end, 2 * len(self._left)), self._left.shape[1]), dtype=np.int64)
            table[:first] = self._left[:first]
            self._left = table
        self._left[first:end] = self._fresh
        base_name = self._template.node["metadata"]["name"]
        for number in range(first, end):
            self.names[f"{base_name}-e-{number}"] = number
        self.occupied.extend([False] * nodes)

    # Pods that ask for nothing but room

    def is_countable(self, cls: PodClass) -> bool:
        """Whether a class asks for nothing but room at present."""
        return cls in self._fits_fresh and is_countable(self._snapshot.state, cls)

    def room_fresh(self, cls: PodClass) -> int:
        """How many pods of a class fit on a node just added."""
        return int(self._rooms(cls, self._fresh[np.newaxis, :])[0])

    def room_last(self, cls: PodClass) -> int:
        """How many pods of a class fit on the node that was added last."""
        return int(self._rooms(cls, self._left[len(self) - 1 : len(self)])[0])

    def _rooms(self, cls: PodClass, left: IntArray) -> IntArray:
        if not self._fits_fresh[cls]:
            return np.zeros(len(left), dtype=np.int64)
        columns, amounts = self._requests[cls]
        rooms: IntArray = np.maximum((left[:, columns] // amounts).min(axis=1), 0)
        return rooms

    def put(self, cls: PodClass, node: int, pods: int) -> None:
        """Place pods of a class on one node."""
        columns, amounts = self._requests[cls]
        self._left[node, columns] -= amounts * pods
        self.occupied[node] = True
        self._not_in_snapshot.append(_Placement(node, cls, pods))

    def put_each(self, cls: PodClass, first: int, pods: int) -> None:
        """Place so many pods of a class on each node from ``first`` on."""
        columns, amounts = self._requests[cls]
        self._left[first : len(self), columns] -= amounts * pods
        self.occupied[first:] = [True] * (len(self) - first)
        self._not_in_snapshot.extend(_Placement(node, cls, pods) for node in range(first, len(self)))

    def spread(self, cls: PodClass, pods: int) -> int:
        """Place pods of a class one by one on any node, round after round; returns how many found room.

        As in the snapshot, each pod begins its search behind the node that took the pod before.
        """
        if not self.occupied or self._is_cordoned:
            return 0
        rooms = self._rooms(cls, self._left[: len(self)])
        placed = min(pods, int(rooms.sum()))
        if not placed:
            return 0
        start = (self._snapshot.last_index + 1) % (self._base + len(self)) - self._base
        order = np.roll(np.arange(len(self)), -max(start, 0))
        counts, last = _deal(rooms[order], placed)
        self._snapshot.last_index = self._base + int(order[last])
        for position in np.flatnonzero(counts).tolist():
            self.put(cls, int(order[position]), int(counts[position]))
        return placed

    # Pods that look further

    def enter_snapshot(self) -> None:
        """Bring the snapshot up to date: from here on it knows every node and every pod placed so far."""
        state = self._snapshot.state
        for number in range(self._in_snapshot, len(self)):
            self._snapshot.add_node(fresh_copy(self._template, f"e-{number}"))
        self._in_snapshot = len(self)
        if self._not_in_snapshot:
            names = list(self.names)
            for node, cls, pods in self._not_in_snapshot:
                state.place_many(cls, state.nodes.row(names[node]), pods)
            self._not_in_snapshot.clear()

    def note_placed(self, cls: PodClass, name: str) -> None:
        """A pod was placed on a node through the snapshot."""
        node = self.names[name]
        columns, amounts = self._requests[cls]
        self._left[node, columns] -= amounts
        self.occupied[node] = True


def _deal(rooms: IntArray, pods: int) -> tuple[IntArray, int]:
    """Deal pods round after round to whoever has room: how many each gets, and who gets the last one.

    There is room for all of them.
    """
    # All rounds that are dealt in full: the largest number of them that does not need more pods than there are.
    ascending = np.sort(rooms)
    below = np.concatenate(([0], np.cumsum(ascending)))
    rounds_needing = below[:-1] + ascending * (len(rooms) - np.arange(len(rooms)))
    full = int(np.searchsorted(rounds_needing, pods, side="right"))
    if full == len(rooms):
        rounds = int(ascending[-1])
    else:
        rounds = int((pods - below[full]) // (len(rooms) - full))
    counts: IntArray = np.minimum(rooms, rounds)
    over = pods - int(counts.sum())
    takers: Sequence[int] = np.flatnonzero(rooms > rounds)[:over].tolist() if over else ()
    if takers:
        counts[np.array(takers, dtype=np.intp)] += 1
        return counts, takers[-1]
    return counts, int(np.flatnonzero(rooms >= rounds)[-1])


def is_countable(state: ClusterState, cls: PodClass) -> bool:
    """Whether pods of a class ask for nothing but room on nodes that are otherwise alike."""
    if cls.selects_pods or cls.ports or cls.claims or cls.disks or cls.error or cls.node_name or cls.sizes is not None:
        return False
    return not _looks_at_name(cls) and not state.against(cls)


def _looks_at_name(cls: PodClass) -> bool:
    """Whether the node's own name matters, the one thing in which new nodes differ."""
    wanted = cls.node_affinity
    selectors = [wanted.node_selector]
    if wanted.affinity is not None:
        if any(term.fields for term in wanted.affinity.terms):
            return True
        selectors.extend(term.labels for term in wanted.affinity.terms)
    return any(requirement.key == _HOSTNAME for selector in selectors for requirement in selector.requirements)
