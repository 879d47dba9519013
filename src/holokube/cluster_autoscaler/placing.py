"""Putting many pods on nodes, one after the other, at the cost of counting.

For pods that ask for nothing but room, what one of them changes is the room on one node. So it is enough to ask the
engine once per kind of pod where it could go at all, to keep count of what is left on the nodes that were looked at,
and to tell the engine at the end what became of all of them. The result is that of placing them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

import numpy as np

from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.packing import PodClass
from holokube.packing.arrays import BoolArray
from holokube.packing.nodes import CPU, MEMORY, PODS

_YES: Final = b"\1"
_FEW_NODES: Final = 12
ROOM_COLUMNS: Final = (CPU, MEMORY, PODS)
"""The columns of what every pod takes."""


def asks_only_for_room(cls: PodClass) -> bool:
    """Whether pods of a class change nothing for others of their kind but the room on the node they go to."""
    return not (cls.selects_pods or cls.ports or cls.claims or cls.disks) and cls.sizes is None


class Places:
    """Where pods of one class may still go, by the nodes' places in the order: at most there."""

    __slots__ = ("anywhere", "hinted", "wants")

    def __init__(self, wants: list[tuple[int, int]], anywhere: bytearray, hinted: bytearray) -> None:
        self.wants = wants
        """The columns of what is asked for, and the amounts."""
        self.anywhere = anywhere
        """For a search, which passes over cordoned nodes."""
        self.hinted = hinted
        """For a node that is named."""


class RoomLeft:
    """What nodes of a snapshot have left while pods are tried out on them, without the snapshot's knowing."""

    __slots__ = ("_all", "_left", "_snapshot")

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._left: dict[int, list[int]] = {}
        self._all: list[list[int]] | None = None
        """The room on every node before anything was tried, once so many were asked for that it pays."""

    def take(self, wants: list[tuple[int, int]], index: int) -> bool:
        """Takes room for a pod on the node at that place; False, with nothing taken, if there is not enough."""
        left = self._left.get(index)
        if left is None:
            left = self._left[index] = self._room_on(index)
        # A resource that came to be known since then is offered by no node, so nobody comes here who asks for it.
        for column, amount in wants:
            if left[column] < amount:
                return False
        for column, amount in wants:
            left[column] -= amount
        return True

    def looked_at(self) -> Iterable[tuple[int, list[int]]]:
        """The places of the nodes that were asked for room, and what is left there by the engine's columns."""
        return self._left.items()

    def forget(self) -> None:
        """Pods that were tried are in the snapshot, or given up."""
        self._left.clear()
        self._all = None

    def _room_on(self, index: int) -> list[int]:
        if self._all is None:
            nodes, rows = self._snapshot.state.nodes, self._snapshot.rows
            if len(self._left) < _FEW_NODES:
                row = rows[index]
                room: list[int] = (nodes.allocatable[row] - nodes.used[row]).tolist()
                return room
            self._all = (nodes.allocatable[rows] - nodes.used[rows]).tolist()
        return self._all[index]


class Placing:
    """Pods being placed on a snapshot, which learns of them when told to."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        class_of: Callable[[PodFacts], PodClass],
        allowed: Callable[[str], bool] | None,
    ) -> None:
        """``allowed`` must give the same answer every time."""
        self._snapshot = snapshot
        self._class_of = class_of
        self._allowed = allowed
        self._names = snapshot.node_names
        self._index_of = snapshot.index_of
        self._is_allowed: dict[int, bool] = {}
        self._places: dict[PodKind, Places] = {}
        self._places_of: dict[PodClass, Places] = {}
        """The same by class: to the engine kinds that nobody tells apart are the same."""
        self._left = RoomLeft(snapshot)
        self._placed: list[tuple[PodFacts, int]] = []

    def put_on(self, facts: PodFacts, node_name: str) -> bool:
        """Put a pod on a node if it may go there and fits; whether it did."""
        index = self._index_of.get(node_name)
        if index is None or not self._may_use(index):
            return False
        places = self._places.get(facts.kind) or self._find_places(facts)
        if places is None:
            self.finish()
            return self._snapshot.schedule_pod(facts.pod, node_name)
        return bool(places.hinted[index]) and self._take(facts, places, index)

    def put_anywhere(self, facts: PodFacts) -> str | None:
        """Put a pod on the first node that will do, looking behind where the last pod went; its name, or None."""
        names, _ = self.put_alike_anywhere((facts,))
        return names[0] if names else None

    def put_alike_anywhere(self, pods: Sequence[PodFacts], begin: int = 0) -> tuple[list[str], bool]:
        """The same for a pod and those right behind it that are of its kind, until one finds no place.

        The names of their nodes, and whether one found none.
        """
        went: list[str] = []
        if not self._names:
            return went, True
        kind = pods[begin].kind
        places = self._places.get(kind) or self._find_places(pods[begin])
        if places is None:
            self.finish()
            name = self._snapshot.schedule_pod_on_any_node(pods[begin].pod, allowed=self._allowed)
            return ([], True) if name is None else ([name], False)
        # There may be thousands of pods, so nothing is asked for twice.
        names, placed, snapshot, anywhere, wants = (
            self._names, self._placed.append, self._snapshot, places.anywhere, places.wants)
        find, take, is_free, count = anywhere.find, self._left.take, self._allowed is None, len(self._names)
        index = snapshot.last_index
        for facts in islice(pods, begin, None):
            if facts.kind is not kind:
                break
            start = (index + 1) % count
            found = find(_YES, start)
            while True:
                if found < 0:
                    found = find(_YES, 0, start)
                    if found < 0:
                        return went, True
                if (is_free or self._may_use(found)) and take(wants, found):
                    break
                # Room only gets less, so a node that will not do now will not do later.
                anywhere[found] = 0
                found = find(_YES, found + 1, start if found < start else count)
            index = snapshot.last_index = found
            placed((facts, index))
            went.append(names[index])
        return went, False

    def finish(self) -> None:
        """Tell the snapshot of all pods placed so far, as if they had been placed one by one."""
        if self._placed:
            self._snapshot.put_later(self._placed)
        self._forget()

    def _forget(self) -> None:
        self._places.clear()
        self._places_of.clear()
        self._left.forget()
        self._placed = []

    def _may_use(self, index: int) -> bool:
        if self._allowed is None:
            return True
        answer = self._is_allowed.get(index)
        if answer is None:
            answer = self._is_allowed[index] = self._allowed(self._names[index])
        return answer

    def _take(self, facts: PodFacts, places: Places, index: int) -> bool:
        if not self._left.take(places.wants, index):
            return False
        self._placed.append((facts, index))
        return True

    def _find_places(self, facts: PodFacts) -> Places | None:
        """Where pods like this one may go; None if they look at more than room."""
        cls = self._class_of(facts)
        known = self._places_of.get(cls)
        if known is not None:
            self._places[facts.kind] = known
            return known
        if not asks_only_for_room(cls):
            return None
        places = self._places[facts.kind] = self._places_of[cls] = places_for(self._snapshot, cls)
        return places


def places_for(snapshot: ClusterSnapshot, cls: PodClass) -> Places:
    """Where pods of a class that ask only for room may go."""
    state, rows = snapshot.state, snapshot.rows
    columns, amounts = state.request_arrays(cls)
    hinted: BoolArray = state.feasible(cls)[rows]
    anywhere: BoolArray = hinted & ~state.nodes.unschedulable[rows]
    wants = list(zip(columns.tolist(), amounts.tolist(), strict=True))
    return Places(wants, _flags(anywhere), _flags(hinted))


def _flags(mask: BoolArray) -> bytearray:
    return bytearray(np.ascontiguousarray(mask).tobytes())
