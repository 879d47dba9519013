"""Keeps the flood of core/v1 events small before anything is written: pure bookkeeping, no I/O.

``CountingCorrelator`` is client-go's: the same event counts up, similar ones are combined, a chatty object is
throttled. The one for events.k8s.io/v1 is in ``event_series``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from holokube.base.clock import Clock
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.event_occurrence import CACHE_ENTRIES, EventWrite, Occurrence, Repeat
from holokube.runtime.lru import is_flood
from holokube.runtime.ratelimit import TOKEN_EPSILON

SIMILAR_MAX = 10
SIMILAR_WINDOW_S = 600.0
SPAM_BURST = 25
SPAM_PER_S = 1.0 / 300.0
COMBINED_PREFIX = "(combined from similar events): "


class _Teller(msgspec.Struct, eq=False):
    """How many events may still be told of a subject, and when that was so: a TokenBucket in as little as can be, for
    nearly every event has a subject of its own.

    What else is known of the subject hangs on it, by reason, so that its many words are looked at once for each event.
    """

    subject: Hashable
    tokens: float
    updated_s: float
    by_reason: dict[str, _Similar]


class _Similar(msgspec.Struct, eq=False):
    """Events that differ in nothing but their messages: which of these were seen lately, and what was told first."""

    teller: _Teller
    reason: str
    first: str
    last_s: float
    seen: dict[Hashable, Occurrence]
    """The first of its kind, on whose event on the server repeats are counted: by message, and field path if there is
    one; that for all that are combined by None."""
    messages: dict[str, None] | None = None
    """All of them; made for the second one, as most events are the only ones of their kind."""


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
        passes: Callable[[Occurrence, float], bool] | None = None,
    ) -> None:
        """``passes`` says what may be written at a time, instead of the filter that throttles who says too much."""
        self._clock = clock
        self._new_name = new_name
        self._similar_max = similar_max
        self._similar_window_s = similar_window_s
        if spam_per_s <= 0 or spam_burst < 1:
            raise ValueError(f"the filter needs rate > 0 and burst >= 1, got {spam_per_s} per second, {spam_burst}")
        self._spam_burst = float(spam_burst)
        self._spam_per_s = spam_per_s
        self._passes = passes
        self._cache_entries = cache_entries
        # What is kept of an event is renewed with each like it, and there are as many of each sort at most: whatever is
        # known of a subject goes no later than its teller, so that a new one never stands for what an old one told.
        # Each is known here by itself, which is found at once, while a key would be put together from many words.
        self._tellers: dict[Hashable, _Teller] = {}
        self._teller_order: OrderedDict[_Teller, None] = OrderedDict()
        self._similar_order: OrderedDict[_Similar, None] = OrderedDict()
        self._seen_order: OrderedDict[Occurrence, None] = OrderedDict()

    def correlate(self, event: JsonObject) -> EventWrite | None:
        """As ``consider``, for an event that was made already."""
        return self.consider(Occurrence.of_core(event))

    def consider(self, occurrence: Occurrence) -> EventWrite | None:
        now_s = self._clock.monotonic()
        first = self.count_at(occurrence, now_s)
        if first is None or first.count == 1:
            return first
        counted = self._combined(occurrence, now_s) if first.is_combined else occurrence
        return Repeat(first.key, partial(_count_up, counted, first, first.count))

    def count_at(self, occurrence: Occurrence, now_s: float) -> Occurrence | None:
        reason, message = occurrence.reason, occurrence.message
        subject = _subject_of(occurrence)
        teller = self._tellers.get(subject)
        similar = seen = None
        if teller is None:
            teller = self._meet(subject, now_s)
        else:
            self._teller_order.move_to_end(teller)
            similar = teller.by_reason.get(reason)
        key = _word_of(occurrence)
        # Most events are the only ones of their kind: what is kept of the others is looked at for those only.
        if similar is None:
            similar = self._begin(teller, reason, message, now_s)
            is_combined = self._similar_max <= 1
            if is_combined:
                key = None
        else:
            self._similar_order.move_to_end(similar)
            if similar.messages is None and message == similar.first:
                # The only one there has been, however long ago.
                similar.last_s = now_s
                is_combined = self._similar_max <= 1
            else:
                # From the tenth message of the same reason on, all of them go into one event.
                is_combined = self._has_many_messages(similar, message, now_s)
            if is_combined:
                key = None
            seen = similar.seen.get(key)
        # As upstream, a throttled event has already been counted: the next one that passes shows the total.
        if self._passes is None:
            tokens = teller.tokens
            if now_s > teller.updated_s:
                tokens += (now_s - teller.updated_s) * self._spam_per_s
                if tokens > self._spam_burst:
                    tokens = self._spam_burst
                teller.updated_s = now_s
            passes = tokens + TOKEN_EPSILON >= 1.0
            teller.tokens = tokens - 1.0 if passes else tokens
        else:
            passes = self._passes(occurrence, now_s)
        if seen is None:
            seen = self._combined(occurrence, now_s) if is_combined else occurrence
            self._note(seen, similar, key)
        else:
            self._seen_order.move_to_end(seen)
            seen.count += 1
        return seen if passes else None

    def count_flood_at(self, flood: Sequence[Occurrence], now_s: float) -> int | None:
        if not self.take_flood(flood, now_s):
            return None
        if self._passes is None:
            return len(flood)
        return sum(self._passes(occurrence, now_s) for occurrence in flood)

    def take_flood(self, flood: Sequence[Occurrence], now_s: float) -> bool:
        """As ``count_flood_at``, yet nobody is asked what passes; whether it was done."""
        if len(flood) < self._cache_entries or self._similar_max <= 1:
            return False
        # Objects with different UIDs are different subjects, and without a UID none of this holds.
        uids = {occurrence.reference[3] for occurrence in flood}
        if len(uids) < len(flood) or None in uids:
            return False
        subjects = [_subject_of(occurrence) for occurrence in flood[: self._cache_entries]]
        if not is_flood(self._tellers_in_order(), self._cache_entries, subjects):
            return False
        self._forget_all()
        for occurrence in flood[-self._cache_entries :]:
            teller = self._meet(_subject_of(occurrence), now_s)
            teller.tokens -= 1.0
            similar = self._begin(teller, occurrence.reason, occurrence.message, now_s)
            self._note(occurrence, similar, _word_of(occurrence))
        return True

    def _forget_all(self) -> None:
        # They refer to each other: what is not taken apart would stay until the collector comes, which is seldom.
        for similar in self._similar_order:
            similar.seen.clear()
        for teller in self._teller_order:
            teller.by_reason.clear()
        self._tellers.clear()
        for order in (self._teller_order, self._similar_order, self._seen_order):
            order.clear()

    def _tellers_in_order(self) -> list[Hashable]:
        return [teller.subject for teller in self._teller_order]

    def _meet(self, subject: Hashable, now_s: float) -> _Teller:
        order = self._teller_order
        teller = self._tellers[subject] = _Teller(subject, self._spam_burst, now_s, {})
        order[teller] = None
        if len(order) > self._cache_entries:
            del self._tellers[order.popitem(last=False)[0].subject]
        return teller

    def _begin(self, teller: _Teller, reason: str, message: str, now_s: float) -> _Similar:
        order = self._similar_order
        similar = teller.by_reason[reason] = _Similar(teller, reason, message, now_s, {})
        order[similar] = None
        if len(order) > self._cache_entries:
            quietest, _ = order.popitem(last=False)
            del quietest.teller.by_reason[quietest.reason]
        return similar

    def _note(self, first: Occurrence, similar: _Similar, key: Hashable) -> None:
        order = self._seen_order
        first.key = similar, key
        similar.seen[key] = first
        order[first] = None
        if len(order) > self._cache_entries:
            group, word = _place_of(order.popitem(last=False)[0].key)
            del group.seen[word]

    def renamed(self, key: Hashable, event: JsonObject) -> None:
        group, word = _place_of(key)
        seen = group.seen.get(word)
        if seen is not None:
            self._seen_order.move_to_end(seen)
            seen.name = event["metadata"]["name"]

    def due_at_s(self) -> float | None:
        return None

    def due(self, *, final: bool = False) -> list[EventWrite]:  # noqa: ARG002  (counts are written at once)
        return []

    def _has_many_messages(self, similar: _Similar, message: str, now_s: float) -> bool:
        if now_s - similar.last_s > self._similar_window_s:
            similar.first, similar.messages = message, None
        similar.last_s = now_s
        messages = similar.messages
        if messages is None:
            if message == similar.first:
                return self._similar_max <= 1
            messages = similar.messages = {similar.first: None}
        messages[message] = None
        if len(messages) < self._similar_max:
            return False
        # The set must not grow past the limit, yet stay at its edge: the next new message is combined too.
        del messages[next(iter(messages))]
        return True

    def _combined(self, occurrence: Occurrence, now_s: float) -> Occurrence:
        now = self._clock.now() - timedelta(seconds=self._clock.monotonic() - now_s)

        def make(combined: Occurrence) -> JsonObject:
            event, stamp = occurrence.event, format_time(now)
            return {
                **event,
                "metadata": {"name": self._new_name(event), "namespace": event["metadata"]["namespace"]},
                "message": combined.message,
                "firstTimestamp": stamp,
                "lastTimestamp": stamp,
            }

        message = COMBINED_PREFIX + occurrence.message
        combined = Occurrence(occurrence.reference, occurrence.type, occurrence.reason, message, make)
        combined.is_combined = True
        return combined


def _subject_of(occurrence: Occurrence) -> Hashable:
    """Who is told of: only so much may be said of each."""
    kind, namespace, name, uid, api_version, _, _ = occurrence.reference
    return (occurrence.source, kind, namespace, name, uid, api_version, occurrence.type)


def _word_of(occurrence: Occurrence) -> Hashable:
    """What tells it from others of the same reason."""
    field_path = occurrence.reference[6]
    return occurrence.message if field_path is None else (field_path, occurrence.message)


def _place_of(key: Any) -> tuple[_Similar, Hashable]:
    """Where the first of its kind is kept."""
    group, word = key
    return group, word


def _count_up(occurrence: Occurrence, first: Occurrence, count: int) -> tuple[JsonObject, JsonObject]:
    """The event on the server, counted up, and the patch that does it."""
    event, first_event = occurrence.event, first.event
    counted = {
        **event,
        "metadata": {**event["metadata"], "name": first.name or first_event["metadata"]["name"]},
        "firstTimestamp": first_event["firstTimestamp"],
        "count": count,
    }
    return counted, {"count": count, "lastTimestamp": event["lastTimestamp"], "message": event["message"]}
