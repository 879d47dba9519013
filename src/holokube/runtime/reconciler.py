"""Level-triggered controllers: sources put keys into a queue, workers bring the world of each key in order.

``reconcile(key)`` reads the present state and acts on it; it is never told what changed. That makes lost and
repeated triggers harmless. No two workers are ever at the same key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.kube.errors import Conflict
from holokube.runtime.metrics import ControllerMetrics, Metrics
from holokube.runtime.ratelimit import RateLimiter
from holokube.runtime.result import DONE, Result, TerminalError
from holokube.runtime.sources import Source
from holokube.runtime.stop import StopSignal
from holokube.runtime.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)

SYNC_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0


class Controller(Generic[K]):
    """A queue, its sources and its workers; a component of the app."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        reconcile: Callable[[K], Awaitable[Result | None]],
        *,
        sources: Sequence[Source[K]] = (),
        workers: int = 1,
        limiter: RateLimiter[K] | None = None,
        metrics: Metrics | None = None,
        postpone: Callable[[K], float | None] | None = None,
        sync_timeout_s: float = SYNC_TIMEOUT_S,
        stop_timeout_s: float = STOP_TIMEOUT_S,
    ) -> None:
        """``postpone`` tells of a key whose later look is due whether, and for how long, it needs none yet."""
        if workers < 1:
            raise ValueError(f"controller {name!r} needs at least one worker, got {workers}")
        self.name = name
        self._clock = clock
        self._reconcile = reconcile
        self._sources = list(sources)
        self._workers = workers
        self._limiter = limiter
        self._queue_metrics = metrics
        self._postpone = postpone
        self._metrics: ControllerMetrics | None = None
        if metrics is not None:
            self._metrics = metrics.observe_controller(name, workers)
        self._sync_timeout_s = sync_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self.queue = self._new_queue()
        """The queue of the present run."""
        self._ready = False
        self._log = get_logger("holokube.runtime.controller").bind(controller=name)

    @property
    def ready(self) -> bool:
        """Whether the caches are synced and the workers at work."""
        return self._ready

    def enqueue(self, key: K) -> None:
        """Asks for a reconcile of a key, besides what the sources ask for."""
        self.queue.add(key)

    def check(self) -> str | None:
        """For the readiness endpoint."""
        return None if self._ready else f"the caches of controller {self.name} are not synced"

    async def run(self, stop: StopSignal) -> None:
        """Runs until the stop; reconciles under way may finish within the stop timeout."""
        if self.queue.shutting_down:
            self.queue = self._new_queue()
        for source in self._sources:
            source.start(self.queue.add)
        try:
            if await self._wait_synced(stop):
                self._ready = True
                await self._work(stop)
        finally:
            self._ready = False
            for source in self._sources:
                source.stop()
            self.queue.shut_down()

    def _new_queue(self) -> WorkQueue[K]:
        return WorkQueue(
            self._clock, self.name, limiter=self._limiter, metrics=self._queue_metrics, postpone=self._postpone
        )

    async def _wait_synced(self, stop: StopSignal) -> bool:
        """True when all sources are synced, False when the stop came first."""
        try:
            async with asyncio.timeout(self._sync_timeout_s):
                return await stop.finishes_first(self._all_synced())
        except TimeoutError:
            raise HolokubeError(
                f"controller {self.name}: the caches did not sync within {self._sync_timeout_s:g} s",
                hint="Look at the informers' own messages: is the API server up, and may we list and watch?",
            ) from None

    async def _all_synced(self) -> None:
        for source in self._sources:
            await source.wait_synced()

    async def _work(self, stop: StopSignal) -> None:
        # An idle worker ends when the queue shuts down; a busy one when its reconcile is finished.
        stop.add_callback(self.queue.shut_down)
        tasks = [
            asyncio.create_task(self._work_on_keys(stop), name=f"{self.name}-worker-{number}")
            for number in range(self._workers)
        ]
        try:
            if await stop.finishes_first(asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)):
                for task in tasks:
                    if task.done():
                        task.result()
                return
            _, late = await asyncio.wait(tasks, timeout=self._stop_timeout_s)
            if late:
                self._log.warning(
                    "Reconciles did not finish in time and are cancelled",
                    running=len(late), stop_timeout_s=self._stop_timeout_s,
                )  # fmt: skip
        finally:
            stop.remove_callback(self.queue.shut_down)
            for task in tasks:
                task.cancel()
            # Gathering also collects the errors of further workers; the first one is on its way up already.
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work_on_keys(self, stop: StopSignal) -> None:
        queue, loop = self.queue, asyncio.get_running_loop()
        while True:
            key = queue.try_get()
            if key is None:
                if queue.shutting_down:
                    return
                # What ``get`` does, without a coroutine of its own for each wait.
                arrival = queue.arrival(loop)
                try:
                    await arrival
                except BaseException:
                    queue.withdraw(arrival)
                    raise
                continue
            try:
                if stop.came:
                    continue
                if self._metrics is not None:
                    await self._reconcile_measured(queue, key, self._metrics)
                    continue
                try:
                    result = await self._reconcile(key)
                except Exception as error:
                    self._on_error(queue, key, error)
                else:
                    if result is None or result is DONE:
                        queue.forget(key)
                    else:
                        self._on_result(queue, key, result)
            finally:
                queue.done(key)

    async def _reconcile_measured(self, queue: WorkQueue[K], key: K, metrics: ControllerMetrics) -> None:
        started_s = self._clock.monotonic()
        metrics.started()
        outcome = "error"
        try:
            result = await self._reconcile(key) or DONE
        except Exception as error:
            self._on_error(queue, key, error)
        else:
            outcome = self._on_result(queue, key, result)
        finally:
            metrics.finished(outcome, self._clock.monotonic() - started_s)

    def _on_result(self, queue: WorkQueue[K], key: K, result: Result) -> str:
        if result.requeue_after_s is None:
            queue.forget(key)
            return "success"
        if result.requeue_after_s <= 0:
            queue.add_rate_limited(key)
            return "requeue"
        # The wish for a later look is no failure, so it must not lengthen the delay of the next one.
        queue.forget(key)
        queue.add_after(key, result.requeue_after_s)
        return "requeue_after"

    def _on_error(self, queue: WorkQueue[K], key: K, error: Exception) -> None:
        terminal = isinstance(error, TerminalError)
        if self._metrics is not None:
            self._metrics.failed(terminal=terminal)
        if terminal:
            queue.forget(key)
            self._log.error("Reconcile failed for good", key=str(key), error=str(error))
            return
        queue.add_rate_limited(key)
        if isinstance(error, Conflict):
            # Somebody else wrote first. The change is on its way to us and the next try will see it.
            self._log.debug("Reconcile met a newer object, trying again", key=str(key), error=str(error))
        else:
            self._log.exception(
                "Reconcile failed, trying again", key=str(key), failures=queue.num_requeues(key)
            )
