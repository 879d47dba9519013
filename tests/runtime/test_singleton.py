from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.kube.errors import Conflict
from holokube.runtime.metrics import Metrics
from holokube.runtime.result import Result, TerminalError
from holokube.runtime.singleton import REQUEUE_IMMEDIATELY, Singleton
from holokube.runtime.stop import StopSignal

Step = Callable[[int], Result | None]


class Loop:
    """A singleton whose n-th run does ``step(n)``, with the times of the runs."""

    def __init__(
        self, clock: VirtualClock, step: Step, *, takes_s: float = 0.0, metrics: Metrics | None = None
    ) -> None:
        self.clock = clock
        self.step = step
        self.takes_s = takes_s
        self.runs_s: list[float] = []
        self.singleton = Singleton(clock, "provisioner", self.reconcile, metrics=metrics)
        self.stop = StopSignal()
        self.task = asyncio.create_task(self.singleton.run(self.stop))

    async def reconcile(self) -> Result | None:
        self.runs_s.append(self.clock.monotonic())
        if self.takes_s:
            await self.clock.sleep(self.takes_s)
        return self.step(len(self.runs_s))

    async def end(self) -> None:
        self.stop.set()
        await self.task


def test_it_runs_again_after_the_delay_it_asked_for() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = Loop(clock, lambda n: Result(requeue_after_s=10), takes_s=1)
        await clock.sleep(35)
        await loop.end()
        assert loop.runs_s == [0, 11, 22, 33]

    run_virtual(main)


def test_an_immediate_requeue_lets_virtual_time_pass() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = Loop(clock, lambda n: REQUEUE_IMMEDIATELY if n < 50 else None)
        await clock.sleep(1)
        await loop.end()
        assert len(loop.runs_s) == 50
        assert loop.runs_s[-1] < 0.1

    run_virtual(main)


def test_without_a_delay_it_waits_for_a_trigger() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = Loop(clock, lambda n: None)
        await clock.sleep(1000)
        loop.singleton.trigger()
        await clock.sleep(1000)
        await loop.end()
        assert loop.runs_s == [0, 1000]

    run_virtual(main)


def test_a_trigger_wakes_it_early_and_the_delay_starts_anew() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = Loop(clock, lambda n: Result(requeue_after_s=10))
        await clock.sleep(4)
        loop.singleton.trigger()
        await clock.sleep(16)
        await loop.end()
        assert loop.runs_s == [0, 4, 14]

    run_virtual(main)


def test_a_trigger_during_a_run_causes_one_more_run() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = Loop(clock, lambda n: None, takes_s=2)
        await clock.sleep(1)
        loop.singleton.trigger()
        loop.singleton.trigger()
        await clock.sleep(20)
        await loop.end()
        assert loop.runs_s == [0, 2]

    run_virtual(main)


def test_errors_double_the_delay_and_a_success_resets_it() -> None:
    def step(n: int) -> Result | None:
        if n <= 3 or n == 5:
            raise ValueError(f"run {n}") if n != 2 else Conflict("newer")
        return Result(requeue_after_s=1)

    async def main(clock: VirtualClock) -> None:
        metrics = Metrics()
        loop = Loop(clock, step, metrics=metrics)
        await clock.sleep(0.5)
        assert loop.runs_s == pytest.approx([0, 0.005, 0.015, 0.035])
        await clock.sleep(1)
        assert loop.runs_s[4:] == pytest.approx([1.035, 1.04])
        await loop.end()
        total = metrics.registry.get_sample_value
        labels = {"controller": "provisioner"}
        assert total("controller_runtime_reconcile_errors_total", labels) == 4
        assert total("controller_runtime_reconcile_total", {**labels, "result": "requeue_after"}) == 2
        assert total("controller_runtime_active_workers", labels) == 0

    run_virtual(main)


def test_a_trigger_also_cuts_a_backoff_short_and_a_terminal_error_waits_for_it() -> None:
    def step(n: int) -> Result | None:
        if n < 15:
            raise ValueError("still broken")
        if n == 15:
            raise TerminalError("hopeless")
        return None

    async def main(clock: VirtualClock) -> None:
        loop = Loop(clock, step)
        await clock.sleep(60)
        count = len(loop.runs_s)
        assert count == 14
        loop.singleton.trigger()
        await clock.sleep(5000)
        assert len(loop.runs_s) == 15
        loop.singleton.trigger()
        await clock.sleep(0.001)
        assert len(loop.runs_s) == 16
        await loop.end()

    run_virtual(main)


def test_the_stop_lets_the_running_reconcile_finish() -> None:
    async def main(clock: VirtualClock) -> None:
        finished: list[float] = []

        def step(n: int) -> Result | None:
            finished.append(clock.monotonic())
            return REQUEUE_IMMEDIATELY

        loop = Loop(clock, step, takes_s=5)
        await clock.sleep(2)
        await loop.end()
        assert finished == [5.0]
        assert len(loop.runs_s) == 1

    run_virtual(main)
