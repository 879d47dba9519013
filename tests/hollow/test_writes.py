"""The write pool: bounded, and leases first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

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
