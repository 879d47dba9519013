"""Removals tried out by counting alone.

For pods that ask for nothing but room it is enough to count what is left on nodes: neither the pods that move nor the
nodes that go change anything else for them. As long as all pods of the nodes that are tried are of that kind, and all
find a place, the snapshot need not know. When one is of another kind, or finds no place, the snapshot is told of
everything so far, and goes on by itself. What comes out is the same either way.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from holokube.cluster_autoscaler.hinting import Hints
from holokube.cluster_autoscaler.placing import ROOM_COLUMNS, Places, RoomLeft, asks_only_for_room, places_for
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
        self._guests: set[int] = set()
        """The places of the nodes that pods were moved to."""
        self._plain: dict[PodKind, bool] = {}
        self.has_searched = False
        """Whether there was a pod that did not find its place where it had gone before."""
        self._removed: list[_Removed] = []

    def has_guests(self, name: str) -> bool:
        """Whether pods were moved to a node."""
        return self._index_of[name] in self._guests

    def pods_on(self, name: str) -> list[JsonObject]:
        """The pods of a node, in the order they came."""
        own = self._index_of[name]
        came = [facts.pod for _, placed in self._removed for facts, index in placed if index == own]
        return [*self._snapshot.pods_on(name), *came]

    def are_plain(self, kinds: Mapping[PodKind, JsonObject]) -> bool:
        """Whether pods of these kinds, of which one of each is told, can be counted."""
        plain = self._plain
        for kind, pod in kinds.items():
            answer = plain.get(kind)
            if answer is None:
                answer = plain[kind] = not (kind.has_own_claims or kind.has_tpus) and asks_only_for_room(
                    self._snapshot.class_of(pod))
            if not answer:
                return False
        return True

    def remove(self, name: str, groups: Sequence[Sequence[PodFacts]], hints: Hints) -> bool:
        """Move pods of a node, which are told by priority, elsewhere and take it away.

        If that fails nobody should go on here but ``catch_up``.
        """
        snapshot, own = self._snapshot, self._index_of[name]
        placed: list[tuple[PodFacts, int]] = []
        last_index, names = snapshot.last_index, self._names
        index_of, places_of, destinations, take = (
            self._index_of.get, self._places.get, self._destinations, self._left.take)
        for group in groups:
            left = []
            for facts, node_name in zip(group, hints.of(group), strict=True):
                places = places_of(facts.kind) or self._find_places(facts)
                index = None if node_name is None else index_of(node_name)
                if (
                    index is None or index == own or not places.hinted[index] or node_name not in destinations
                    or not take(places.wants, index)
                ):  # fmt: skip
                    left.append(facts)
                else:
                    placed.append((facts, index))
            self.has_searched = self.has_searched or bool(left)
            for facts in left:
                index = self._find(self._places[facts.kind], own)
                if index is None:
                    snapshot.last_index = last_index
                    return False
                placed.append((facts, index))
        hints.update({facts.identity: names[index] for facts, index in placed})
        self._guests.update([index for _, index in placed])
        insort(self._gone, own)
        self._removed.append(_Removed(name, placed))
        return True

    def removed(self) -> list[tuple[str, tuple[tuple[PodFacts, str], ...]]]:
        """The nodes that were taken away, each with the nodes that its pods went to."""
        names = self._names
        return [
            (name, tuple([(facts, names[index]) for facts, index in placed])) for name, placed in self._removed]

    def room_left(self) -> dict[str, list[int]]:
        """What the nodes that were looked at for pods have left: millicores, milli-bytes and thousandths of pods."""
        return {self._names[index]: [left[column] for column in ROOM_COLUMNS] for index, left in self._left.looked_at()}

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
