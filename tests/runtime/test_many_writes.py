"""Many writes end well, whatever some of them do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holokube.base.errors import HolokubeError
from holokube.runtime.many_writes import PARALLEL, do_all


class Counting:
    def __init__(self, bad: set[int] = frozenset()) -> None:  # type: ignore[assignment]  # an empty set is a set
        self.bad = bad
        self.running = self.most = 0
        self.seen: list[tuple[int, int]] = []

    def job(self, number: int) -> Callable[[], Any]:
        async def work() -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            if number in self.bad:
                raise HolokubeError(f"{number} is bad")

        return work

    def progress(self, done: int, total: int) -> None:
        self.seen.append((done, total))


def test_all_are_done_some_at_a_time() -> None:
    counting = Counting()
    assert asyncio.run(do_all([counting.job(n) for n in range(100)], counting.progress, "x")) == 100
    assert counting.most == PARALLEL and counting.seen[-1] == (100, 100)


def test_nothing_to_do_is_done() -> None:
    assert asyncio.run(do_all([], Counting().progress, "x")) == 0


def test_the_first_error_ends_it() -> None:
    counting = Counting({0})
    with pytest.raises(HolokubeError, match=r"after \d+ of 1000: 0 is bad"):
        asyncio.run(do_all([counting.job(n) for n in range(1000)], counting.progress, "after {done} of {all}"))
    assert len(counting.seen) < 2 * PARALLEL


def test_or_all_are_tried() -> None:
    counting = Counting({0, 5})
    with pytest.raises(HolokubeError, match="98 of 100: 0 is bad"):
        asyncio.run(do_all([counting.job(n) for n in range(100)], counting.progress, "{done} of {all}", go_on=True))


def test_an_interrupt_waits_for_those_under_way() -> None:
    counting = Counting()

    async def main() -> None:
        task = asyncio.create_task(do_all([counting.job(n) for n in range(1000)], counting.progress, "x"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert counting.running == 0 and 0 < len(counting.seen) < 1000

    asyncio.run(main())
