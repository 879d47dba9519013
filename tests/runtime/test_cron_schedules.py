"""Due moments of cron schedules, with the corner cases where cron libraries differ."""

from __future__ import annotations

from datetime import datetime

import pytest

from holokube.kube.timeformat import format_time, parse_time
from holokube.runtime.cron_schedules import ScheduleError, parse_schedule


def due(schedule: str, after: str, count: int = 1, zone: str = "") -> list[str]:
    moments = []
    moment: datetime | None = parse_time(after)
    for _ in range(count):
        assert moment is not None
        moment = parse_schedule(schedule, zone).next(moment)
        moments.append(format_time(moment) if moment else "never")
    return moments


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/15 * * * *", "2026-01-01T00:00:00Z", ["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"]),
        ("@daily", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z"]),
        ("@hourly", "2026-01-01T00:59:59Z", ["2026-01-01T01:00:00Z"]),
        ("@weekly", "2026-01-01T00:00:00Z", ["2026-01-04T00:00:00Z"]),
        ("@monthly", "2026-01-15T00:00:00Z", ["2026-02-01T00:00:00Z"]),
        ("@yearly", "2026-01-15T00:00:00Z", ["2027-01-01T00:00:00Z"]),
        ("@every 90m", "2026-01-01T00:10:05Z", ["2026-01-01T01:40:05Z"]),
        # Either day counts when both are restricted, and a step is a restriction.
        ("0 0 13 * 5", "2026-01-01T00:00:00Z", ["2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z"]),
        ("0 0 13 * 5", "2026-01-09T00:00:00Z", ["2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"]),
        ("0 0 */10 * 1", "2026-01-01T00:00:00Z", ["2026-01-05T00:00:00Z", "2026-01-11T00:00:00Z"]),
        ("0 0 ? * MON", "2026-01-01T00:00:00Z", ["2026-01-05T00:00:00Z"]),
        # From Monday in steps of two: Sunday is not a seventh day.
        ("0 0 * * 1/2", "2026-01-02T00:00:00Z", ["2026-01-05T00:00:00Z", "2026-01-07T00:00:00Z"]),
        ("0 12 29 feb *", "2026-01-01T00:00:00Z", ["2028-02-29T12:00:00Z"]),
        ("30 6-16/4 * * 1-5", "2026-01-02T15:00:00Z", ["2026-01-05T06:30:00Z", "2026-01-05T10:30:00Z"]),
        ("0 0 31 2 *", "2026-01-01T00:00:00Z", ["never"]),
    ],
)  # fmt: skip
def test_the_next_moments_are_those_of_upstream(schedule: str, after: str, expected: list[str]) -> None:
    assert due(schedule, after, len(expected)) == expected


def test_a_time_zone_moves_the_moment_with_summer_time() -> None:
    assert due("0 9 * * *", "2026-03-27T12:00:00Z", 3, "Europe/Berlin") == [
        "2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z",
    ]  # fmt: skip
    assert due("TZ=America/New_York 0 0 * * *", "2026-01-01T00:00:00Z") == ["2026-01-01T05:00:00Z"]


def test_an_hour_that_a_clock_change_skips_is_skipped_and_one_it_repeats_repeated() -> None:
    assert due("30 2 * * *", "2026-03-28T12:00:00Z", 1, "Europe/Berlin") == ["2026-03-30T00:30:00Z"]
    assert due("30 2 * * *", "2026-10-24T12:00:00Z", 2, "Europe/Berlin") == [
        "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z",
    ]  # fmt: skip


@pytest.mark.parametrize("schedule", ["", "* * * *", "61 * * * *", "@never", "0 0 * * 7"])
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(schedule)
