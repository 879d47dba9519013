from __future__ import annotations

import math
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.runtime.event_series import SeriesCorrelator

NAMES = count()


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
