"""Keeps the flood of events small before anything is written: pure bookkeeping, no I/O.

``CountingCorrelator`` is client-go's for core/v1: the same event counts up, similar ones are combined, a
chatty object is throttled. ``SeriesCorrelator`` is the one for events.k8s.io/v1, where repeats form a series.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

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


@dataclass(slots=True)
class EventWrite:
    """What is to be sent: a patch of an event written before, or the event itself."""

    key: Hashable
    event: JsonObject
    patch: JsonObject | None = None


class Correlator(Protocol):
    """Turns each event that happened into at most one write."""

    def correlate(self, event: JsonObject) -> EventWrite | None:
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

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)


@dataclass(slots=True)
class _Similar:
    """The messages seen lately of events that differ in nothing else."""

    messages: dict[str, None]
    last_s: float


@dataclass(slots=True)
class _Seen:
    """The event on the server that repeats are counted on."""

    name: str
    first_timestamp: str
    count: int


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
    ) -> None:
        self._clock = clock
        self._new_name = new_name
        self._similar_max = similar_max
        self._similar_window_s = similar_window_s
        self._spam_burst = spam_burst
        self._spam_per_s = spam_per_s
        self._similar: LruCache[Hashable, _Similar] = LruCache(cache_entries)
        self._seen: LruCache[Hashable, _Seen] = LruCache(cache_entries)
        self._buckets: LruCache[Hashable, TokenBucket] = LruCache(cache_entries)

    def correlate(self, event: JsonObject) -> EventWrite | None:
        key, combined = self._combine(event)
        write = self._count(key, combined)
        # As upstream, a throttled event has already been counted: the next one that passes shows the total.
        return write if self._passes_spam_filter(event) else None

    def renamed(self, key: Hashable, event: JsonObject) -> None:
        seen = self._seen.get(key)
        if seen is not None:
            seen.name = event["metadata"]["name"]

    def due_at_s(self) -> float | None:
        return None

    def due(self, *, final: bool = False) -> list[EventWrite]:  # noqa: ARG002  (counts are written at once)
        return []

    def _combine(self, event: JsonObject) -> tuple[Hashable, JsonObject]:
        """From the tenth message of the same reason on, all of them go into one event."""
        group = ("similar", *_source_and_object(event), event["type"], event["reason"])
        now_s = self._clock.monotonic()
        similar = self._similar.get(group)
        if similar is None or now_s - similar.last_s > self._similar_window_s:
            similar = _Similar({}, now_s)
            self._similar.put(group, similar)
        similar.messages[event["message"]] = None
        similar.last_s = now_s
        if len(similar.messages) < self._similar_max:
            field_path = event["involvedObject"].get("fieldPath", "")
            return ("event", *group[1:], field_path, event["message"]), event
        # The set must not grow past the limit, yet stay at its edge: the next new message is combined too.
        del similar.messages[next(iter(similar.messages))]
        stamp = format_time(self._clock.now())
        combined = {
            **event,
            "metadata": {"name": self._new_name(event), "namespace": event["metadata"]["namespace"]},
            "message": COMBINED_PREFIX + event["message"],
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
        }
        return group, combined

    def _count(self, key: Hashable, event: JsonObject) -> EventWrite:
        seen = self._seen.get(key)
        if seen is None:
            first = _Seen(event["metadata"]["name"], event["firstTimestamp"], event["count"])
            self._seen.put(key, first)
            return EventWrite(key, event)
        seen.count += 1
        counted = {
            **event,
            "metadata": {**event["metadata"], "name": seen.name},
            "firstTimestamp": seen.first_timestamp,
            "count": seen.count,
        }
        patch = {
            "count": seen.count,
            "lastTimestamp": event["lastTimestamp"],
            "message": event["message"],
        }
        return EventWrite(key, counted, patch)

    def _passes_spam_filter(self, event: JsonObject) -> bool:
        key = (*_source_and_object(event), event["type"])
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(self._clock, per_s=self._spam_per_s, burst=self._spam_burst)
            self._buckets.put(key, bucket)
        return bucket.try_take()


@dataclass(slots=True)
class _Series:
    """An event that was written, and how often it has happened since."""

    event: JsonObject
    count: int
    written_count: int
    last_s: float


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
        key = (
            event["type"], event["reason"], event["action"], event["reportingController"],
            event["reportingInstance"], _frozen(event["regarding"]), _frozen(event.get("related")),
        )  # fmt: skip
        now_s = self._clock.monotonic()
        series = self._series.get(key)
        if series is None:
            self._series[key] = _Series(event, 1, 1, now_s)
            if len(self._series) > self._cache_entries:
                self._end(next(iter(self._series)))
            return EventWrite(key, event)
        series.count += 1
        series.last_s = now_s
        self._series.move_to_end(key)
        stamp = format_micro_time(self._clock.now())
        series.event = {**series.event, "series": {"count": series.count, "lastObservedTime": stamp}}
        if series.count > 2:
            return None
        if self._refresh_at_s is None:
            self._refresh_at_s = now_s + SERIES_REFRESH_S
        return self._write(key, series)

    def renamed(self, key: Hashable, event: JsonObject) -> None:
        series = self._series.get(key)
        if series is not None:
            meta = {**series.event["metadata"], "name": event["metadata"]["name"]}
            series.event = {**series.event, "metadata": meta}

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
        series.written_count = series.count
        return EventWrite(key, series.event, {"series": series.event["series"]})


def _source_and_object(event: JsonObject) -> tuple[str, ...]:
    source, involved = event["source"], event["involvedObject"]
    return (
        source.get("component", ""), source.get("host", ""),
        involved.get("kind", ""), involved.get("namespace", ""), involved.get("name", ""),
        involved.get("uid", ""), involved.get("apiVersion", ""),
    )  # fmt: skip


def _frozen(reference: dict[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(reference.items())) if reference else ()
