"""A few tasks that do all the writing, so that no pod needs a task of its own; and what wakes the one that decides."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

Job = Callable[[], Awaitable[None]]

WORKERS: Final = 32
BACKLOG_MAX: Final = 1024
_JOBS_PER_WORKER: Final = 8
"""For so many jobs that come together one worker more is woken at once; the others wake each other if need be."""


class Wake:
    """As an ``asyncio.Event`` that one task waits for, again and again, without all that several could need."""

    __slots__ = ("_waiter", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        """Whoever begins anew says False here: from then on there is something to wait for."""
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Whoever waits goes on, and whoever comes until it is cleared need not wait."""
        self.is_set = True
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def wait(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """What to wait for; only one may at a time."""
        assert self._waiter is None or self._waiter.done(), "one task waits"
        waiter: asyncio.Future[None] = loop.create_future()
        if self.is_set:
            waiter.set_result(None)
        else:
            self._waiter = waiter
        return waiter


class Workers:
    """Jobs of one key run one after the other, in order; those of different keys at the same time."""

    def __init__(self, count: int = WORKERS, *, backlog_max: int = BACKLOG_MAX) -> None:
        self._count = count
        self._backlog_max = backlog_max
        self._jobs: dict[str, list[Job]] = {}
        self._ready: deque[str] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._coming = 0
        """How many workers were woken and have not looked around yet."""
        self._backlog = 0
        self._is_full = False
        self._room = asyncio.Event()
        self._room.set()

    @property
    def backlog(self) -> int:
        """How many jobs are not finished."""
        return self._backlog

    def submit(self, key: str, job: Job) -> None:
        """Has a job done soon."""
        self._backlog += 1
        if self._backlog >= self._backlog_max:
            self._is_full = True
            self._room.clear()
        waiting = self._jobs.get(key)
        if waiting is not None:
            waiting.append(job)
            return
        self._jobs[key] = [job]
        self._put(key)

    async def room(self) -> None:
        """Returns when the backlog is not too long."""
        await self._room.wait()

    async def run(self) -> None:
        """Works until cancelled; an error that a job lets out ends everything."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._count):
                group.create_task(self._worker(), name=f"scheduler worker {number}")

    def _put(self, key: str) -> None:
        """Where answers come at once, one worker does all; should it have to wait after all, another is at hand."""
        ready = self._ready
        ready.append(key)
        count = len(ready)
        if count == 1 or count % _JOBS_PER_WORKER == 2:
            self._wake_one()

    def _wake_one(self) -> None:
        while self._idle:
            # The one that was busy last: what it works with is still at hand for the processor.
            future = self._idle.pop()
            if not future.done():
                future.set_result(None)
                self._coming += 1
                return

    async def _worker(self) -> None:
        loop = asyncio.get_running_loop()
        ready, idle, of_key = self._ready, self._idle, self._jobs
        while True:
            while not ready:
                future: asyncio.Future[None] = loop.create_future()
                idle.append(future)
                await future
                self._coming -= 1
            key = ready.popleft()
            if ready and not self._coming:
                # One that waits for an answer keeps nobody.
                self._wake_one()
            jobs = of_key[key]
            try:
                await jobs.pop(0)()
            finally:
                self._backlog -= 1
                if self._is_full and self._backlog < self._backlog_max:
                    self._is_full = False
                    self._room.set()
            if jobs:
                self._put(key)
            else:
                del of_key[key]
