"""How many pods each owner has, and how they are: kept change by change, so that nobody has to count them.

An owner with three hundred pods is looked at whenever one of them changes; what it wants to know are mostly numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from holokube.client.audience import DELETION, LABELS, OWNERS, STATUS, Kind
from holokube.client.informer import EventType, Informer
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_of, group_of

Labels = frozenset[tuple[str, str]]

_EMPTY: Final[Mapping[str, Any]] = {}
_ENDS: Final = ("Succeeded", "Failed")
_OVER, _TERMINATING, _UNREADY, _READY = range(4)
"""What a pod can be; it is active in the last two."""


class Tally(NamedTuple):
    """Numbers of pods. What is over is in none of them."""

    active: int = 0
    ready: int = 0
    """Of the active ones."""
    terminating: int = 0


Tallied = tuple[Mapping[str, str], Tally]
"""The labels that some pods have, and their numbers."""


@dataclass(slots=True)
class _Alike:
    """The pods of an owner that have the same labels."""

    owner: str
    key: Labels
    labels: Mapping[str, str]
    numbers: list[int]
    """By what they are."""


@dataclass(slots=True)
class PodBook:
    """Counts the pods of all owners, by the uid of who controls them; orphans are not counted."""

    kind: Kind | None = None
    """If given, only pods that are controlled by something of this group and kind are counted."""
    _owners: dict[str, dict[Labels, _Alike]] = field(default_factory=dict)
    _counted: dict[str, tuple[_Alike, int]] = field(default_factory=dict)
    """Where and as what a pod is counted, by its uid."""

    def of(self, uid: str) -> list[Tallied]:
        """The pods that the owner with this uid controls, those of the same labels together.

        As long as there are any, the mapping of their labels is the same object.
        """
        found = []
        for alike in self._owners.get(uid, _EMPTY).values():
            _, terminating, unready, ready = alike.numbers
            found.append((alike.labels, Tally(unready + ready, ready, terminating)))
        return found

    def on_event(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """Takes over one change, as the informer of pods tells it."""
        if old is not None and new is not None:
            was, now = old["metadata"], new["metadata"]
            if _are_same(was, now, ("ownerReferences", "labels")):
                counted = self._counted.get(now["uid"])
                if counted is not None:
                    alike, before = counted
                    after = _state(new)
                    if before != after:
                        alike.numbers[before] -= 1
                        alike.numbers[after] += 1
                        self._counted[now["uid"]] = alike, after
                return
        if old is not None:
            self._forget(old)
        if new is not None:
            self._add(new)

    def _add(self, pod: JsonObject) -> None:
        reference = controller_of(pod)
        if reference is None or (self.kind is not None and self.kind != _kind_of(reference)):
            return
        meta, owner = pod["metadata"], reference["uid"]
        labels = meta.get("labels") or _EMPTY
        by_labels = self._owners.get(owner)
        if by_labels is None:
            by_labels = self._owners[owner] = {}
        key: Labels = frozenset(labels.items())
        alike = by_labels.get(key)
        if alike is None:
            alike = by_labels[key] = _Alike(owner, key, labels, [0, 0, 0, 0])
        state = _state(pod)
        alike.numbers[state] += 1
        self._counted[meta["uid"]] = alike, state

    def _forget(self, pod: JsonObject) -> None:
        counted = self._counted.pop(pod["metadata"]["uid"], None)
        if counted is None:
            return
        alike, state = counted
        alike.numbers[state] -= 1
        if not any(alike.numbers):
            by_labels = self._owners[alike.owner]
            del by_labels[alike.key]
            if not by_labels:
                del self._owners[alike.owner]


def counts_anew(old: JsonObject | None, new: JsonObject | None) -> bool:
    """Whether a change of a pod may be one to its owner's numbers, or to how long it has been ready."""
    if old is None or new is None:
        return True
    if not _are_same(old["metadata"], new["metadata"], ("deletionTimestamp", "ownerReferences", "labels")):
        return True
    before, after = old.get("status"), new.get("status")
    return before is not after and _standing(before) != _standing(after)


def pod_book(pods: Informer, kind: Kind) -> PodBook:
    """A book of the pods that are controlled by something of this group and kind, kept from now on."""
    book = PodBook(kind)
    pods.listen(book.on_event, heeds=STATUS | LABELS | OWNERS | DELETION, controlled_by=kind, hears_orphans=False)
    return book


def _kind_of(reference: JsonObject) -> Kind:
    return group_of(reference.get("apiVersion") or ""), reference.get("kind") or ""


def _are_same(was: JsonObject, now: JsonObject, parts: Iterable[str]) -> bool:
    for part in parts:
        before, after = was.get(part), now.get(part)
        if before is not after and before != after:
            return False
    return True


def _standing(status: JsonObject | None) -> tuple[bool, object]:
    """Whether a pod of this status is over, and since when it is ready; False if it is not."""
    if not status:
        return False, False
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            is_ready = condition.get("status") == "True"
            return status.get("phase") in _ENDS, is_ready and condition.get("lastTransitionTime")
    return status.get("phase") in _ENDS, False


def _state(pod: JsonObject) -> int:
    status = pod.get("status") or _EMPTY
    phase = status.get("phase")
    if phase in _ENDS:
        return _OVER
    if pod["metadata"].get("deletionTimestamp"):
        return _TERMINATING
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return _READY if condition.get("status") == "True" else _UNREADY
    return _UNREADY
