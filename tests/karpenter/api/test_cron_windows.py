from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.karpenter.api.cron_windows import is_within


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("now", "within"),
    [
        ("2026-03-02T08:59:59.9", False),
        ("2026-03-02T09:00:00", True),
        ("2026-03-02T16:59:59.9", True),
        # The hit itself is exactly eight hours ago, and no longer after the window's beginning.
        ("2026-03-02T17:00:00", False),
        ("2026-03-07T12:00:00", False),  # a Saturday
    ],
)
def test_a_window_begins_with_the_hit_and_ends_before_its_duration_is_over(now: str, within: bool) -> None:
    assert is_within("0 9 * * mon-fri", 8 * 3600, at(now)) is within


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"), ("@monthly", "0 0 1 * *"), ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"), ("@midnight", "0 0 * * *"), ("@hourly", "0 * * * *"),
    ],
)  # fmt: skip
@given(now_s=st.integers(1_700_000_000, 1_900_000_000), minutes=st.integers(1, 60 * 24 * 40))
def test_short_forms_are_short_for_fields(short: str, long: str, now_s: int, minutes: int) -> None:
    assert is_within(short, minutes * 60, now_s) == is_within(long, minutes * 60, now_s)


@given(now_s=st.integers(1_700_000_000, 1_900_000_000), minutes=st.integers(1, 60))
def test_every_hour_for_some_minutes_is_those_minutes_of_the_hour(now_s: int, minutes: int) -> None:
    assert is_within("@hourly", minutes * 60, now_s) == (now_s % 3600 < minutes * 60)


def test_fields_are_read_as_the_cron_library_of_upstream_reads_them() -> None:
    noon_of_monday, noon_of_tuesday = at("2026-03-02T12:00:30"), at("2026-03-03T12:00:30")
    # The second of March is in no */2 from the first; a step makes a day a restriction, so one of the two suffices.
    assert is_within("0 12 */2 * mon", 60, noon_of_monday)
    assert is_within("0 12 */2 * mon", 60, noon_of_tuesday)
    assert not is_within("0 12 2 * ?", 60, noon_of_tuesday)
    assert is_within("0 10/2 * MAR 2", 60, noon_of_tuesday)
    assert is_within("0-5,30 12 * * 1-5", 60, noon_of_tuesday)
    assert not is_within("0-5,30 12 * * 1-5/2", 60, noon_of_tuesday)


def test_a_day_that_never_comes_counts_as_always() -> None:
    assert is_within("0 0 30 2 *", 60, at("2026-03-02T12:00:00"))


@pytest.mark.parametrize(
    "wrong", ["", "* * *", "@every 1h", "60 * * * *", "@dailyish", "TZ=Asia/Tokyo 0 9 * * *", "* * * * 7"]
)
def test_what_is_no_schedule_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        is_within(wrong, 60, 0)
