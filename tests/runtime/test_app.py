from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import pytest

from holokube.base.clock import VirtualClock, WallClock
from holokube.base.loop import run_virtual
from holokube.runtime.app import App, State
from holokube.runtime.stop import StopSignal


class Part:
    """A component that writes down what happens to it."""

    def __init__(
        self, name: str, log: list[str], work: Callable[[StopSignal], Awaitable[None]] | None = None
    ) -> None:
        self.name = name
        self._log = log
        self._work = work

    async def run(self, stop: StopSignal) -> None:
        self._log.append(f"+{self.name}")
        try:
            await (self._work(stop) if self._work is not None else stop.wait())
        finally:
            self._log.append(f"-{self.name}")


def test_components_stop_in_reverse_order_each_waited_for() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []

        async def slow(stop: StopSignal) -> None:
            await stop.wait()
            await clock.sleep(3)

        app = App(clock)
        app.add(Part("store", log))
        app.add(Part("server", log, slow))
        app.add(Part("controller", log, slow))
        asyncio.get_running_loop().call_later(10, app.stop, "enough")
        assert await app.run() is True
        assert log == ["+store", "+server", "+controller", "-controller", "-server", "-store"]
        assert clock.monotonic() == 16
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)


def test_a_crash_is_restarted_with_growing_delays_and_the_others_go_on() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []
        starts_s: list[float] = []

        async def crash(_stop: StopSignal) -> None:
            starts_s.append(clock.monotonic())
            raise ValueError("broken")

        app = App(clock)
        app.add(Part("good", log))
        bad = app.add(Part("bad", log, crash))
        running = asyncio.create_task(app.run())
        await clock.sleep(200)
        assert starts_s == [0, 1, 3, 7, 15, 31, 63, 123, 183]
        assert log.count("+good") == 1
        status = app.status()[1]
        assert (status.name, status.state, status.failures_in_a_row) == (bad.name, State.CRASHED, 9)
        assert app.checks.problems() == {
            "bad": "crashed 9 times in a row, last: ValueError: broken; starts again in 43.0 s"
        }
        assert app.checks.problems("livez") == {}
        up = app.metrics.registry.get_sample_value
        assert up("holokube_component_up", {"component": "bad"}) == 0
        assert up("holokube_component_up", {"component": "good"}) == 1
        assert up("holokube_component_restarts_total", {"component": "bad"}) == 8
        app.stop()
        assert await running is True

    run_virtual(main)


def test_a_component_that_was_well_for_long_starts_from_the_first_delay() -> None:
    async def main(clock: VirtualClock) -> None:
        starts_s: list[float] = []

        async def crash_later(_stop: StopSignal) -> None:
            starts_s.append(clock.monotonic())
            await clock.sleep(0 if len(starts_s) < 4 else 500)
            raise ValueError("broken")

        app = App(clock)
        app.add(Part("bad", [], crash_later))
        running = asyncio.create_task(app.run())
        await clock.sleep(600)
        assert starts_s == [0, 1, 3, 7, 508]
        assert app.checks.problems() == {}
        app.stop()
        await running

    run_virtual(main)


def test_an_escaped_inner_cancellation_is_a_crash_like_any_other() -> None:
    async def main(clock: VirtualClock) -> None:
        starts = 0

        async def escape(stop: StopSignal) -> None:
            nonlocal starts
            starts += 1
            if starts == 1:
                inner = asyncio.create_task(clock.sleep(5))
                inner.cancel()
                await inner
            await stop.wait()

        app = App(clock)
        app.add(Part("leaky", [], escape))
        running = asyncio.create_task(app.run())
        await clock.sleep(10)
        assert starts == 2
        app.stop()
        assert await running is True

    run_virtual(main)


def test_the_crash_of_an_essential_component_ends_the_app_with_its_error() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []

        async def crash(_stop: StopSignal) -> None:
            await clock.sleep(1)
            raise OSError("port in use")

        app = App(clock)
        app.add(Part("other", log))
        app.add(Part("server", log, crash), essential=True)
        with pytest.raises(OSError, match="port in use"):
            await app.run()
        assert log == ["+other", "+server", "-server", "-other"]

    run_virtual(main)


def test_after_the_deadline_everything_is_cancelled() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []

        async def stubborn(stop: StopSignal) -> None:
            await clock.sleep(1e6)

        app = App(clock, stop_deadline_s=20)
        app.add(Part("first", log))
        app.add(Part("stubborn", log, stubborn))
        asyncio.get_running_loop().call_later(5, app.stop)
        assert await app.run() is False
        assert clock.monotonic() == 25
        assert sorted(log[2:]) == ["-first", "-stubborn"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)


def test_a_second_stop_does_not_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        async def stubborn(stop: StopSignal) -> None:
            await clock.sleep(1e6)

        app = App(clock)
        app.add(Part("stubborn", [], stubborn))
        loop = asyncio.get_running_loop()
        loop.call_later(5, app.stop)
        loop.call_later(7, app.stop)
        assert await app.run() is False
        assert clock.monotonic() == 7
        assert app.status()[0].state is State.FINISHED

    run_virtual(main)


def test_a_component_deaf_to_cancellation_is_given_up_after_a_grace_time() -> None:
    async def main(clock: VirtualClock) -> None:
        async def deaf(stop: StopSignal) -> None:
            end_s = clock.monotonic() + 1000
            while clock.monotonic() < end_s:
                try:
                    await clock.sleep(end_s - clock.monotonic())
                except asyncio.CancelledError:
                    continue

        app = App(clock, stop_deadline_s=10)
        app.add(Part("deaf", [], deaf))
        app.stop()
        assert await app.run() is False
        assert clock.monotonic() == 15

    run_virtual(main)


def test_the_app_ends_when_all_components_are_finished() -> None:
    async def main(clock: VirtualClock) -> None:
        async def once(_stop: StopSignal) -> None:
            await clock.sleep(4)

        app = App(clock)
        app.add(Part("job", [], once))
        assert await app.run() is True
        assert clock.monotonic() == 4
        assert app.status()[0].state is State.FINISHED

    run_virtual(main)


def test_cancelling_the_app_cancels_its_components() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []
        app = App(clock)
        app.add(Part("a", log))
        running = asyncio.create_task(app.run())
        await clock.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert log == ["+a", "-a"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)


def test_names_are_unique_and_late_components_are_refused() -> None:
    async def main(clock: VirtualClock) -> None:
        app = App(clock)
        app.add(Part("a", []))
        with pytest.raises(ValueError, match="already has a component called 'a'"):
            app.add(Part("a", []))
        app.stop()
        await app.run()
        with pytest.raises(RuntimeError, match="too late"):
            app.add(Part("b", []))
        with pytest.raises(RuntimeError, match="runs once"):
            await app.run()

    run_virtual(main)


def test_readiness_tells_of_the_shutdown() -> None:
    async def main(clock: VirtualClock) -> None:
        seen: list[dict[str, str]] = []
        app = App(clock)

        async def look(stop: StopSignal) -> None:
            seen.append(app.checks.problems("readyz"))
            await stop.wait()
            seen.append(app.checks.problems("readyz"))

        app.add(Part("a", [], look))
        assert app.checks.problems("readyz") == {"a": "not started yet"}
        asyncio.get_running_loop().call_later(1, app.stop)
        await app.run()
        assert seen == [{}, {"shutdown": "process is shutting down"}]

    run_virtual(main)


@pytest.mark.parametrize("second", [False, True])
def test_signals_stop_gracefully_first_and_hard_the_second_time(second: bool) -> None:
    async def main() -> None:
        stopped = asyncio.Event()

        async def work(stop: StopSignal) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            await stop.wait()
            assert stop.reason == "SIGTERM"
            if second:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()
            stopped.set()

        app = App(WallClock())
        app.add(Part("a", [], work))
        assert await app.run(handle_signals=True) is not second
        assert stopped.is_set() is not second

    # Whatever another test left behind in this process, begin with the default.
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        asyncio.run(main())
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
