"""Clocks outside an event loop; what a loop does with them is in test_loop.py."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import Clock, VirtualClock, WallClock


def test_a_virtual_clock_starts_in_2026_and_stands_still() -> None:
    clock = VirtualClock()
    assert clock.now() == clock.now() == datetime(2026, 1, 1, tzinfo=UTC)
    assert clock.time() == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    assert clock.monotonic() == 0.0


def test_advance_moves_all_three_readings_together() -> None:
    clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
    clock.advance(90.5)
    assert clock.now() == datetime(2026, 3, 1, 0, 1, 30, 500_000, tzinfo=UTC)
    assert clock.time() == clock.now().timestamp()
    assert clock.monotonic() == 90.5


def test_a_start_in_another_zone_is_told_in_utc() -> None:
    clock = VirtualClock(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now().isoformat() == "2026-01-01T00:00:00+00:00"


def test_a_start_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone; pass an aware datetime"):
        VirtualClock(datetime(2026, 1, 1))


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_time_does_not_go_back_nor_to_infinity(seconds: float) -> None:
    clock = VirtualClock()
    clock.advance(5)
    with pytest.raises(ValueError, match="only moves forward"):
        clock.advance(seconds)
    assert clock.monotonic() == 5


@given(st.lists(st.floats(0, 1e7), max_size=30))
def test_now_never_disagrees_with_monotonic(steps: list[float]) -> None:
    clock = VirtualClock()
    for step in steps:
        before = clock.now()
        clock.advance(step)
        assert clock.now() >= before
        assert abs(clock.elapsed_at(clock.now()) - clock.monotonic()) <= 1e-6


def test_sleeping_on_a_clock_without_a_virtual_loop_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="run_virtual"):
        asyncio.run(VirtualClock().sleep(1))


def test_the_wall_clock_tells_aware_utc_and_agrees_with_the_loop() -> None:
    clock: Clock = WallClock()

    async def main() -> None:
        before = clock.monotonic()
        await clock.sleep(0.001)
        assert clock.monotonic() > before
        assert before <= asyncio.get_running_loop().time() <= clock.monotonic()
        await clock.sleep(-1)
        with pytest.raises(ValueError, match="NaN"):
            await clock.sleep(math.nan)

    asyncio.run(main())
    assert clock.now().utcoffset() == timedelta(0)
    assert abs(clock.now().timestamp() - clock.time()) < 60
