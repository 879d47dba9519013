"""Many writes, some at a time, with progress; ended in good order by errors and interrupts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from holokube.base.errors import HolokubeError

PARALLEL = 32

Job = Callable[[], Awaitable[object]]
Progress = Callable[[int, int], None]


async def do_all(jobs: Sequence[Job], progress: Progress, message: str, *, go_on: bool = False) -> int:
    """Does all jobs; returns how many.

    The first error is raised, with ``message`` before its own (``{done}`` and ``{all}`` are filled in): when those
    under way have ended or, with ``go_on``, when all have been tried. An interrupt ends it after those under way.
    """
    left = iter(jobs)
    failures: list[HolokubeError] = []
    done = 0
    is_stopped = False

    async def work() -> None:
        nonlocal done
        for job in left:
            try:
                await job()
            except HolokubeError as error:
                failures.append(error)
            else:
                done += 1
                progress(done, len(jobs))
            if is_stopped or (failures and not go_on):
                return

    workers = [asyncio.create_task(work(), name=f"writer {number}") for number in range(min(PARALLEL, len(jobs)))]
    if workers:
        try:
            await asyncio.wait(workers)
        except asyncio.CancelledError:
            is_stopped = True
            await asyncio.wait(workers)
            raise
        for worker in workers:
            worker.result()
    if failures:
        error = failures[0]
        error.message = f"{message.format(done=done, all=len(jobs))}: {error.message}"
        raise error
    return done
