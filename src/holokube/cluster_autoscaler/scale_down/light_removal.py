"""Removals tried out by counting alone.

For pods that ask for nothing but room it is enough to count what is left on nodes: neither the pods that move nor the
nodes that go change anything else for them. As long as all pods of the nodes that are tried are of that kind, and all
find a place, the snapshot need not know. When one is of another kind, or finds no place, the snapshot is told of
everything so far, and goes on by itself. What comes out is the same either way.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from holokube.cluster_autoscaler.hinting import Hints, by_known_priority
from holokube.cluster_autoscaler.placing import Places, RoomLeft, asks_only_for_room, places_for
from holokube.cluster_autoscaler.pods.kinds import PodFacts, PodKind
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject
from holokube.packing import PodClass

_YES = b"\1"


class _Removed(NamedTuple):
    name: str
    placed: list[tuple[PodFacts, int]]
    """Where its pods went, by the place of the node in the order."""


class LightRemovals:
    """The nodes of a snapshot, of which some are taken away in thought."""

    def __init__(self, snapshot: ClusterSnapshot, destinations: Collection[str]) -> None:
        """``destinations`` are the nodes that pods may go to; whoever removes one of them takes it out."""
        self._snapshot = snapshot
        self._destinations = destinations
        self._names: Sequence[str] = snapshot.node_names
        self._index_of = snapshot.index_of
        self._places: dict[PodKind, Places] = {}
        self._places_of: dict[PodClass, Places] = {}
        self._left = RoomLeft(snapshot)
        self._gone: list[int] = []
        """The places of the nodes that were removed, in order."""
        self._came: dict[str, list[JsonObject]] = {}
        """The pods that were moved to nodes."""
        self._removed: list[_Removed] = []

    def pods_on(self, name: str) -> list[JsonObject]:
        """The pods of a node, in the order they came."""
        return [*self._snapshot.pods_on(name), *self._came.get(name, ())]

    def are_plain(self, pods: Iterable[JsonObject]) -> bool:
        """Whether pods can be counted."""
        facts_of, class_of = self._snapshot.kinds.facts_of, self._snapshot.class_of
        for pod in pods:
            kind = facts_of(pod).kind
            if kind.has_own_claims or kind.has_tpus or not asks_only_for_room(class_of(pod)):
                return False
        return True

    def remove(self, name: str, pods: Sequence[JsonObject], hints: Hints) -> bool:
        """Move pods of a node elsewhere and take it away; if that fails nobody should go on here but ``catch_up``."""
        snapshot, own = self._snapshot, self._index_of[name]
        placed: list[tuple[PodFacts, int]] = []
        last_index = snapshot.last_index
        for group in by_known_priority([snapshot.kinds.facts_of(pod) for pod in pods]):
            left = []
            for facts in group:
                index = self._index_of.get(hints.get(facts.identity) or "")
                places = self._places.get(facts.kind) or self._find_places(facts)
                if index is None or not places.hinted[index] or not self._take(places, index, own):
                    left.append(facts)
                else:
                    placed.append((facts, index))
            for facts in left:
                index = self._find(self._places[facts.kind], own)
                if index is None:
                    snapshot.last_index = last_index
                    return False
                placed.append((facts, index))
        for facts, index in placed:
            hints.set(facts.identity, self._names[index])
            self._came.setdefault(self._names[index], []).append(facts.pod)
        insort(self._gone, own)
        self._removed.append(_Removed(name, placed))
        return True

    def catch_up(self) -> None:
        """Tell the snapshot what has happened here."""
        snapshot, rows = self._snapshot, self._snapshot.rows.tolist()
        for name, placed in self._removed:
            for pod in snapshot.pods_on(name):
                snapshot.remove_pod(pod, name)
            alike: dict[tuple[PodKind, bool], list[tuple[JsonObject, int, int]]] = {}
            for number, (facts, index) in enumerate(placed, snapshot.state.reserve_numbers(len(placed))):
                alike.setdefault((facts.kind, facts.is_going), []).append((facts.pod, rows[index], number))
            for members in alike.values():
                pods, on_rows, numbers = zip(*members, strict=True)
                snapshot.put_alike(snapshot.class_of(pods[0]), on_rows, pods, numbers)
            snapshot.remove_node(name)

    def _find(self, places: Places, own: int) -> int | None:
        """The first node that will do, looking behind where the last pod went."""
        anywhere, snapshot = places.anywhere, self._snapshot
        start = self._place_among_all((snapshot.last_index + 1) % (len(self._names) - len(self._gone)))
        for begin, end in ((start, len(anywhere)), (0, start)):
            index = anywhere.find(_YES, begin, end)
            while index >= 0:
                if self._take(places, index, own):
                    snapshot.last_index = index - bisect_left(self._gone, index)
                    return index
                # Room only gets less, and a node that is no destination does not become one.
                anywhere[index] = 0
                index = anywhere.find(_YES, index + 1, end)
        return None

    def _place_among_all(self, place: int) -> int:
        """Where a node stands in the order of the snapshot that has a place among those that are left."""
        for gone in self._gone:
            if gone > place:
                break
            place += 1
        return place

    def _take(self, places: Places, index: int, own: int) -> bool:
        if index == own or self._names[index] not in self._destinations:
            return False
        return self._left.take(places.wants, index)

    def _find_places(self, facts: PodFacts) -> Places:
        cls = self._snapshot.class_of(facts.pod)
        places = self._places_of.get(cls)
        if places is None:
            places = self._places_of[cls] = places_for(self._snapshot, cls)
        self._places[facts.kind] = places
        return places
