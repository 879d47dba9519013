"""Keeps the flood of events small before anything is written: pure bookkeeping, no I/O.

``CountingCorrelator`` is client-go's for core/v1: the same event counts up, similar ones are combined, a
chatty object is throttled. ``SeriesCorrelator`` is the one for events.k8s.io/v1, where repeats form a series.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, Protocol, TypeVar

from holokube.base.clock import Clock
from holokube.kube.timeformat import format_micro_time, format_time
from holokube.kube.types import JsonObject
from holokube.runtime.ratelimit import TokenBucket

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

CACHE_ENTRIES = 4096
SIMILAR_MAX = 10
SIMILAR_WINDOW_S = 600.0
SPAM_BURST = 25
SPAM_PER_S = 1.0 / 300.0
SERIES_FINISH_S = 360.0
SERIES_REFRESH_S = 1800.0
COMBINED_PREFIX = "(combined from similar events): "

Reference = tuple[Any, ...]
"""The fields of an ObjectReference, in the order of ``REFERENCE_FIELDS``; None where there is none."""
REFERENCE_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class Occurrence:
    """Something that happened, as it was told. The event of it is made only if it is needed, which is seldom."""

    source: Hashable = None
    """Whatever tells those apart who use the same correlator."""
    action = ""
    related: Reference | None = None
    annotations: dict[str, str] | None = None
    told_s = 0.0
    _event: JsonObject | None = None

    def __init__(
        self, reference: Reference, type: str, reason: str, message: str, make: Callable[[Occurrence], JsonObject]
    ) -> None:
        self.reference = reference
        self.type = type
        self.reason = reason
        self.message = message
        self._make = make

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
        if self._event is None:
            self._event = self._make(self)
        return self._event


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


class EventWrite:
    """What is to be sent: a patch of an event written before, or the event itself. Both are made when asked for."""

    __slots__ = ("_event", "_make", "_patch", "is_patch", "key")

    def __init__(
        self, key: Hashable, make: Callable[[], tuple[JsonObject, JsonObject | None]], *, is_patch: bool
    ) -> None:
        self.key = key
        self.is_patch = is_patch
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
        """The patch; None if there is no event yet that it could change."""
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


class LruCache(Generic[K, V]):
    """A dict that forgets what was not asked for longest."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._find = self._entries.get
        self._renew = self._entries.move_to_end

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        value = self._find(key)
        if value is not None:
            self._renew(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._renew(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def add(self, key: K, value: V) -> None:
        """As ``put``, for a key that is not there: a new one is the last in any case."""
        entries = self._entries
        entries[key] = value
        if len(entries) > self._capacity:
            entries.popitem(last=False)


@dataclass(slots=True)
class _Similar:
    """The messages seen lately of events that differ in nothing else."""

    messages: dict[str, None]
    last_s: float


@dataclass(slots=True)
class _Seen:
    """The event on the server that repeats are counted on."""

    first: Occurrence
    count: int = 1
    name: str = ""
    """If it is another than that of the first."""


class CountingCorrelator:
    """core/v1: aggregate, count, then filter, in client-go's order."""

    def __init__(
        self,
        clock: Clock,
        *,
        new_name: Callable[[JsonObject], str],
        cache_entries: int = CACHE_ENTRIES,
        similar_max: int = SIMILAR_MAX,
        similar_window_s: float = SIMILAR_WINDOW_S,
        spam_burst: int = SPAM_BURST,
        spam_per_s: float = SPAM_PER_S,
        passes: Callable[[Occurrence], bool] | None = None,
    ) -> None:
        """``passes`` says what may be written, instead of the filter that throttles those who say too much."""
        self._clock = clock
        self._new_name = new_name
        self._similar_max = similar_max
        self._similar_window_s = similar_window_s
        self._spam_burst = spam_burst
        self._spam_per_s = spam_per_s
        self._passes = passes
        self._similar: LruCache[Hashable, _Similar] = LruCache(cache_entries)
        self._seen: LruCache[Hashable, _Seen] = LruCache(cache_entries)
        self._buckets: LruCache[Hashable, TokenBucket] = LruCache(cache_entries)

    def correlate(self, event: JsonObject) -> EventWrite | None:
        """As ``consider``, for an event that was made already."""
        return self.consider(Occurrence.of_core(event))

    def consider(self, occurrence: Occurrence) -> EventWrite | None:
        kind, namespace, name, uid, api_version, _, field_path = occurrence.reference
        type_, reason, message = occurrence.type, occurrence.reason, occurrence.message
        group = (occurrence.source, kind, namespace, name, uid, api_version, type_, reason)
        # From the tenth message of the same reason on, all of them go into one event.
        is_combined = self._has_many_messages(group, message)
        key: Hashable = group
        if not is_combined:
            key = (occurrence.source, kind, namespace, name, uid, api_version, type_, reason, field_path, message)
        seen = self._seen.get(key)
        if seen is not None:
            seen.count += 1
        # As upstream, a throttled event has already been counted: the next one that passes shows the total.
        passes = self._passes_spam_filter(group[:-1]) if self._passes is None else self._passes(occurrence)
        if seen is not None and not passes:
            return None
        counted = self._combined(occurrence) if is_combined else occurrence
        if seen is None:
            self._seen.add(key, _Seen(counted))
            return EventWrite(key, lambda: (counted.event, None), is_patch=False) if passes else None
        return _counted_write(key, seen, counted)

    def renamed(self, key: Hashable, event: JsonObject) -> None:
        seen = self._seen.get(key)
        if seen is not None:
            seen.name = event["metadata"]["name"]

    def due_at_s(self) -> float | None:
        return None

    def due(self, *, final: bool = False) -> list[EventWrite]:  # noqa: ARG002  (counts are written at once)
        return []

    def _has_many_messages(self, group: Hashable, message: str) -> bool:
        now_s = self._clock.monotonic()
        similar = self._similar.get(group)
        if similar is None:
            similar = _Similar({}, now_s)
            self._similar.add(group, similar)
        elif now_s - similar.last_s > self._similar_window_s:
            similar = _Similar({}, now_s)
            self._similar.put(group, similar)
        messages = similar.messages
        messages[message] = None
        similar.last_s = now_s
        if len(messages) < self._similar_max:
            return False
        # The set must not grow past the limit, yet stay at its edge: the next new message is combined too.
        del messages[next(iter(messages))]
        return True

    def _combined(self, occurrence: Occurrence) -> Occurrence:
        stamp = format_time(self._clock.now())

        def make(combined: Occurrence) -> JsonObject:
            event = occurrence.event
            return {
                **event,
                "metadata": {"name": self._new_name(event), "namespace": event["metadata"]["namespace"]},
                "message": combined.message,
                "firstTimestamp": stamp,
                "lastTimestamp": stamp,
            }

        message = COMBINED_PREFIX + occurrence.message
        return Occurrence(occurrence.reference, occurrence.type, occurrence.reason, message, make)

    def _passes_spam_filter(self, subject: Hashable) -> bool:
        bucket = self._buckets.get(subject)
        if bucket is None:
            bucket = TokenBucket(self._clock, per_s=self._spam_per_s, burst=self._spam_burst)
            self._buckets.add(subject, bucket)
        return bucket.try_take()


def _counted_write(key: Hashable, seen: _Seen, occurrence: Occurrence) -> EventWrite:
    """Counts up the event on the server."""
    count = seen.count

    def make() -> tuple[JsonObject, JsonObject]:
        event, first = occurrence.event, seen.first.event
        name = seen.name or first["metadata"]["name"]
        counted = {
            **event,
            "metadata": {**event["metadata"], "name": name},
            "firstTimestamp": first["firstTimestamp"],
            "count": count,
        }
        return counted, {"count": count, "lastTimestamp": event["lastTimestamp"], "message": event["message"]}

    return EventWrite(key, make, is_patch=True)


@dataclass(slots=True)
class _Series:
    """An event that was written, and how often it has happened since."""

    first: Occurrence
    last_s: float
    last: datetime
    count: int = 1
    written_count: int = 1
    name: str = ""
    """If it is another than that of the first."""


class SeriesCorrelator:
    """events.k8s.io/v1: the first repeat starts a series; later ones are only counted.

    The count is written every half hour while the series goes on, and once more when it has been quiet for
    six minutes. The cache is bounded: the quietest series ends early when there are too many.
    """

    def __init__(self, clock: Clock, *, cache_entries: int = CACHE_ENTRIES) -> None:
        self._clock = clock
        self._cache_entries = cache_entries
        # Ordered by the last occurrence, so that what is finished is always at the front.
        self._series: OrderedDict[Hashable, _Series] = OrderedDict()
        self._owed: list[EventWrite] = []
        # All running series are refreshed together, so that finding out what is due costs nothing per event.
        self._refresh_at_s: float | None = None

    def correlate(self, event: JsonObject) -> EventWrite | None:
        """As ``consider``, for an event that was made already."""
        return self.consider(Occurrence.of_series(event))

    def consider(self, occurrence: Occurrence) -> EventWrite | None:
        key = (
            occurrence.type, occurrence.reason, occurrence.action, occurrence.source, occurrence.reference,
            occurrence.related,
        )  # fmt: skip
        now_s = self._clock.monotonic()
        series = self._series.get(key)
        if series is None:
            self._series[key] = _Series(occurrence, now_s, self._clock.now())
            if len(self._series) > self._cache_entries:
                self._end(next(iter(self._series)))
            return EventWrite(key, lambda: (occurrence.event, None), is_patch=False)
        series.count += 1
        series.last_s, series.last = now_s, self._clock.now()
        self._series.move_to_end(key)
        if series.count > 2:
            return None
        if self._refresh_at_s is None:
            self._refresh_at_s = now_s + SERIES_REFRESH_S
        return self._write(key, series)

    def renamed(self, key: Hashable, event: JsonObject) -> None:
        series = self._series.get(key)
        if series is not None:
            series.name = event["metadata"]["name"]

    def due_at_s(self) -> float | None:
        if self._owed:
            return self._clock.monotonic()
        first = next(iter(self._series.values()), None)
        if first is None:
            return None
        finish_at_s = first.last_s + SERIES_FINISH_S
        return finish_at_s if self._refresh_at_s is None else min(finish_at_s, self._refresh_at_s)

    def due(self, *, final: bool = False) -> list[EventWrite]:
        now_s = self._clock.monotonic()
        while self._series:
            key, series = next(iter(self._series.items()))
            if not final and now_s < series.last_s + SERIES_FINISH_S:
                break
            self._end(key)
        if self._refresh_at_s is not None and now_s >= self._refresh_at_s:
            running = [(key, series) for key, series in self._series.items() if series.count > 1]
            self._owed.extend(self._write(key, series) for key, series in running)
            self._refresh_at_s = now_s + SERIES_REFRESH_S if running else None
        owed, self._owed = self._owed, []
        return owed

    def _end(self, key: Hashable) -> None:
        series = self._series.pop(key)
        if series.count != series.written_count:
            self._owed.append(self._write(key, series))

    def _write(self, key: Hashable, series: _Series) -> EventWrite:
        series.written_count = count = series.count
        last = series.last

        def make() -> tuple[JsonObject, JsonObject]:
            event = series.first.event
            if series.name:
                event = {**event, "metadata": {**event["metadata"], "name": series.name}}
            patch = {"series": {"count": count, "lastObservedTime": format_micro_time(last)}}
            return {**event, **patch}, patch

        return EventWrite(key, make, is_patch=True)
