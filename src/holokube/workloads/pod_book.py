"""How many pods each owner has, and how they are: kept change by change, so that nobody has to count them.

An owner with three hundred pods is looked at whenever one of them changes; what it wants to know are mostly numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from holokube.client.informer import EventType
from holokube.client.resources import PODS
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.workloads.ownership import controller_of

Labels = frozenset[tuple[str, str]]

_EMPTY: Final[Mapping[str, Any]] = {}
_OVER, _TERMINATING, _UNREADY, _READY = range(4)
"""What a pod can be; it is active in the last two."""


class Tally(NamedTuple):
    """Numbers of pods. What is over is in none of them."""

    active: int = 0
    ready: int = 0
    """Of the active ones."""
    terminating: int = 0


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

    _owners: dict[str, dict[Labels, _Alike]] = field(default_factory=dict)
    _where: dict[str, _Alike] = field(default_factory=dict)
    """Where a pod is counted, by its uid."""

    def of(self, uid: str) -> Iterator[tuple[Mapping[str, str], Tally]]:
        """The pods that the owner with this uid controls, those of the same labels together."""
        for alike in self._owners.get(uid, _EMPTY).values():
            _, terminating, unready, ready = alike.numbers
            yield alike.labels, Tally(unready + ready, ready, terminating)

    def on_event(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """Takes over one change, as the informer of pods tells it."""
        if old is not None and new is not None:
            was, now = old["metadata"], new["metadata"]
            if _is_same(was, now, "ownerReferences") and _is_same(was, now, "labels"):
                before, after = _state(old), _state(new)
                if before != after:
                    counted = self._where.get(now["uid"])
                    if counted is not None:
                        counted.numbers[before] -= 1
                        counted.numbers[after] += 1
                return
        if old is not None:
            self._forget(old)
        if new is not None:
            self._add(new)

    def _add(self, pod: JsonObject) -> None:
        reference = controller_of(pod)
        if reference is None:
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
        alike.numbers[_state(pod)] += 1
        self._where[meta["uid"]] = alike

    def _forget(self, pod: JsonObject) -> None:
        alike = self._where.pop(pod["metadata"]["uid"], None)
        if alike is None:
            return
        alike.numbers[_state(pod)] -= 1
        if not any(alike.numbers):
            by_labels = self._owners[alike.owner]
            del by_labels[alike.key]
            if not by_labels:
                del self._owners[alike.owner]


def pod_book(informers: InformerSet) -> PodBook:
    """The book of the shared informer of pods."""
    return informers.attached(PODS, PodBook)


def _is_same(was: JsonObject, now: JsonObject, field: str) -> bool:
    before, after = was.get(field), now.get(field)
    return before is after or before == after


def _state(pod: JsonObject) -> int:
    status = pod.get("status") or _EMPTY
    phase = status.get("phase")
    if phase in ("Succeeded", "Failed"):
        return _OVER
    if pod["metadata"].get("deletionTimestamp"):
        return _TERMINATING
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return _READY if condition.get("status") == "True" else _UNREADY
    return _UNREADY
