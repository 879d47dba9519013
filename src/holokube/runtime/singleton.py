"""Singleton loops: one reconcile, without a key, that says itself when it wants to run again.

Karpenter's provisioner and disruption loops are of this kind. Upstream builds them from a controller with a
single item in its queue; here the loop is spelled out, so that an early run restarts the delay instead of
adding a second beat to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.kube.errors import Conflict
from holokube.runtime.metrics import ControllerMetrics, Metrics
from holokube.runtime.ratelimit import DEFAULT_BASE_DELAY_S, DEFAULT_MAX_DELAY_S, exponential_delay_s
from holokube.runtime.result import DONE, Result, TerminalError
from holokube.runtime.stop import StopSignal

REQUEUE_IMMEDIATELY = Result(requeue_after_s=0.0)

# A loop that asks to run again at once still lets a moment pass: on virtual time the clock moves only when
# everybody waits, and a loop that never waits would stop the world.
IMMEDIATE_DELAY_S = 0.001


class Singleton:
    """Runs ``reconcile`` over and over, never twice at once, until told to stop.

    ``reconcile`` returns when to run again; without a delay it runs only after ``trigger``. An exception is
    logged and the next run comes after a delay that doubles from 5 ms up to 1000 s.
    """

    def __init__(
        self,
        clock: Clock,
        name: str,
        reconcile: Callable[[], Awaitable[Result | None]],
        *,
        metrics: Metrics | None = None,
        backoff_base_s: float = DEFAULT_BASE_DELAY_S,
        backoff_max_s: float = DEFAULT_MAX_DELAY_S,
    ) -> None:
        self._clock = clock
        self.name = name
        self._reconcile = reconcile
        self._backoff_base_s = backoff_base_s
        self._backoff_max_s = backoff_max_s
        self._metrics: ControllerMetrics | None = None
        if metrics is not None:
            self._metrics = metrics.observe_controller(name, 1)
        self._is_woken = False
        self._sleep: asyncio.Future[None] | None = None
        self._failures = 0
        self._log = get_logger("holokube.runtime.singleton").bind(controller=name)

    @property
    def failures(self) -> int:
        """How often in a row the reconcile has failed."""
        return self._failures

    def trigger(self) -> None:
        """Runs the loop now, or once more when it is running: what it has already read may be stale."""
        self._is_woken = True
        self._end_sleep()

    def _end_sleep(self) -> None:
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)

    async def run(self, stop: StopSignal) -> None:
        """Runs until the stop; the reconcile under way is finished."""
        stop.add_callback(self.trigger)
        # Asked for once: to be told takes a call of the operating system.
        loop = asyncio.get_running_loop()
        try:
            while not stop.came:
                self._is_woken = False
                delay_s = await self._run_once()
                # The stop wakes only once, and that may have been forgotten above.
                if not stop.came:
                    await self._wait(loop, delay_s)
        finally:
            stop.remove_callback(self.trigger)

    async def _run_once(self) -> float | None:
        """One reconcile; returns the delay to the next, None for never."""
        started_s = self._clock.monotonic()
        if self._metrics is not None:
            self._metrics.started()
        outcome = "error"
        try:
            result = await self._reconcile() or DONE
        except Exception as error:
            return self._on_error(error)
        else:
            self._failures = 0
            outcome = "success" if result.requeue_after_s is None else "requeue_after"
            return result.requeue_after_s
        finally:
            if self._metrics is not None:
                self._metrics.finished(outcome, self._clock.monotonic() - started_s)

    def _on_error(self, error: Exception) -> float | None:
        terminal = isinstance(error, TerminalError)
        if self._metrics is not None:
            self._metrics.failed(terminal=terminal)
        if terminal:
            self._failures = 0
            self._log.error("Reconcile failed for good, waiting for a trigger", error=str(error))
            return None
        delay_s = exponential_delay_s(self._failures, self._backoff_base_s, self._backoff_max_s)
        self._failures += 1
        if isinstance(error, Conflict):
            self._log.debug("Reconcile met a newer object, trying again", error=str(error), delay_s=delay_s)
        else:
            self._log.exception("Reconcile failed, trying again", failures=self._failures, delay_s=delay_s)
        return delay_s

    async def _wait(self, loop: asyncio.AbstractEventLoop, delay_s: float | None) -> None:
        if self._is_woken:
            return
        # A future and a timer: a time-out by cancellation costs several times as much.
        self._sleep = loop.create_future()
        timer = None
        if delay_s is not None:
            timer = loop.call_later(max(delay_s, IMMEDIATE_DELAY_S), self._end_sleep)
        try:
            await self._sleep
        finally:
            self._sleep = None
            if timer is not None:
                timer.cancel()
