"""The correlator for events.k8s.io/v1, where repeats form a series: pure bookkeeping, no I/O."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime

import msgspec

from holokube.base.clock import Clock
from holokube.kube.timeformat import format_micro_time
from holokube.kube.types import JsonObject
from holokube.runtime.event_occurrence import CACHE_ENTRIES, EventWrite, Occurrence, Repeat

SERIES_FINISH_S = 360.0
SERIES_REFRESH_S = 1800.0


class _Series(msgspec.Struct, eq=False):
    """An event that was written, and how often it has happened since."""

    first: Occurrence
    last_s: float
    last: datetime | None = None
    """When it last happened again."""
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
        # Ordered by the last occurrence, so that what is finished is always at the front. There it may stay until
        # somebody looks: hardly any event is ever repeated, and to wake up for each that was not would be for nothing.
        self._series: OrderedDict[Hashable, _Series] = OrderedDict()
        self._none_ends_before_s = -math.inf
        self._unwritten: OrderedDict[Hashable, _Series] = OrderedDict()
        """Those that have been counted further than was written, in the same order."""
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
        if now_s >= self._none_ends_before_s:
            self._end_finished(now_s)
        series = self._series.get(key)
        if series is None:
            self._series[key] = _Series(occurrence, now_s)
            if len(self._series) > self._cache_entries:
                self._end_quietest()
            occurrence.key = key
            return occurrence
        series.count += 1
        series.last_s, series.last = now_s, self._clock.now()
        self._series.move_to_end(key)
        if series.count > 2:
            self._unwritten[key] = series
            self._unwritten.move_to_end(key)
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
        if not self._series:
            return None
        if not self._unwritten:
            return self._refresh_at_s
        finish_at_s = next(iter(self._unwritten.values())).last_s + SERIES_FINISH_S
        return finish_at_s if self._refresh_at_s is None else min(finish_at_s, self._refresh_at_s)

    def due(self, *, final: bool = False) -> list[EventWrite]:
        now_s = self._clock.monotonic()
        self._end_finished(math.inf if final else now_s)
        if self._refresh_at_s is not None and now_s >= self._refresh_at_s:
            running = [(key, series) for key, series in self._series.items() if series.count > 1]
            self._owed.extend(self._write(key, series) for key, series in running)
            self._refresh_at_s = now_s + SERIES_REFRESH_S if running else None
        owed, self._owed = self._owed, []
        return owed

    def _end_finished(self, now_s: float) -> None:
        # Whatever happens meanwhile, no series that is at the front later ends sooner.
        if now_s < self._none_ends_before_s:
            return
        while self._series:
            ends_s = next(iter(self._series.values())).last_s + SERIES_FINISH_S
            if now_s < ends_s:
                self._none_ends_before_s = ends_s
                break
            self._end_quietest()

    def _end_quietest(self) -> None:
        key, series = self._series.popitem(last=False)
        if series.count != series.written_count:
            self._owed.append(self._write(key, series))

    def _write(self, key: Hashable, series: _Series) -> EventWrite:
        series.written_count = count = series.count
        self._unwritten.pop(key, None)
        last = series.last
        assert last is not None

        def make() -> tuple[JsonObject, JsonObject]:
            event = series.first.event
            if series.name:
                event = {**event, "metadata": {**event["metadata"], "name": series.name}}
            patch = {"series": {"count": count, "lastObservedTime": format_micro_time(last)}}
            return {**event, **patch}, patch

        return Repeat(key, make)
