from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.scheduler.workers import Workers


def run(main: Callable[[Workers], Awaitable[None]], *, count: int = 2, backlog_max: int = 100) -> None:
    async def inside(clock: VirtualClock) -> None:
        workers = Workers(count, backlog_max=backlog_max)
        task = asyncio.create_task(workers.run())
        try:
            await main(workers)
        finally:
            task.cancel()
            await asyncio.wait({task})

    run_virtual(inside)


def test_jobs_of_one_key_keep_their_order_and_others_run_beside_them() -> None:
    log: list[str] = []

    def job(name: str, seconds: float) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            await asyncio.sleep(seconds)
            log.append(name)

        return work

    async def main(workers: Workers) -> None:
        workers.submit("a", job("a1", 5))
        workers.submit("a", job("a2", 0))
        workers.submit("b", job("b1", 1))
        await asyncio.sleep(10)
        assert workers.backlog == 0

    run(main)
    assert log == ["b1", "a1", "a2"]


def test_no_more_jobs_run_at_once_than_there_are_workers() -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1

    async def main(workers: Workers) -> None:
        for number in range(20):
            workers.submit(str(number), work)
        await asyncio.sleep(20)
        assert workers.backlog == 0

    run(main, count=3)
    assert most == 3


def test_a_long_backlog_is_waited_for() -> None:
    async def work() -> None:
        await asyncio.sleep(1)

    async def main(workers: Workers) -> None:
        await workers.room()
        for number in range(4):
            workers.submit(str(number), work)
        await workers.room()
        assert workers.backlog == 2

    run(main, count=2, backlog_max=3)


def test_a_job_that_breaks_ends_the_workers() -> None:
    async def work() -> None:
        raise RuntimeError("broken")

    async def main() -> None:
        workers = Workers(2)
        workers.submit("a", work)
        with pytest.raises(ExceptionGroup) as caught:
            await workers.run()
        assert [str(error) for error in caught.value.exceptions] == ["broken"]

    asyncio.run(main())
