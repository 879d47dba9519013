"""The pace of virtual time: a throttle, a pause, and no effect on what happens."""

from __future__ import annotations

import asyncio
import math
import threading
from datetime import timedelta

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import VirtualTimeLoop, run_virtual
from holokube.base.pace import BEHIND_MAX_S, Pace


class Watch:
    """A real clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_at_full_speed_nothing_waits() -> None:
    assert Pace().wait_s(0.0, 1e9) == 0.0


def test_a_jump_waits_for_its_share_of_real_time() -> None:
    watch = Watch()
    pace = Pace(60.0, real=watch)
    assert pace.wait_s(0.0, 120.0) == pytest.approx(2.0)
    watch.now_s += 0.5
    assert pace.wait_s(0.0, 120.0) == pytest.approx(1.5)
    watch.now_s += 1.5
    assert pace.wait_s(0.0, 120.0) == 0.0


def test_waits_do_not_add_up_to_a_drift() -> None:
    watch = Watch()
    pace = Pace(10.0, real=watch)
    for second in range(100):
        watch.now_s += pace.wait_s(float(second), second + 1.0)
    assert watch.now_s == pytest.approx(1010.0)


def test_lost_time_is_forgotten_not_made_up_for() -> None:
    watch = Watch()
    pace = Pace(1.0, real=watch)
    assert pace.wait_s(0.0, 1.0) == pytest.approx(1.0)
    watch.now_s += 30.0
    assert pace.wait_s(0.0, 1.0) == 0.0
    assert pace.wait_s(1.0, 2.0) == pytest.approx(1.0)
    watch.now_s += 1.0 + BEHIND_MAX_S / 2
    assert pace.wait_s(1.0, 2.0) == 0.0
    assert pace.wait_s(2.0, 3.0) == pytest.approx(1.0 - BEHIND_MAX_S / 2), "a little is made up for"


def test_a_pause_waits_forever_and_costs_no_time_afterwards() -> None:
    watch = Watch()
    pace = Pace(1.0, real=watch)
    assert pace.wait_s(0.0, 5.0) == pytest.approx(5.0)
    pace.pause()
    assert pace.is_paused and pace.wait_s(0.0, 5.0) == math.inf
    watch.now_s += 100.0
    pace.resume()
    assert not pace.is_paused and pace.wait_s(0.0, 5.0) == pytest.approx(5.0), "no time had passed before"


def test_between_jumps_a_display_moves_on_up_to_the_next_event() -> None:
    watch = Watch()
    pace = Pace(2.0, real=watch)
    pace.wait_s(10.0, 14.0)
    watch.now_s += 1.0
    assert pace.shown_s(10.0) == pytest.approx(12.0)
    watch.now_s += 60.0
    assert pace.shown_s(10.0) == pytest.approx(14.0)
    assert pace.shown_s(14.0) == 14.0


def test_a_pause_between_two_jumps_goes_on_where_it_was() -> None:
    watch = Watch()
    pace = Pace(1.0, real=watch)
    pace.wait_s(0.0, 10.0)
    watch.now_s += 4.0
    pace.pause()
    watch.now_s += 1000.0
    assert pace.shown_s(0.0) == pytest.approx(4.0) and pace.wait_s(0.0, 10.0) == math.inf
    pace.resume()
    assert pace.wait_s(0.0, 10.0) == pytest.approx(6.0)
    pace.set_speed(2.0)
    assert pace.wait_s(0.0, 10.0) == pytest.approx(3.0)
    pace.set_speed(math.inf)
    assert pace.wait_s(0.0, 10.0) == 0.0 and pace.shown_s(10.0) == 10.0


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Pace(speed)
    with pytest.raises(ValueError, match="above zero"):
        Pace().set_speed(speed)


def test_listeners_are_told_until_they_leave() -> None:
    pace, told = Pace(), []
    end = pace.listen(lambda: told.append(pace.speed))
    pace.set_speed(3.0)
    pace.pause()
    end()
    end()
    pace.resume()
    assert told == [3.0, 3.0]


def test_a_paused_loop_stands_still_until_another_thread_resumes_it() -> None:
    pace = Pace(is_paused=True)
    before_s: list[float] = []

    async def main(clock: VirtualClock) -> float:
        def resume() -> None:
            before_s.append(clock.monotonic())
            pace.resume()

        thread = threading.Thread(target=resume)
        thread.start()
        await clock.sleep(3600)
        thread.join()
        return clock.monotonic()

    assert run_virtual(main, pace=pace) == 3600.0
    assert before_s == [0.0]


def test_a_paused_loop_still_does_what_other_threads_ask_for() -> None:
    pace = Pace(is_paused=True)

    async def main(clock: VirtualClock) -> list[float]:
        loop, seen = asyncio.get_running_loop(), []

        async def ask() -> float:
            return clock.monotonic()

        def outside() -> None:
            seen.append(asyncio.run_coroutine_threadsafe(ask(), loop).result())
            pace.resume()

        thread = threading.Thread(target=outside)
        thread.start()
        await clock.sleep(5)
        thread.join()
        return seen

    assert run_virtual(main, pace=pace) == [0.0]


def test_the_same_happens_at_every_pace() -> None:
    def happenings(pace: Pace | None) -> list[tuple[float, str]]:
        async def main(clock: VirtualClock) -> list[tuple[float, str]]:
            log: list[tuple[float, str]] = []

            async def each(name: str, every_s: float) -> None:
                for _ in range(20):
                    await clock.sleep(every_s)
                    log.append((clock.monotonic(), name))

            await asyncio.gather(each("a", 1.0), each("b", 0.5), each("c", 2.0))
            return log

        return run_virtual(main, pace=pace)

    assert happenings(Pace(5000.0)) == happenings(None)


def test_a_limit_is_kept_at_a_pace_too() -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep(1e6)

    clock = VirtualClock()
    assert run_virtual(main, clock=clock, until=timedelta(seconds=5), pace=Pace(1000.0)) is None
    assert clock.monotonic() == 5.0


def test_a_closed_loop_no_longer_listens() -> None:
    pace = Pace()
    loop = VirtualTimeLoop()
    loop.set_pace(pace)
    loop.close()
    pace.pause()
