from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.scheduler.workers import Wake, Workers


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


def test_all_workers_get_up_for_jobs_that_wait_for_answers() -> None:
    started: list[int] = []
    answer = asyncio.Event()

    def job(number: int) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            started.append(number)
            await answer.wait()

        return work

    async def main(workers: Workers) -> None:
        await asyncio.sleep(1)
        for number in range(8):
            workers.submit(str(number), job(number))
        await asyncio.sleep(1)
        assert started == [0, 1, 2, 3, 4]
        # Those who have done all there was must hear of what comes later.
        answer.set()
        await asyncio.sleep(1)
        answer.clear()
        for number in range(8, 13):
            workers.submit(str(number), job(number))
        await asyncio.sleep(1)
        answer.set()

    run(main, count=5)
    assert started == list(range(13))


def test_few_workers_get_up_for_jobs_that_need_no_waiting() -> None:
    turns = 0

    async def work() -> None:
        pass

    async def main(workers: Workers) -> None:
        nonlocal turns
        await asyncio.sleep(1)
        for number in range(32):
            workers.submit(str(number), work)
        asleep = list(workers._idle)
        await asyncio.sleep(1)
        turns = sum(future.done() for future in asleep) + 32 - len(asleep)
        assert workers.backlog == 0

    run(main, count=32)
    assert turns == 5


def test_the_one_who_waits_is_woken_once_and_need_not_wait_for_what_was() -> None:
    log: list[str] = []

    async def inside(clock: VirtualClock) -> None:
        loop, wake = asyncio.get_running_loop(), Wake()

        async def waits() -> None:
            for _ in range(2):
                await wake.wait(loop)
                log.append(f"{clock.monotonic():g}")
                wake.is_set = False

        wake.set()
        task = asyncio.create_task(waits())
        await asyncio.sleep(1)
        wake.set()
        wake.set()
        await task
        given_up = asyncio.create_task(waits())
        await asyncio.sleep(1)
        assert not given_up.done()
        given_up.cancel()
        await asyncio.wait({given_up})
        wake.set()
        assert wake.is_set

    run_virtual(inside)
    assert log == ["0", "1"]


def test_the_worker_that_was_busy_last_is_woken_first() -> None:
    names: list[str] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        names.append(task.get_name())

    async def main(workers: Workers) -> None:
        await asyncio.sleep(1)
        for number in range(4):
            workers.submit(str(number), work)
            await asyncio.sleep(1)
        assert len(set(names)) == 1

    run(main, count=3)
