"""Keeps the flood of events small before anything is written: pure bookkeeping, no I/O.

``CountingCorrelator`` is client-go's for core/v1: the same event counts up, similar ones are combined, a
chatty object is throttled. ``SeriesCorrelator`` is the one for events.k8s.io/v1, where repeats form a series.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from holokube.base.clock import Clock
from holokube.kube.timeformat import format_micro_time, format_time
from holokube.kube.types import JsonObject
from holokube.runtime.ratelimit import TOKEN_EPSILON

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


class _Repeat:
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


class LruCache(Generic[K, V]):
    """A dict that forgets what was not asked for longest."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[K, V] = OrderedDict()
        self.find = self._entries.get
        """What there is for a key; that it was asked for does not count."""
        self.renew = self._entries.move_to_end

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        value = self.find(key)
        if value is not None:
            self.renew(key)
        return value

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self.renew(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def is_flooded_by(self, keys: Sequence[K]) -> bool:
        """Whether ``keys``, no two of them the same, are all new if one after the other is asked for and put, and none
        of what there is now is left then."""
        return is_flood(self._entries, self._capacity, keys)

    def flood(self, keys: Sequence[K], value: V) -> None:
        """Put ``keys``, by which it ``is_flooded``, one after the other."""
        self._entries.clear()
        self._entries.update(dict.fromkeys(keys[-self._capacity :], value))


def is_flood(remembered: Collection[Hashable], capacity: int, keys: Sequence[Hashable]) -> bool:
    """Whether a cache that forgets what was not asked for longest knows none of ``keys`` when it is asked for them, one
    after the other, and knows of nothing else afterwards. ``remembered`` is what it knows, that to be forgotten next
    first; no two keys are the same.

    It is enough to look at as many as it can remember: those are all it knows then, and none comes twice.
    """
    if len(keys) < capacity:
        return False
    places = {key: place for place, key in enumerate(remembered)}
    # Each new key takes a free place, or that of the one to be forgotten next.
    gone = len(places) - capacity
    for key in keys[:capacity]:
        if places.get(key, -1) >= max(gone, 0):
            return False
        gone += 1
    return True


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
        return _Repeat(first.key, partial(_count_up, counted, first, first.count))

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

        return _Repeat(key, make)
