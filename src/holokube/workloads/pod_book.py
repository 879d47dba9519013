"""How many pods each owner has, and how they are: kept change by change, so that nobody has to count them.

An owner with three hundred pods is looked at whenever one of them changes; what it wants to know are mostly numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.client.audience import DELETION, LABELS, OWNERS, STATUS, Kind
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_of, group_of

Labels = frozenset[tuple[str, str]]

HEEDED: Final = STATUS | LABELS | OWNERS | DELETION
"""The respects in which a book has to be told of changes."""
_EMPTY: Final[Mapping[str, Any]] = {}
_COMPARED_MAX: Final = 8
"""Labels of pods are compared with so many others before they are looked up, which takes as long as to compare them
with several."""
_ENDS: Final = ("Succeeded", "Failed")
_OVER, _TERMINATING, _UNREADY, _READY = range(4)
"""What a pod can be; it is active in the last two."""


@dataclass(slots=True)
class Alike:
    """The pods of an owner that have the same labels."""

    owner: str
    key: Labels
    labels: Mapping[str, str]
    numbers: list[int]
    """By what they are."""
    is_labelled: bool | None = None
    """Whether the owner, whose selector matches them, finds all labels of its template there; None if it has not looked
    yet."""


@dataclass(slots=True)
class PodBook:
    """Counts the pods of all owners, by the uid of who controls them; orphans are not counted."""

    kind: Kind | None = None
    """If given, only pods that are controlled by something of this group and kind are counted."""
    _owners: dict[str, dict[Labels, Alike]] = field(default_factory=dict)
    _counted: dict[str, tuple[Alike, int, object]] = field(default_factory=dict)
    """By a pod's uid: where and as what it is counted, and since when it is ready."""

    def of(self, uid: str) -> Collection[Alike]:
        """The pods that the owner with this uid controls, those of the same labels together; not a copy."""
        by_labels = self._owners.get(uid)
        return by_labels.values() if by_labels is not None else ()

    def takes_note(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Takes over one change, as the informer of pods tells it. Whether its owner has to count anew.

        That is what ``counts_anew`` says, from what is known of the pod already; but labels that the owner has looked
        at, and found to count the same, are no reason.
        """
        if old is not None and new is not None:
            was, now = old["metadata"], new["metadata"]
            owners, owners_now = was.get("ownerReferences"), now.get("ownerReferences")
            if owners is owners_now or owners == owners_now:
                counted = self._counted.get(now["uid"])
                if counted is None:
                    return counts_anew(old, new)
                alike, before, since_before = counted
                after, since = _state(new)
                labels, labels_now = was.get("labels"), now.get("labels")
                moves = labels is not labels_now and labels != labels_now
                stays = before == after and since_before == since
                if not stays or moves:
                    there = self._alike(alike.owner, labels_now or _EMPTY) if moves else alike
                    self._counted[now["uid"]] = there, after, since
                    there.numbers[after] += 1
                    alike.numbers[before] -= 1
                    if moves and not alike.numbers[before]:
                        self._drop_if_empty(alike)
                    # Most pods get some labels of the node that they are bound to.
                    if not stays or there.is_labelled is None or there.is_labelled is not alike.is_labelled:
                        return True
                return bool(was.get("deletionTimestamp") != now.get("deletionTimestamp"))
        if old is not None:
            self._forget(old)
        if new is not None:
            self._add(new)
        return True

    def clear(self) -> None:
        """For a start from scratch."""
        self._owners.clear()
        self._counted.clear()

    def _add(self, pod: JsonObject) -> None:
        reference = controller_of(pod)
        if reference is None:
            return
        if self.kind is not None:
            group, kind = self.kind
            if reference.get("kind") != kind or group_of(reference.get("apiVersion") or "") != group:
                return
        meta = pod["metadata"]
        alike = self._alike(reference["uid"], meta.get("labels") or _EMPTY)
        state, since = _state(pod)
        alike.numbers[state] += 1
        self._counted[meta["uid"]] = alike, state, since

    def _alike(self, owner: str, labels: Mapping[str, str]) -> Alike:
        """Where the pods of an owner are counted that have these labels."""
        by_labels = self._owners.get(owner)
        if by_labels is None:
            by_labels = self._owners[owner] = {}
        elif len(by_labels) <= _COMPARED_MAX:
            # Few have more labels than those of their template and of the zones they are in.
            for alike in by_labels.values():
                if alike.labels == labels:
                    return alike
        key: Labels = frozenset(labels.items())
        found = by_labels.get(key)
        if found is None:
            found = by_labels[key] = Alike(owner, key, labels, [0, 0, 0, 0])
        return found

    def _forget(self, pod: JsonObject) -> None:
        counted = self._counted.pop(pod["metadata"]["uid"], None)
        if counted is not None:
            alike, state, _ = counted
            alike.numbers[state] -= 1
            if not alike.numbers[state]:
                self._drop_if_empty(alike)

    def _drop_if_empty(self, alike: Alike) -> None:
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


def _state(pod: JsonObject) -> tuple[int, object]:
    """What a pod is, and since when it is ready; False if it is not."""
    since: object = False
    status = pod.get("status")
    if status:
        # As ``_standing`` has it, without a call: all that happens to a pod comes by here.
        for condition in status.get("conditions") or ():
            if condition.get("type") == "Ready":
                since = condition.get("status") == "True" and condition.get("lastTransitionTime")
                break
        if status.get("phase") in _ENDS:
            return _OVER, since
    if pod["metadata"].get("deletionTimestamp"):
        return _TERMINATING, since
    return (_UNREADY if since is False else _READY), since
