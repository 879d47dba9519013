from __future__ import annotations

import gc
import math
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.runtime.event_correlator import (
    COMBINED_PREFIX,
    CountingCorrelator,
    LruCache,
    Occurrence,
    SeriesCorrelator,
)  # fmt: skip
from holokube.runtime.ratelimit import TokenBucket

NAMES = count()


def core_event(
    message: str, *, reason: str = "Failed", name: str = "web-0", type: str = "Warning"
) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.{next(NAMES)}", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": name, "uid": "u1", "apiVersion": "v1"},
        "reason": reason, "message": message, "source": {"component": "scheduler"}, "type": type,
        "firstTimestamp": "t0", "lastTimestamp": "t0", "count": 1,
    }  # fmt: skip


def correlator(clock: VirtualClock, **options: Any) -> CountingCorrelator:
    return CountingCorrelator(clock, new_name=lambda event: f"combined.{next(NAMES)}", **options)


def test_the_same_event_again_counts_up_the_first_one() -> None:
    book = correlator(VirtualClock())
    first = core_event("no room")
    write = book.correlate(first)
    assert write is not None
    assert (write.event, write.patch) == (first, None)
    again = book.correlate({**core_event("no room"), "firstTimestamp": "t9", "lastTimestamp": "t9"})
    assert again is not None
    assert again.patch == {"count": 2, "lastTimestamp": "t9", "message": "no room"}
    assert again.event["metadata"]["name"] == first["metadata"]["name"]
    assert (again.event["firstTimestamp"], again.event["count"]) == ("t0", 2)


def test_the_tenth_message_of_one_reason_and_all_after_it_are_combined() -> None:
    book = correlator(VirtualClock())
    for n in range(9):
        write = book.correlate(core_event(f"try {n}"))
        assert write is not None
        assert write.event["message"] == f"try {n}"
    tenth = book.correlate(core_event("try 9"))
    assert tenth is not None
    assert tenth.event["message"] == "(combined from similar events): try 9"
    assert tenth.patch is None
    eleventh = book.correlate(core_event("try 10"))
    assert eleventh is not None
    assert eleventh.event["metadata"]["name"] == tenth.event["metadata"]["name"]
    assert eleventh.patch is not None
    assert eleventh.patch["message"] == "(combined from similar events): try 10"
    assert eleventh.patch["count"] == 2
    other = book.correlate(core_event("try 11", reason="Other"))
    assert other is not None
    assert other.event["message"] == "try 11"


def test_ten_quiet_minutes_end_the_combining() -> None:
    clock = VirtualClock()
    book = correlator(clock, spam_burst=100)
    for n in range(12):
        book.correlate(core_event(f"try {n}"))
    clock.advance(600)
    write = book.correlate(core_event("still similar"))
    assert write is not None
    assert write.event["message"].startswith("(combined")
    clock.advance(601)
    write = book.correlate(core_event("new day"))
    assert write is not None
    assert write.event["message"] == "new day"


def test_an_object_may_burst_25_events_then_one_every_five_minutes() -> None:
    clock = VirtualClock()
    book = correlator(clock)
    passed = [book.correlate(core_event("same")) is not None for _ in range(40)]
    assert passed == [True] * 25 + [False] * 15
    assert book.correlate(core_event("same", name="web-1")) is not None
    assert book.correlate(core_event("same", type="Normal")) is not None
    clock.advance(300)
    write = book.correlate(core_event("same"))
    assert write is not None
    assert write.patch is not None
    assert write.patch["count"] == 41
    assert book.correlate(core_event("same")) is None


class PlainBook:
    """What becomes of an event, by rules that are written down as they are told: which message, counted how often."""

    def __init__(self, clock: VirtualClock, similar_max: int, burst: int) -> None:
        self.clock, self.similar_max, self.burst = clock, similar_max, burst
        self.messages: dict[str, list[str]] = {}
        self.last_s: dict[str, float] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.bucket: TokenBucket | None = None

    def tell(self, reason: str, message: str) -> tuple[str, int] | None:
        now_s = self.clock.monotonic()
        messages = self.messages.setdefault(reason, [])
        if now_s - self.last_s.get(reason, now_s) > 600:
            messages.clear()
        self.last_s[reason] = now_s
        if message not in messages:
            messages.append(message)
        is_combined = len(messages) >= self.similar_max
        if is_combined:
            messages.pop(0)
        key = (reason, "" if is_combined else message)
        self.counts[key] = self.counts.get(key, 0) + 1
        if self.bucket is None:
            self.bucket = TokenBucket(self.clock, per_s=1 / 300, burst=self.burst)
        if not self.bucket.try_take():
            return None
        return (COMBINED_PREFIX + message if is_combined else message), self.counts[key]


@given(
    st.integers(1, 4), st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from((0.0, 0.1, 150.0, 299.9, 600.0, 601.0)), st.sampled_from("AB"),
                  st.sampled_from("uvwxyz")),
        max_size=40,
    ),
)  # fmt: skip
def test_events_are_combined_counted_and_throttled_by_the_rules(
    similar_max: int, burst: int, told: list[tuple[float, str, str]]
) -> None:
    clock = VirtualClock()
    book = correlator(clock, similar_max=similar_max, spam_burst=burst)
    plain = PlainBook(clock, similar_max, burst)
    for wait_s, reason, message in told:
        clock.advance(wait_s)
        write = book.correlate(core_event(message, reason=reason))
        wanted = plain.tell(reason, message)
        assert (None if write is None else (write.event["message"], write.event["count"])) == wanted
        assert write is None or (write.patch is not None) == write.is_patch == (write.event["count"] > 1)


class PlainCaches:
    """Which event is made and which counted up, if so many are remembered of subjects, of reasons and of events."""

    def __init__(self, entries: int, similar_max: int, burst: int) -> None:
        self.entries, self.similar_max, self.burst = entries, similar_max, burst
        self.messages: dict[Any, list[str]] = {}
        self.counts: dict[Any, int] = {}
        self.tokens: dict[Any, int] = {}

    def _renew(self, cache: dict[Any, Any], key: Any, default: Any) -> Any:
        value = cache[key] = cache.pop(key, default)
        while len(cache) > self.entries:
            del cache[next(iter(cache))]
        return value

    def tell(self, subject: tuple[str, str], reason: str, message: str) -> int | None:
        messages = self._renew(self.messages, (subject, reason), [])
        if message not in messages:
            messages.append(message)
        is_combined = len(messages) >= self.similar_max
        if is_combined:
            messages.pop(0)
        key = (subject, reason) if is_combined else (subject, reason, message)
        self.counts[key] = self._renew(self.counts, key, 0) + 1
        left = self._renew(self.tokens, subject, self.burst)
        self.tokens[subject] = max(0, left - 1)
        return self.counts[key] if left >= 1 else None


@given(
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(("a", "b", "c")), st.sampled_from(("Normal", "Warning")), st.sampled_from("RS"),
                       st.sampled_from("uvwxyz")), max_size=60),
)  # fmt: skip
def test_whatever_is_forgotten_is_forgotten_in_the_order_in_which_it_was_last_told(
    entries: int, similar_max: int, burst: int, told: list[tuple[str, str, str, str]]
) -> None:
    book = correlator(VirtualClock(), cache_entries=entries, similar_max=similar_max, spam_burst=burst)
    plain = PlainCaches(entries, similar_max, burst)
    for name, type_, reason, message in told:
        write = book.correlate(core_event(message, reason=reason, name=name, type=type_))
        wanted = plain.tell((name, type_), reason, message)
        assert (None if write is None else write.event["count"]) == wanted
        assert write is None or write.is_patch == (wanted != 1)


def test_a_renamed_event_is_counted_under_its_new_name() -> None:
    book = correlator(VirtualClock())
    write = book.correlate(core_event("a"))
    assert write is not None
    book.renamed(write.key, {"metadata": {"name": "other"}})
    again = book.correlate(core_event("a"))
    assert again is not None
    assert again.event["metadata"]["name"] == "other"


def test_the_cache_forgets_what_was_not_used_longest() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c"), len(cache)) == (1, None, 3, 2)


@given(
    capacity=st.integers(1, 5), before=st.lists(st.integers(0, 12), max_size=8),
    keys=st.lists(st.integers(0, 12), max_size=12, unique=True),
)  # fmt: skip
def test_a_cache_knows_whether_all_that_comes_is_new_and_takes_all_the_place(
    capacity: int, before: list[int], keys: list[int]
) -> None:
    caches: list[LruCache[int, str]] = [LruCache(capacity), LruCache(capacity)]
    for cache in caches:
        for key in before:
            cache.put(key, "before")
    at_once, one_by_one = caches
    found = []
    for key in keys:
        found.append(one_by_one.get(key))
        one_by_one.put(key, "flood")
    is_flood = set(found) <= {None} and len(keys) >= capacity
    assert at_once.is_flooded_by(keys) == is_flood
    if is_flood:
        at_once.flood(keys, "flood")
        for key in [90, 91, *keys]:
            assert [cache.get(key) for cache in caches] == [at_once.find(key)] * 2
            for cache in caches:
                cache.put(key + 100, "later")


def crowd(names: str, uid: str | None = None) -> list[Occurrence]:
    """An event of each object that has such a letter for its name."""
    events = [core_event("no place", name=name) for name in names]
    for event in events:
        event["involvedObject"]["uid"] = uid or event["involvedObject"]["name"]
    return [Occurrence.of_core(event) for event in events]


def test_of_more_objects_than_can_be_remembered_each_event_is_new_however_often_all_are_told() -> None:
    book = correlator(VirtualClock(), cache_entries=4)
    for _ in range(3):
        assert book.count_flood_at(crowd("abcdef"), 0.0) == 6
    assert book.count_flood_at(crowd("fedcba"), 0.0) is None, "the last ones are still known"
    first = book.count_at(crowd("f")[0], 0.0)
    assert first is not None and first.count == 2, "and nothing has been counted"


def test_what_a_flood_has_pushed_out_leaves_nothing_to_the_garbage_collector() -> None:
    book = correlator(VirtualClock(), cache_entries=4)
    assert book.count_flood_at(crowd("abcdef"), 0.0) == 6
    gc.collect()
    gc.disable()
    try:
        assert book.count_flood_at(crowd("abcdef"), 0.0) == 6
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("told", [crowd("abc"), crowd("abcabc"), crowd("abcdef", uid="u1")])
def test_few_objects_or_the_same_ones_again_are_no_flood(told: list[Occurrence]) -> None:
    assert correlator(VirtualClock(), cache_entries=4).count_flood_at(told, 0.0) is None


def test_of_a_flood_only_what_passes_is_made() -> None:
    book = correlator(VirtualClock(), cache_entries=4, passes=lambda told, _now_s: told.reference[2] in "ace")
    assert book.count_flood_at(crowd("abcdef"), 0.0) == 3


def series_event(name: str = "web-0") -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.{next(NAMES)}", "namespace": "shop"},
        "type": "Normal", "reason": "Nominated", "action": "Nominate",
        "reportingController": "karpenter", "reportingInstance": "karpenter-a",
        "regarding": {"kind": "Pod", "name": name}, "note": "soon",
    }  # fmt: skip


def test_the_first_repeat_starts_a_series_and_later_ones_are_only_counted() -> None:
    clock = VirtualClock()
    book = SeriesCorrelator(clock)
    first = book.correlate(series_event())
    assert first is not None
    assert first.patch is None
    clock.advance(1)
    second = book.correlate(series_event())
    assert second is not None
    assert second.patch == {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    assert second.event["metadata"] == first.event["metadata"]
    assert [book.correlate(series_event()) for _ in range(5)] == [None] * 5
    assert book.due() == []
    due_s = book.due_at_s()
    assert due_s == pytest.approx(361)
    clock.advance(360)
    (final,) = book.due()
    assert final.patch is not None
    assert final.patch["series"]["count"] == 7
    assert book.due_at_s() is None
    fresh = book.correlate(series_event())
    assert fresh is not None
    assert fresh.patch is None


def test_a_long_series_is_written_every_half_hour() -> None:
    clock = VirtualClock()
    book = SeriesCorrelator(clock)
    written: list[tuple[float, int]] = []
    for _ in range(60 * 70):
        writes = [book.correlate(series_event()), *book.due()]
        patches = [write.patch for write in writes if write is not None and write.patch is not None]
        written += [(clock.monotonic(), patch["series"]["count"]) for patch in patches]
        clock.advance(1)
    assert written == [(1, 2), (1801, 1802), (3601, 3602)]


def test_single_events_leave_nothing_to_write_and_the_end_writes_what_is_owed() -> None:
    clock = VirtualClock()
    book = SeriesCorrelator(clock, cache_entries=2)
    book.correlate(series_event("single"))
    for _ in range(3):
        book.correlate(series_event("often"))
    (owed,) = book.due(final=True)
    assert owed.patch is not None
    assert owed.patch["series"]["count"] == 3
    assert book.due_at_s() is None


class PlainSeries:
    """The same as SeriesCorrelator by going through all series whenever something is asked, without a limit to them."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.series: dict[str, list[float]] = {}
        self.refresh_at_s = math.inf

    def end(self, now_s: float) -> list[tuple[str, int]]:
        over = sorted((one for one in self.series.items() if now_s >= one[1][2] + 360), key=lambda one: one[1][2])
        for name, _ in over:
            del self.series[name]
        return [(name, int(count)) for name, (count, written, _) in over if count != written]

    def tell(self, name: str) -> int | None:
        now_s = self.clock.monotonic()
        count, written, _ = self.series.pop(name, [0, 0, 0])
        self.series[name] = [count + 1, count + 1 if count < 2 else written, now_s]
        if count == 1:
            self.refresh_at_s = min(self.refresh_at_s, now_s + 1800)
        return int(count) + 1 if count < 2 else None

    def due(self) -> list[tuple[str, int]]:
        now_s = self.clock.monotonic()
        owed = self.end(now_s)
        if now_s >= self.refresh_at_s:
            running = [name for name, (count, _, _) in self.series.items() if count > 1]
            for name in running:
                self.series[name][1] = self.series[name][0]
            owed += [(name, int(self.series[name][0])) for name in running]
            self.refresh_at_s = now_s + 1800 if running else math.inf
        return owed


WAITS_S = (0.0, 1.0, 100.0, 359.0, 361.0, 700.0)


@given(st.lists(st.tuples(st.sampled_from(WAITS_S), st.sampled_from("abc")), max_size=40))
def test_a_writer_that_sleeps_until_something_is_due_writes_all_that_one_who_never_sleeps_would(
    told: list[tuple[float, str]]
) -> None:
    clock = VirtualClock()
    book, plain = SeriesCorrelator(clock), PlainSeries(clock)

    def look() -> None:
        due_s = book.due_at_s()
        found = book.due() if due_s is not None and due_s <= clock.monotonic() else []
        patches = [(write.event["regarding"]["name"], write.patch) for write in found]
        assert [(name, patch and patch["series"]["count"]) for name, patch in patches] == plain.due()

    def pass_time(until_s: float) -> None:
        # The plain one is asked at every end of a series; the other one only when it says that something is due.
        while True:
            ends = [last_s + 360 for _, _, last_s in plain.series.values()]
            next_s = min([*ends, plain.refresh_at_s], default=math.inf)
            if next_s > until_s:
                break
            clock.advance_to(next_s)
            look()
        clock.advance_to(until_s)

    for wait_s, name in told:
        pass_time(clock.monotonic() + wait_s)
        write = book.correlate(series_event(name))
        count = None if write is None else (write.patch or {"series": {"count": 1}})["series"]["count"]
        assert count == plain.tell(name)
        look()
    pass_time(clock.monotonic() + 4000)
    assert book.due() == plain.due() == []


def test_events_that_were_not_repeated_wake_nobody() -> None:
    clock = VirtualClock()
    book = SeriesCorrelator(clock)
    book.correlate(series_event("a"))
    assert book.due_at_s() is None
    clock.advance(360)
    again = book.correlate(series_event("a"))
    assert again is not None and not again.is_patch


def test_too_many_series_end_the_quietest_early() -> None:
    clock = VirtualClock()
    book = SeriesCorrelator(clock, cache_entries=2)
    for _ in range(3):
        book.correlate(series_event("a"))
    book.correlate(series_event("b"))
    book.correlate(series_event("c"))
    assert book.due_at_s() == clock.monotonic()
    (owed,) = book.due()
    assert owed.event["regarding"]["name"] == "a"
