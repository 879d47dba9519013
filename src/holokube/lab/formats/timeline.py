"""The one shape that all trace formats are read into: what was there, what changed when, how long pods ran.

Times are seconds since the timeline began. Objects are plain JSON and never changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from holokube.base.errors import UsageError
from holokube.kube.types import JsonObject

Method = Literal["apply", "patch", "delete"]


class Ref(NamedTuple):
    """Which object."""

    api_version: str
    kind: str
    namespace: str
    """Empty for objects that live in none."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def ref_of(obj: Mapping[str, Any]) -> Ref:
    """The name of an object that :func:`check_object` has let through."""
    meta = obj["metadata"]
    return Ref(obj["apiVersion"], obj["kind"], meta.get("namespace") or "", meta["name"])


def check_object(obj: Any, where: str) -> JsonObject:
    """The object, if it says what it is and how it is called; UsageError otherwise."""
    if not isinstance(obj, dict):
        raise UsageError(
            f"{where}: {'nothing' if obj is None else f'a {type(obj).__name__}'} where an object should be",
            hint="Every object is a mapping with apiVersion, kind and metadata.name.",
        )
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    for field, value in (("apiVersion", obj.get("apiVersion")), ("kind", obj.get("kind")), ("metadata.name", name)):
        if not isinstance(value, str) or not value:
            raise UsageError(
                f"{where}: the object has no {field}",
                hint="Every object is a mapping with apiVersion, kind and metadata.name.",
            )
    return obj


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened to one object."""

    at_s: float
    method: Method
    object: JsonObject
    """``apply``: all of it, new or changed. ``patch``: a strategic merge patch that also says which object it is for;
    only there when the object it was made from is not known. ``delete``: at least which object."""


@dataclass(frozen=True, slots=True)
class Run:
    """When a pod's containers ran."""

    start_s: float
    end_s: float | None
    """None: it still ran at the end."""


@dataclass(frozen=True, slots=True)
class PodLives:
    """The pods of one owner, in the order in which they began; a pod of its own is its owner."""

    owner: Ref
    runs: tuple[Run | None, ...]
    """None for a pod that never ran."""
    template: int = 0
    """Tells pods of one owner with different specs apart; SimKube's hash of a pod's spec."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A recording of a cluster, or of its workload."""

    objects: tuple[JsonObject, ...] = ()
    """There when it began."""
    changes: tuple[Change, ...] = ()
    """In the order of time."""
    lives: tuple[PodLives, ...] = ()
    start_s: float | None = None
    """Unix time of its beginning; None when the source does not tell."""
    duration_s: float = 0.0

    def scaled(self, speed: float) -> Timeline:
        """The same, ``speed`` times as fast."""
        if not speed > 0:
            raise UsageError(f"a speed must be above 0, not {speed:g}", hint="2 halves all times, 0.5 doubles them.")
        if speed == 1:
            return self
        return replace(
            self,
            changes=tuple(replace(change, at_s=change.at_s / speed) for change in self.changes),
            lives=tuple(replace(life, runs=tuple(_faster(run, speed) for run in life.runs)) for life in self.lives),
            duration_s=self.duration_s / speed,
        )

    def between(self, from_s: float, until_s: float | None = None) -> Timeline:
        """The part from one time up to, not including, another; what was there by then is there at its beginning.

        Pods of their own whose run was over before are left out, and those that ran have only the rest before them.
        """
        end_s = self.duration_s if until_s is None else until_s
        if from_s < 0 or end_s < from_s:
            raise UsageError(
                f"there is nothing between {from_s:g} s and {end_s:g} s", hint="The end must come after the beginning."
            )
        earlier = [change for change in self.changes if change.at_s < from_s]
        later = (
            change for change in self.changes if from_s <= change.at_s and (until_s is None or change.at_s < until_s)
        )
        over = {life.owner for life in self.lives if _is_over(life, from_s)}
        present = tuple(obj for obj in _folded(self.objects, earlier) if ref_of(obj) not in over)
        return replace(
            self,
            objects=present,
            changes=tuple(replace(change, at_s=change.at_s - from_s) for change in later),
            lives=tuple(_later(life, from_s) for life in self.lives if life.owner not in over),
            start_s=None if self.start_s is None else self.start_s + from_s,
            duration_s=end_s - from_s,
        )

    def refs(self) -> set[Ref]:
        """All objects that it tells of."""
        return {ref_of(obj) for obj in (*self.objects, *(change.object for change in self.changes))}

    def state_at(self, at_s: float) -> tuple[JsonObject, ...]:
        """What there is at a time, changes at that very time included, in the order in which it came."""
        return _folded(self.objects, (change for change in self.changes if change.at_s <= at_s))


def _is_over(life: PodLives, at_s: float) -> bool:
    """Whether a pod of its own has ended by then."""
    if life.owner.kind != "Pod":
        return False
    run = life.runs[-1] if life.runs else None
    return run is not None and run.end_s is not None and run.end_s <= at_s


def _faster(run: Run | None, speed: float) -> Run | None:
    return None if run is None else Run(run.start_s / speed, None if run.end_s is None else run.end_s / speed)


def _later(life: PodLives, from_s: float) -> PodLives:
    """Counted from a later time. Of other owners than the pods themselves, how long pods ran is what counts."""
    earliest_s = 0.0 if life.owner.kind == "Pod" else float("-inf")
    runs = (
        run and Run(max(earliest_s, run.start_s - from_s), None if run.end_s is None else run.end_s - from_s)
        for run in life.runs
    )
    return replace(life, runs=tuple(runs))


def _folded(objects: Iterable[JsonObject], changes: Iterable[Change]) -> tuple[JsonObject, ...]:
    present = {ref_of(obj): obj for obj in objects}
    for change in changes:
        ref = ref_of(change.object)
        if change.method == "apply":
            present[ref] = change.object
        elif change.method == "delete":
            present.pop(ref, None)
    return tuple(present.values())
