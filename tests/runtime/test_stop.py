from __future__ import annotations

import asyncio
from functools import partial

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.runtime.stop import StopSignal


def test_sleep_says_whether_the_stop_came_first() -> None:
    async def main(clock: VirtualClock) -> None:
        stop = StopSignal()
        assert await stop.sleep(5) is False
        assert clock.monotonic() == 5
        asyncio.get_running_loop().call_later(2, stop.set, "enough")
        assert await stop.sleep(60) is True
        assert clock.monotonic() == 7
        assert stop.reason == "enough"
        assert await stop.sleep(60) is True
        assert clock.monotonic() == 7

    run_virtual(main)


def test_the_first_reason_is_kept_and_callbacks_run_once_in_order() -> None:
    stop = StopSignal()
    calls: list[str] = []
    first, second, removed = (partial(calls.append, text) for text in ("1", "2", "x"))
    for callback in (first, second, removed):
        stop.add_callback(callback)
    stop.remove_callback(removed)
    stop.set("a")
    stop.set("b")
    assert (calls, stop.reason) == (["1", "2"], "a")
    stop.add_callback(first)
    assert calls == ["1", "2", "1"]


def test_work_is_cancelled_by_the_stop_and_only_then_false_is_returned() -> None:
    async def main(clock: VirtualClock) -> None:
        stop = StopSignal()
        assert await stop.finishes_first(clock.sleep(1)) is True
        asyncio.get_running_loop().call_later(1, stop.set)
        assert await stop.finishes_first(clock.sleep(100)) is False
        assert clock.monotonic() == 2

    run_virtual(main)


def test_a_cancellation_from_outside_is_not_mistaken_for_the_stop() -> None:
    async def main(clock: VirtualClock) -> None:
        stop = StopSignal()
        task = asyncio.create_task(stop.finishes_first(clock.sleep(100)))
        await clock.sleep(1)
        task.cancel()
        stop.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main)


def test_the_error_of_the_work_comes_through() -> None:
    async def fail() -> None:
        raise KeyError("gone")

    async def main(_clock: VirtualClock) -> None:
        with pytest.raises(KeyError, match="gone"):
            await StopSignal().finishes_first(fail())

    run_virtual(main)
