"""The timer wheel against a naive model, and its driver on virtual time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.hollow.wheel import Timer, TimerWheel, WheelDriver

times = st.floats(min_value=0, max_value=50)


@given(st.lists(times), st.lists(st.integers(min_value=0, max_value=100)), times)
def test_what_is_due_is_what_a_sorted_list_says(at: list[float], cancelled: list[int], now_s: float) -> None:
    wheel: TimerWheel[int] = TimerWheel(tick_s=0.5)
    timers = [wheel.schedule(moment, number) for number, moment in enumerate(at)]
    gone = {number for number in cancelled if number < len(at)}
    for number in gone:
        assert wheel.cancel(timers[number])
        assert not wheel.cancel(timers[number])
    due = wheel.due(now_s)
    left = {number for number in range(len(at)) if number not in gone}
    for number in due:
        # Never early; and in the order of ticks.
        assert at[number] <= now_s + 1e-6
    assert {number for number in left if at[number] + 0.5 <= now_s} <= set(due) <= left
    ticks = [timers[number].tick for number in due]
    assert ticks == sorted(ticks)
    assert len(wheel) == len(left) - len(due)
    later = wheel.next_at_s
    assert (later is None) == (len(wheel) == 0)
    assert later is None or later > now_s - 1e-6


def test_cancelled_timers_leave_nothing_behind() -> None:
    wheel: TimerWheel[int] = TimerWheel()
    timers = [wheel.schedule(86_400 + number / 10, number) for number in range(1000)]
    for timer in timers:
        wheel.cancel(timer)
    assert sum(len(bucket.timers) for bucket in wheel._buckets.values()) < 200
    assert wheel.next_at_s is None and len(wheel) == 0
    assert not wheel.cancel(None)


@given(st.lists(st.tuples(times, st.booleans()), max_size=300))
def test_what_was_cancelled_is_never_more_than_what_is_pending_for_long(timers: list[tuple[float, bool]]) -> None:
    wheel: TimerWheel[int] = TimerWheel(tick_s=0.5)
    for number, (at_s, is_cancelled) in enumerate(timers):
        timer = wheel.schedule(at_s, number)
        if is_cancelled:
            wheel.cancel(timer)
    kept = sum(len(bucket.timers) for bucket in wheel._buckets.values())
    pending = sum(not is_cancelled for _, is_cancelled in timers)
    assert len(wheel) == pending and kept <= max(pending + 65, 2 * pending + 1)
    assert sorted(wheel.due(100.0)) == [number for number, (_, is_cancelled) in enumerate(timers) if not is_cancelled]
    assert wheel._cancelled == 0 and not wheel._buckets


def test_a_tick_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="tick above zero"):
        TimerWheel(tick_s=0)


def test_the_driver_fires_in_time_and_sleeps_between() -> None:
    fired: list[tuple[str, float]] = []

    async def main(clock: VirtualClock) -> None:
        driver: WheelDriver[str] = WheelDriver(clock, lambda item: fired.append((item, round(clock.monotonic(), 3))))
        driver.after(100.0, "late")
        driver.after(1.02, "a")
        driver.after(1.04, "b")
        lost = driver.after(2.0, "lost")
        driver.cancel(lost)
        await asyncio.sleep(200)
        driver.after(5.0, "never")
        driver.stop()
        await asyncio.sleep(10)
        assert len(driver) == 0

    run_virtual(main)
    assert fired == [("a", 1.1), ("b", 1.1), ("late", 100.0)]


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.05, 0.3, 1.0]), times, st.booleans()), max_size=25))
def test_whatever_is_set_and_taken_back_meanwhile_each_timer_fires_within_its_tick(
    steps: list[tuple[float, float, bool]]
) -> None:
    fired: dict[int, float] = {}

    async def main(clock: VirtualClock) -> None:
        driver: WheelDriver[int] = WheelDriver(clock, lambda item: fired.update({item: clock.monotonic()}))
        wanted: dict[int, float] = {}
        timers: list[Timer[int]] = []
        for number, (wait_s, delay_s, takes_back) in enumerate(steps):
            await asyncio.sleep(wait_s)
            if takes_back and timers and driver.cancel(timers[-1]):
                del wanted[timers[-1].item]
            wanted[number] = clock.monotonic() + delay_s
            timers.append(driver.after(delay_s, number))
        await asyncio.sleep(60)
        assert fired.keys() == wanted.keys()
        assert all(-1e-6 <= fired[number] - at_s <= 0.1 + 1e-6 for number, at_s in wanted.items())

    run_virtual(main)


def test_an_item_may_set_the_next_timer() -> None:
    beats: list[float] = []

    async def main(clock: VirtualClock) -> None:
        def beat(item: str) -> None:
            beats.append(round(clock.monotonic(), 3))
            driver.after(10.0, item)

        driver: WheelDriver[str] = WheelDriver(clock, beat)
        driver.after(10.0, "x")
        await asyncio.sleep(45)
        driver.stop()

    run_virtual(main)
    assert beats == [10, 20, 30, 40]


def test_timers_are_small() -> None:
    assert not hasattr(Timer(1, "x"), "__dict__")
