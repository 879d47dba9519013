from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.timeformat import (
    TimeFormatError,
    format_age,
    format_duration,
    format_duration_ns,
    format_micro_time,
    format_time,
    parse_duration,
    parse_duration_ns,
    parse_micro_time,
    parse_time,
)
from tests.kube.recordings import recorded

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def test_times_are_printed_in_utc_to_the_second_or_the_microsecond() -> None:
    moment = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(moment) == "2026-03-04T03:06:07Z"
    assert format_micro_time(moment) == "2026-03-04T03:06:07.890123Z"
    assert format_time(NEW_YEAR.timestamp() + 0.75) == "2026-01-01T00:00:00Z"
    assert format_micro_time(NEW_YEAR) == "2026-01-01T00:00:00.000000Z"


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(TimeFormatError, match="has no time zone"):
        format_time(datetime(2026, 1, 1))


def test_times_are_read_and_refused_as_upstream_does() -> None:
    for case in recorded("times"):
        for kind, read in (("time", parse_time), ("micro_time", parse_micro_time)):
            expected = case[kind]
            if "error" in expected:
                with pytest.raises(TimeFormatError) as caught:
                    read(case["text"])
                assert (kind, str(caught.value)) == (kind, expected["error"])
            else:
                moment = EPOCH + timedelta(seconds=expected["seconds"], microseconds=expected["microseconds"])
                assert (kind, case["text"], read(case["text"])) == (kind, case["text"], moment)


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_what_is_printed_is_read_again(moment: datetime) -> None:
    assert parse_micro_time(format_micro_time(moment)) == moment
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.integers(-1439, 1439))
def test_times_are_printed_as_isoformat_does(moment: datetime, offset_minutes: int) -> None:
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=offset_minutes)))
    for one in (moment.replace(tzinfo=UTC), there):
        assert format_time(one) == moment.isoformat(timespec="seconds") + "Z"
        assert format_micro_time(one) == moment.isoformat(timespec="microseconds") + "Z"


@given(st.tuples(*(st.integers(0, highest) for highest in (9999, 14, 33, 26, 62, 62))))
def test_a_plain_time_is_read_as_any_other_is(parts: tuple[int, ...]) -> None:
    def read(text: str) -> tuple[datetime, Any] | str:
        try:
            moment = parse_time(text)
        except TimeFormatError as error:
            return str(error).replace(".0Z", "Z")
        return moment, moment.tzinfo

    plain = "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}".format(*parts)
    assert read(plain + "Z") == read(plain + ".0Z")


def test_ages_and_durations_print_as_upstream_prints_them() -> None:
    for case in recorded("ages"):
        nanoseconds = case["nanoseconds"]
        assert (nanoseconds, format_age(int(nanoseconds / 10**9))) == (nanoseconds, case["age"])
        assert format_duration_ns(nanoseconds) == case["duration"]
        assert parse_duration_ns(case["duration"]) == nanoseconds


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (-2, "<invalid>"), (-1.5, "0s"), (0, "0s"), (119.9, "119s"), (120, "2m"), (303, "5m3s"),
        (599, "9m59s"), (600, "10m"), (3 * 3600 - 1, "179m"), (3 * 3600, "3h"), (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"), (48 * 3600, "2d"), (49 * 3600, "2d1h"), (8 * 86400, "8d"),
        (729 * 86400, "729d"), (730 * 86400, "2y"), (731 * 86400, "2y1d"), (8 * 365 * 86400 + 86400, "8y"),
    ],
)  # fmt: skip
def test_an_age_has_two_or_three_significant_figures(seconds: float, age: str) -> None:
    assert format_age(seconds) == age


def test_durations_are_read_and_refused_as_upstream_does() -> None:
    for case in recorded("durations"):
        if "error" in case:
            with pytest.raises(TimeFormatError) as caught:
                parse_duration_ns(case["text"])
            assert str(caught.value) == case["error"]
        else:
            assert (case["text"], parse_duration_ns(case["text"])) == (case["text"], case["nanoseconds"])


def test_durations_in_seconds() -> None:
    assert parse_duration("1h30m") == 5400.0
    assert format_duration(5400) == "1h30m0s"
    assert format_duration(1.5) == "1.5s"
    assert format_duration(0.3) == "300ms"
    assert format_duration(0) == "0s"


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_duration_survives_printing(nanoseconds: int) -> None:
    # Fractions are read in floating point by Go, exactly up to 2**53.
    printed = format_duration_ns(nanoseconds)
    assert abs(parse_duration_ns(printed) - nanoseconds) <= 1


@given(st.floats(-62_135_510_400.0, 253_402_214_400.0))
def test_seconds_are_written_as_the_moment_they_stand_for(seconds: float) -> None:
    assert format_time(seconds) == format_time(datetime.fromtimestamp(0, UTC) + timedelta(seconds=math.floor(seconds)))
