"""The pods of a cluster by what they mean to the autoscaler, kept up to date event by event.

A turn takes what has changed since the last one that came so far as to use it. What was taken is kept until it is
told to be ``settled``, so that a turn that fails half-way loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from holokube.client.informer import EventType
from holokube.cluster_autoscaler.objects import is_finished, node_name_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.classification import PodSorter, Role
from holokube.cluster_autoscaler.pods.kinds import PodKinds
from holokube.cluster_autoscaler.pods.waiting import PodPlace, WaitingPods, WaitingQueue
from holokube.kube.types import JsonObject

__all__ = ["PodBook", "PodChange", "PodPlace", "TurnPods"]
_SCHEDULED: Final = Role.SCHEDULED
_FINISHED: Final = ("Succeeded", "Failed")
_EMPTY: Final[Mapping[str, Any]] = {}


class PodChange(NamedTuple):
    """A pod that takes room on a node in its present form."""

    place: PodPlace
    pod: JsonObject


class TurnPods(NamedTuple):
    """The pods as a turn finds them."""

    changed: dict[str, PodChange | None]
    """What has happened to pods that take, or took, room on nodes, by key; None for those that do so no more."""
    unschedulable: list[JsonObject]
    """Those for whom a scheduler has found no place, in the order of the API's list."""
    unprocessed: list[JsonObject]
    """Those at which no scheduler has looked yet, where one need not be waited for."""
    waiting: WaitingPods
    """Both, one after the other."""

    @property
    def pending(self) -> list[JsonObject]:
        """Those that may need a new node."""
        return self.waiting.pods


class _Entry:
    __slots__ = ("number", "place", "pod", "role", "takes_room")

    def __init__(self, number: int, pod: JsonObject) -> None:
        self.number, self.pod = number, pod
        self.role: Role | None = None
        self.place: PodPlace = (False, 0, number)
        self.takes_room = False


class PodBook:
    """A handler of the informer of pods."""

    def __init__(
        self, options: AutoscalerOptions, place: Callable[[JsonObject], int] | None = None,
        kinds: PodKinds | None = None,
    ) -> None:  # fmt: skip
        """``place`` orders pods by something else than the order in which they were first seen; ``kinds`` are for those
        who share what is known of pods with others."""
        self._sorter = PodSorter(options)
        self._place = place
        self._entries: dict[str, _Entry] = {}
        self._last_number = 0
        kinds = PodKinds() if kinds is None else kinds
        self._unschedulable = WaitingQueue(kinds)
        self._unprocessed = WaitingQueue(kinds)
        self._on_node: dict[str, dict[str, _Entry]] = {}
        # Dicts are sets in an order that is the same in every run.
        self._changed: dict[str, None] = {}
        self._taken: dict[str, None] = {}

    def on_pod(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """A pod came, changed or went."""
        obj = new if new is not None else old
        assert obj is not None
        metadata = obj["metadata"]
        # As pod_key has it.
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        entry = self._entries.get(key)
        if (
            entry is not None and new is not None and entry.pod is old and entry.role is _SCHEDULED
            and old["spec"] is new["spec"] and (new.get("status") or _EMPTY).get("phase") not in _FINISHED
        ):  # fmt: skip
            # Nothing but the state of a pod that runs is another one; most changes are like this.
            entry.pod = new
            if entry.takes_room:
                self._changed[key] = None
            return
        if entry is not None and (new is None or entry.pod["metadata"].get("uid") != metadata.get("uid")):
            self._drop(key, entry)
            entry = None
        if new is None:
            return
        if entry is None:
            self._last_number += 1
            entry = self._entries[key] = _Entry(self._last_number, new)
        elif entry.pod is new:
            return
        else:
            self._unlist(key, entry)
            entry.pod = new
        entry.role = role = self._sorter.role_of(new)
        entry.place = role is Role.NOMINATED, 0 if self._place is None else self._place(new), entry.number
        if role is Role.UNSCHEDULABLE:
            self._unschedulable.add(entry.place, new)
        elif role is Role.UNPROCESSED:
            self._unprocessed.add(entry.place, new)
        entry.takes_room = self._sorter.takes_room(new, role)
        if entry.takes_room:
            self._changed[key] = None
        node_name = node_name_of(new)
        if node_name:
            self._on_node.setdefault(node_name, {})[key] = entry

    def take(self) -> TurnPods:
        """The pods of this moment, with what has changed since what was last settled."""
        self._taken.update(self._changed)
        self._changed.clear()
        changed: dict[str, PodChange | None] = {}
        for key in self._taken:
            entry = self._entries.get(key)
            changed[key] = PodChange(entry.place, entry.pod) if entry and entry.takes_room else None
        unschedulable, unprocessed = self._unschedulable.look(), self._unprocessed.look()
        return TurnPods(changed, unschedulable.pods, unprocessed.pods, unschedulable + unprocessed)

    def settled(self) -> None:
        """What was taken last has been used."""
        self._taken.clear()

    def pods_on(self, names: Collection[str]) -> list[JsonObject]:
        """The pods bound to some nodes that have not finished, in the order of the API's list."""
        found = [
            entry for name in names for entry in self._on_node.get(name, {}).values() if not is_finished(entry.pod)
        ]
        return [entry.pod for entry in sorted(found, key=attrgetter("place"))]

    def _drop(self, key: str, entry: _Entry) -> None:
        del self._entries[key]
        self._unlist(key, entry)

    def _unlist(self, key: str, entry: _Entry) -> None:
        if entry.takes_room:
            self._changed[key] = None
        if entry.role is Role.UNSCHEDULABLE:
            self._unschedulable.remove(entry.place)
        elif entry.role is Role.UNPROCESSED:
            self._unprocessed.remove(entry.place)
        node_name = node_name_of(entry.pod)
        if node_name:
            there = self._on_node[node_name]
            del there[key]
            if not there:
                del self._on_node[node_name]
