"""How many events are worth writing: of each reason one per object every five minutes, and everything about the whole.

A turn comes every few seconds and often says the same: without this, a pod that cannot be helped would be told so all
day long. ``--record-duplicated-events`` turns it off.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.types import JsonObject
from holokube.runtime.event_correlator import CountingCorrelator
from holokube.runtime.event_occurrence import CACHE_ENTRIES as COUNTED_ENTRIES
from holokube.runtime.event_occurrence import EventWrite, Occurrence
from holokube.runtime.events import EventRecorder
from holokube.runtime.lru import LruCache
from holokube.runtime.metrics import Metrics

COMPONENT = "cluster-autoscaler"
QUIET_S = 300.0
CACHE_ENTRIES = 8192


class AutoscalerCorrelator:
    """Counts and combines as usual, and lets through what has not been said for a while."""

    def __init__(
        self, clock: Clock, status_map: tuple[str, str], *,
        counted_entries: int = COUNTED_ENTRIES, said_entries: int = CACHE_ENTRIES,
    ) -> None:
        """``status_map`` is the namespace and name of the status: on it, every message counts by itself."""
        self._status_map = status_map
        # The event that came has a name that nobody has used yet.
        self._inner = CountingCorrelator(
            clock, new_name=lambda event: str(event["metadata"]["name"]), cache_entries=counted_entries,
            passes=self._is_news)
        self._said_s: LruCache[Hashable, float] = LruCache(said_entries)

    def correlate(self, event: JsonObject) -> EventWrite | None:
        """As ``consider``, for an event that was made already."""
        return self.consider(Occurrence.of_core(event))

    def consider(self, occurrence: Occurrence) -> EventWrite | None:
        """What to write for an event; None when nothing. What is not written has been counted all the same."""
        return self._inner.consider(occurrence)

    def count_at(self, occurrence: Occurrence, now_s: float) -> Occurrence | None:
        """What an event of another time is counted on; None when nothing is to be written."""
        return self._inner.count_at(occurrence, now_s)

    def count_flood_at(self, flood: Sequence[Occurrence], now_s: float) -> int | None:
        """How many of so many at once are to be made; None when each is to be counted by itself."""
        if not self._inner.take_flood(flood, now_s):
            return None
        keys = [self._key_of(occurrence) for occurrence in flood]
        if not self._said_s.is_flooded_by(keys):
            return sum(self._is_news(occurrence, now_s) for occurrence in flood)
        self._said_s.flood(keys, now_s)
        return len(flood)

    def renamed(self, key: Hashable, event: JsonObject) -> None:
        """The first write had to take another name."""
        self._inner.renamed(key, event)

    def due_at_s(self) -> float | None:
        """Nothing is ever owed."""
        return None

    def due(self, *, final: bool = False) -> list[EventWrite]:
        """Nothing is ever owed."""
        return self._inner.due(final=final)

    def _is_news(self, occurrence: Occurrence, now_s: float) -> bool:
        key = self._key_of(occurrence)
        said_s = self._said_s.get(key)
        if said_s is not None and now_s - said_s < QUIET_S:
            return False
        self._said_s.put(key, now_s)
        return True

    def _key_of(self, occurrence: Occurrence) -> Hashable:
        """What is not to be said again too soon."""
        kind, namespace, name, uid, _, _, _ = occurrence.reference
        if kind == "ConfigMap" and (namespace, name) == self._status_map:
            return occurrence.message
        return (occurrence.reason, kind, namespace, name, uid)


def event_recorder(clock: Clock, client: Client, options: AutoscalerOptions, rng: Rng,
                   metrics: Metrics | None = None) -> EventRecorder:
    """The recorder of the autoscaler; a component of the app."""
    correlator = None
    if not options.record_duplicated_events:
        correlator = AutoscalerCorrelator(clock, (options.namespace, options.status_config_map_name))
    return EventRecorder(clock, client, COMPONENT, rng=rng, metrics=metrics, correlator=correlator)
