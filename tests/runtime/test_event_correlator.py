from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.runtime.event_correlator import CountingCorrelator, LruCache, SeriesCorrelator

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
