"""What happened, as it was told, and what is to be written for it: the words that correlators and recorders share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import msgspec

from holokube.kube.types import JsonObject

CACHE_ENTRIES: Final = 4096
"""How many things of each sort a correlator remembers, as client-go's does."""
Reference = tuple[Any, ...]
"""The fields of an ObjectReference, in the order of ``REFERENCE_FIELDS``; None where there is none."""
REFERENCE_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class EventWrite(Protocol):
    """What is to be sent: a patch of an event written before, or the event itself. Both are made when asked for."""

    key: Hashable
    event: JsonObject
    """The whole event."""

    @property
    def is_patch(self) -> bool: ...

    @property
    def patch(self) -> JsonObject | None:
        """The patch; None if there is no event yet that it could change."""


class Occurrence(msgspec.Struct, eq=False):
    """Something that happened, as it was told: what is to be sent, if it is the first of its kind.

    The event of it is made only if it is needed, which is seldom.
    """

    reference: Reference
    type: str
    reason: str
    message: str
    make: Callable[[Occurrence], JsonObject]
    told_s: float = 0.0
    source: Hashable = None
    """Whatever tells those apart who use the same correlator."""
    action: str = ""
    related: Reference | None = None
    annotations: dict[str, str] | None = None
    key: Hashable = None
    count: int = 1
    """How often it has happened, if it is the first of its kind."""
    name: str = ""
    """That of the event on the server, if it is another than its own."""
    made: JsonObject | None = None
    is_combined: bool = False
    """Whether it stands for several that are only similar."""
    is_patch: ClassVar[bool] = False
    patch: ClassVar[None] = None

    @classmethod
    def of_core(cls, event: JsonObject) -> Occurrence:
        """Of an event of core/v1 that was made already."""
        involved, source = event["involvedObject"], event["source"]
        told = cls(reference_of(involved), event["type"], event["reason"], event["message"], lambda _: event)
        told.source = (source.get("component", ""), source.get("host", ""))
        return told

    @classmethod
    def of_series(cls, event: JsonObject) -> Occurrence:
        """Of an event of events.k8s.io/v1."""
        told = cls(reference_of(event["regarding"]), event["type"], event["reason"], "", lambda _: event)
        told.source = (event["reportingController"], event["reportingInstance"])
        told.action = event["action"]
        related = event.get("related")
        told.related = reference_of(related) if related else None
        return told

    @property
    def event(self) -> JsonObject:
        """The event of it, the very same each time."""
        if self.made is None:
            self.made = self.make(self)
        return self.made

    @event.setter
    def event(self, event: JsonObject) -> None:
        self.made = event


def reference_of(reference: dict[str, Any]) -> Reference:
    """What tells one ObjectReference from another."""
    get = reference.get
    return (
        get("kind"), get("namespace"), get("name"), get("uid"), get("apiVersion"), get("resourceVersion"),
        get("fieldPath"),
    )  # fmt: skip


def reference_json(reference: Reference) -> JsonObject:
    """The ObjectReference itself."""
    return {name: value for name, value in zip(REFERENCE_FIELDS, reference, strict=True) if value is not None}


class Repeat:
    """A patch that counts up an event."""

    __slots__ = ("_event", "_make", "_patch", "key")
    is_patch: Final = True

    def __init__(self, key: Hashable, make: Callable[[], tuple[JsonObject, JsonObject]]) -> None:
        """``make`` gives the whole event, and the patch."""
        self.key = key
        self._make = make
        self._event: JsonObject | None = None
        self._patch: JsonObject | None = None

    @property
    def event(self) -> JsonObject:
        """The whole event."""
        if self._event is None:
            self._event, self._patch = self._make()
        return self._event

    @event.setter
    def event(self, event: JsonObject) -> None:
        self._event = event

    @property
    def patch(self) -> JsonObject | None:
        """The patch."""
        if self._event is None:
            self._event, self._patch = self._make()
        return self._patch


class Correlator(Protocol):
    """Turns each event that happened into at most one write."""

    def consider(self, occurrence: Occurrence) -> EventWrite | None:
        """What to write for this event; None when nothing."""

    def renamed(self, key: Hashable, event: JsonObject) -> None:
        """The first write had to take another name."""

    def due_at_s(self) -> float | None:
        """When ``due`` has something to do, on the monotonic clock; None for never."""

    def due(self, *, final: bool = False) -> list[EventWrite]:
        """Writes that are due for events of the past; with ``final`` all that are still owed."""


@runtime_checkable
class PatientCorrelator(Correlator, Protocol):
    """One that never owes anything, so that it may be told late what happened, as long as it is in order."""

    def count_at(self, occurrence: Occurrence, now_s: float) -> Occurrence | None:
        """The first of its kind, on which the event has been counted: itself, if it is that, and then it is to be made;
        otherwise a patch counts it up. None when ``consider`` would have written nothing when the monotonic clock read
        ``now_s``."""

    def count_flood_at(self, flood: Sequence[Occurrence], now_s: float) -> int | None:
        """As ``count_at`` for each of them, in order, if they are so many that none is found to have been told before:
        how many are to be made, while nothing is written for the others. None when it is not so plain: then nothing has
        been counted yet."""
