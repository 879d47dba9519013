"""Carries out writes with a bounded number of workers, the most urgent first.

Leases come before everything else, and some workers do nothing but leases: however many pod patches hang in a
slow server, a heartbeat never waits behind them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from enum import IntEnum

from holokube.base.log import get_logger

Job = Callable[[], Awaitable[None]]


class Urgency(IntEnum):
    """The order of writes."""

    LEASE = 0
    NODE = 1
    POD = 2
    EVENT = 3


class WritePool:
    """Workers and their queues. A job handles its own errors; one that escapes is logged."""

    def __init__(self, *, workers: int = 16, lease_workers: int = 4, events_max: int = 10_000) -> None:
        if workers < 1 or lease_workers < 0:
            raise ValueError(f"a write pool needs at least one worker, not {workers}, and no negative number")
        self._workers = workers
        self._lease_workers = lease_workers
        self._events_max = events_max
        self._queues: tuple[deque[Job], ...] = tuple(deque() for _ in Urgency)
        self._idle: deque[asyncio.Future[None]] = deque()
        self._idle_lease: deque[asyncio.Future[None]] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._active = 0
        self.dropped_events = 0
        self._log = get_logger("holokube.hollow.writes")

    @property
    def queued(self) -> int:
        """How many jobs wait."""
        return sum(map(len, self._queues))

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being done."""
        return self._active == 0 and self.queued == 0

    def start(self) -> None:
        for number in range(self._workers + self._lease_workers):
            only_leases = number >= self._workers
            name = f"hollow {'lease ' if only_leases else ''}writer {number}"
            self._tasks.append(asyncio.create_task(self._work(only_leases=only_leases), name=name))

    async def stop(self) -> None:
        """Ends the workers; what is queued is forgotten."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for queue in self._queues:
            queue.clear()
        self._idle.clear()
        self._idle_lease.clear()
        self._active = 0

    def submit(self, urgency: Urgency, job: Job) -> bool:
        """Queues a job; only events are ever refused, when too many of them wait already."""
        queue = self._queues[urgency]
        if urgency is Urgency.EVENT and len(queue) >= self._events_max:
            self.dropped_events += 1
            return False
        queue.append(job)
        if not (urgency is Urgency.LEASE and self._wake(self._idle_lease)):
            self._wake(self._idle)
        return True

    @staticmethod
    def _wake(idle: deque[asyncio.Future[None]]) -> bool:
        while idle:
            future = idle.popleft()
            if not future.done():
                future.set_result(None)
                return True
        return False

    def _take(self, *, only_leases: bool) -> Job | None:
        for queue in self._queues[:1] if only_leases else self._queues:
            if queue:
                return queue.popleft()
        return None

    async def _work(self, *, only_leases: bool) -> None:
        idle = self._idle_lease if only_leases else self._idle
        while True:
            job = self._take(only_leases=only_leases)
            if job is None:
                future = asyncio.get_running_loop().create_future()
                idle.append(future)
                await future
                continue
            self._active += 1
            try:
                await job()
            except Exception as error:
                self._log.exception("A write failed unexpectedly", exc=error)
            finally:
                self._active -= 1
