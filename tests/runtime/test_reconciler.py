from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import HolokubeError
from holokube.base.loop import run_virtual
from holokube.kube.errors import Conflict
from holokube.runtime.app import App
from holokube.runtime.metrics import Metrics
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result, TerminalError
from holokube.runtime.stop import StopSignal


class ListSource:
    """Feeds given keys at the start and syncs after a while."""

    def __init__(self, clock: VirtualClock, keys: list[str], *, synced_after_s: float = 0.0) -> None:
        self.clock = clock
        self.keys = keys
        self.synced_after_s = synced_after_s
        self.enqueue: Callable[[str], None] | None = None

    def start(self, enqueue: Callable[[str], None]) -> None:
        self.enqueue = enqueue
        for key in self.keys:
            enqueue(key)

    async def wait_synced(self) -> None:
        await self.clock.sleep(self.synced_after_s)

    def stop(self) -> None:
        self.enqueue = None


class Runs:
    """A controller whose reconciles are written down."""

    def __init__(
        self, clock: VirtualClock, step: Callable[[str], Any], *, takes_s: float = 0.0, **options: Any
    ) -> None:
        self.clock = clock
        self.step = step
        self.takes_s = takes_s
        self.started: list[tuple[float, str]] = []
        self.finished: list[str] = []
        self.busy: list[str] = []
        self.overlaps: list[str] = []
        self.most_busy = 0
        self.controller: Controller[str] = Controller(clock, "web", self.reconcile, **options)
        self.stop = StopSignal()

    async def reconcile(self, key: str) -> Result | None:
        self.overlaps += [key] if key in self.busy else []
        self.busy.append(key)
        self.most_busy = max(self.most_busy, len(self.busy))
        self.started.append((self.clock.monotonic(), key))
        try:
            if self.takes_s:
                await self.clock.sleep(self.takes_s)
            result: Result | None = self.step(key)
            self.finished.append(key)
            return result
        finally:
            self.busy.remove(key)

    def start(self) -> None:
        self.task = asyncio.create_task(self.controller.run(self.stop))

    async def end(self) -> None:
        self.stop.set()
        await self.task


def test_it_waits_for_the_caches_then_works_with_all_its_workers() -> None:
    async def main(clock: VirtualClock) -> None:
        sources = [ListSource(clock, ["a", "b", "a"]), ListSource(clock, ["c", "d"], synced_after_s=7)]
        runs = Runs(clock, lambda key: None, takes_s=1, sources=sources, workers=3)
        runs.start()
        await clock.sleep(6)
        assert (runs.started, runs.controller.ready) == ([], False)
        assert runs.controller.check() == "the caches of controller web are not synced"
        await clock.sleep(10)
        assert runs.started == [(7, "a"), (7, "b"), (7, "c"), (8, "d")]
        assert runs.controller.check() is None
        assert runs.most_busy == 3
        await runs.end()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)


def test_caches_that_never_sync_are_an_error_with_a_hint() -> None:
    async def main(clock: VirtualClock) -> None:
        runs = Runs(clock, lambda key: None, sources=[ListSource(clock, [], synced_after_s=1e9)])
        runs.start()
        with pytest.raises(HolokubeError, match="web: the caches did not sync within 120 s") as caught:
            await runs.task
        assert "informers" in caught.value.hint

    run_virtual(main)


def test_the_stop_ends_the_wait_for_the_caches() -> None:
    async def main(clock: VirtualClock) -> None:
        runs = Runs(clock, lambda key: None, sources=[ListSource(clock, ["a"], synced_after_s=1e9)])
        runs.start()
        await clock.sleep(5)
        await runs.end()
        assert runs.started == []

    run_virtual(main)


def test_a_key_triggered_while_it_is_worked_on_is_worked_on_once_more() -> None:
    async def main(clock: VirtualClock) -> None:
        runs = Runs(clock, lambda key: None, takes_s=2, workers=4)
        runs.controller.enqueue("a")
        runs.start()
        await clock.sleep(1)
        for _ in range(5):
            runs.controller.enqueue("a")
        await clock.sleep(10)
        assert (runs.started, runs.overlaps) == ([(0, "a"), (2, "a")], [])
        await runs.end()

    run_virtual(main)


def test_results_decide_when_a_key_comes_back() -> None:
    async def main(clock: VirtualClock) -> None:
        metrics = Metrics()
        seen: dict[str, int] = {}

        def step(key: str) -> Result | None:
            seen[key] = seen.get(key, 0) + 1
            if key == "later":
                return Result(requeue_after_s=10)
            if key == "now" and seen[key] < 4:
                return Result(requeue_after_s=0)
            return None

        runs = Runs(clock, step, sources=[ListSource(clock, ["later", "now", "once"])], metrics=metrics)
        runs.start()
        await clock.sleep(25)
        assert [at for at, key in runs.started if key == "later"] == [0, 10, 20]
        assert [at for at, key in runs.started if key == "now"] == pytest.approx([0, 0.005, 0.015, 0.035])
        assert seen["once"] == 1
        assert runs.controller.queue.num_requeues("now") == 0

        def total(result: str) -> float | None:
            labels = {"controller": "web", "result": result}
            return metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels)

        assert [total(r) for r in ("success", "requeue_after", "requeue", "error")] == [2, 3, 3, 0]
        await runs.end()

    run_virtual(main)


def test_failures_come_back_with_growing_delays_and_do_not_disturb_other_keys() -> None:
    async def main(clock: VirtualClock) -> None:
        metrics = Metrics()
        failures = 4

        def step(key: str) -> None:
            nonlocal failures
            if key == "bad" and failures:
                failures -= 1
                raise ValueError("broken")

        runs = Runs(clock, step, sources=[ListSource(clock, ["bad", "good"])], metrics=metrics)
        runs.start()
        await clock.sleep(60)
        tries_s = [at_s for at_s, key in runs.started if key == "bad"]
        assert tries_s == pytest.approx([0, 0.005, 0.015, 0.035, 0.075])
        assert runs.finished == ["good", "bad"]
        assert runs.controller.queue.num_requeues("bad") == 0
        value = metrics.registry.get_sample_value
        assert value("controller_runtime_reconcile_errors_total", {"controller": "web"}) == 4
        assert value("workqueue_retries_total", {"name": "web"}) == 4
        await runs.end()

    run_virtual(main)


def test_conflicts_are_retried_quietly_and_other_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        errors: list[Exception] = [Conflict("newer"), Conflict("newer"), ValueError("odd")]

        def step(_key: str) -> None:
            if errors:
                raise errors.pop(0)

        runs = Runs(clock, step, sources=[ListSource(clock, ["a"])])
        runs.start()
        await clock.sleep(1)
        assert runs.finished == ["a"]
        await runs.end()

    run_virtual(main)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "Reconcile failed, trying again"
    ]


def test_a_terminal_error_waits_for_the_next_change() -> None:
    async def main(clock: VirtualClock) -> None:
        metrics = Metrics()

        def step(_key: str) -> None:
            raise TerminalError("spec is impossible")

        runs = Runs(clock, step, sources=[ListSource(clock, ["a"])], metrics=metrics)
        runs.start()
        await clock.sleep(5000)
        assert len(runs.started) == 1
        runs.controller.enqueue("a")
        await clock.sleep(1)
        assert len(runs.started) == 2
        name = "controller_runtime_terminal_reconcile_errors_total"
        assert metrics.registry.get_sample_value(name, {"controller": "web"}) == 2
        await runs.end()

    run_virtual(main)


def test_the_stop_lets_running_reconciles_finish_and_starts_no_more() -> None:
    async def main(clock: VirtualClock) -> None:
        keys = [f"k{n}" for n in range(10)]
        runs = Runs(clock, lambda key: None, takes_s=8, sources=[ListSource(clock, keys)], workers=2)
        runs.start()
        await clock.sleep(1)
        await runs.end()
        assert clock.monotonic() == 8
        assert runs.finished == ["k0", "k1"]
        assert runs.controller.queue.processing == 0

    run_virtual(main)


def test_after_the_stop_timeout_running_reconciles_are_cancelled() -> None:
    async def main(clock: VirtualClock) -> None:
        runs = Runs(
            clock, lambda key: None, takes_s=1e6, sources=[ListSource(clock, ["a"])], stop_timeout_s=30
        )
        runs.start()
        await clock.sleep(1)
        await runs.end()
        assert (clock.monotonic(), runs.finished, runs.busy) == (31, [], [])

    run_virtual(main)


def test_cancelling_the_controller_cancels_its_workers() -> None:
    async def main(clock: VirtualClock) -> None:
        source = ListSource(clock, ["a", "b"])
        runs = Runs(clock, lambda key: None, takes_s=1e6, sources=[source], workers=2)
        runs.start()
        await clock.sleep(1)
        runs.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await runs.task
        assert (runs.busy, source.enqueue) == ([], None)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)


def test_a_controller_restarted_by_the_app_sees_everything_again() -> None:
    async def main(clock: VirtualClock) -> None:
        source = ListSource(clock, ["a", "b"])
        broken = True
        original = source.wait_synced

        async def wait_synced() -> None:
            await original()
            if broken:
                raise ConnectionError("no cache")

        source.wait_synced = wait_synced  # type: ignore[method-assign]  # a source that breaks once
        runs = Runs(clock, lambda key: None, sources=[source])
        app = App(clock)
        app.add(runs.controller)
        running = asyncio.create_task(app.run())
        await clock.sleep(0.5)
        broken = False
        await clock.sleep(10)
        assert [key for _, key in runs.started] == ["a", "b"]
        app.stop()
        assert await running is True

    run_virtual(main)
