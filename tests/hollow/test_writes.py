"""The write pool: bounded, and leases first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.hollow.writes import Urgency, WritePool


def test_the_most_urgent_goes_first() -> None:
    done: list[str] = []

    async def main(_clock: VirtualClock) -> None:
        pool = WritePool(workers=1, lease_workers=0)

        def job(name: str) -> Callable[[], Awaitable[None]]:
            async def run() -> None:
                done.append(name)

            return run

        for urgency in (Urgency.EVENT, Urgency.POD, Urgency.NODE, Urgency.LEASE):
            pool.submit(urgency, job(urgency.name))
        assert pool.queued == 4
        pool.start()
        await asyncio.sleep(1)
        assert pool.is_idle
        await pool.stop()

    run_virtual(main)
    assert done == ["LEASE", "NODE", "POD", "EVENT"]


def test_leases_do_not_wait_behind_writes_that_hang() -> None:
    async def main(clock: VirtualClock) -> None:
        pool = WritePool(workers=2, lease_workers=1)
        pool.start()
        at: list[float] = []

        async def hang() -> None:
            await asyncio.sleep(1000)

        async def lease() -> None:
            at.append(clock.monotonic())

        for _ in range(50):
            pool.submit(Urgency.POD, hang)
        await asyncio.sleep(5)
        pool.submit(Urgency.LEASE, lease)
        await asyncio.sleep(1)
        assert at == [5]
        assert pool.queued == 48
        await pool.stop()
        assert pool.is_idle

    run_virtual(main)


def test_all_workers_are_busy_when_writes_have_to_wait() -> None:
    async def main(_clock: VirtualClock) -> None:
        pool = WritePool(workers=5, lease_workers=2)
        pool.start()
        under_way: list[Urgency] = []

        async def hang(urgency: Urgency) -> None:
            under_way.append(urgency)
            await asyncio.sleep(1000)

        await asyncio.sleep(1)
        for urgency in (*[Urgency.LEASE] * 4, *[Urgency.POD] * 20):
            pool.submit(urgency, partial(hang, urgency))
        await asyncio.sleep(1)
        assert under_way == [*[Urgency.LEASE] * 4, *[Urgency.POD] * 3]
        assert pool.queued == 17
        await asyncio.sleep(1000)
        assert len(under_way) == 7 + 5 and pool.queued == 12, "those who do leases alone take nothing else"
        await pool.stop()
        assert pool.is_idle

    run_virtual(main)


def test_few_workers_get_up_for_writes_that_are_answered_at_once() -> None:
    by: list[str] = []

    async def main(_clock: VirtualClock) -> None:
        pool = WritePool(workers=16, lease_workers=0)
        pool.start()

        async def quick() -> None:
            task = asyncio.current_task()
            assert task is not None
            by.append(task.get_name())

        await asyncio.sleep(1)
        for number, woken in ((1, 1), (1, 1), (30, 5), (2, 2), (1, 1)):
            idle = [*pool._idle]
            for _ in range(number):
                pool.submit(Urgency.POD, quick)
            assert sum(future.done() for future in idle) == woken
            await asyncio.sleep(1)
            assert pool.is_idle and len(pool._idle) == 16
        await pool.stop()

    run_virtual(main)
    assert len(by) == 35
    assert len({*by[2:32]}) == 1, "one does all that is there"


def test_too_many_events_are_dropped_and_counted() -> None:
    async def main(_clock: VirtualClock) -> None:
        pool = WritePool(workers=1, events_max=2)

        async def nothing() -> None: ...

        assert [pool.submit(Urgency.EVENT, nothing) for _ in range(3)] == [True, True, False]
        assert pool.dropped_events == 1 and pool.submit(Urgency.POD, nothing)
        await pool.stop()

    run_virtual(main)


def test_a_job_that_fails_does_not_take_its_worker_along() -> None:
    done: list[int] = []

    async def main(_clock: VirtualClock) -> None:
        pool = WritePool(workers=1, lease_workers=0)
        pool.start()

        async def broken() -> None:
            raise RuntimeError("boom")

        async def fine() -> None:
            done.append(1)

        pool.submit(Urgency.POD, broken)
        pool.submit(Urgency.POD, fine)
        await asyncio.sleep(1)
        await pool.stop()

    run_virtual(main)
    assert done == [1]


def test_a_pool_needs_a_worker() -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        WritePool(workers=0)
