"""Acting on one item and on several: the same outcome, and the same turns for everybody else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from holokube.base.errors import HolokubeError
from holokube.base.loop import run_virtual
from holokube.workloads.pod_control import slow_start, together


async def with_tasks(items: Sequence[int], log: list[str], waits: int) -> None:
    """As ``together`` acts on several."""

    async def act(item: int) -> None:
        log.append(f"acts on {item}")
        for _ in range(waits):
            await asyncio.sleep(0)

    await asyncio.gather(*map(act, items), return_exceptions=True)


async def without(items: Sequence[int], log: list[str], waits: int) -> None:
    async def act(item: int) -> None:
        log.append(f"acts on {item}")
        for _ in range(waits):
            await asyncio.sleep(0)

    assert await together(items, act) is None


@pytest.mark.parametrize("waits", [0, 1, 3])
@pytest.mark.parametrize("several", [1, 2, 3])
def test_one_item_takes_as_many_turns_as_it_would_with_a_task_of_its_own(waits: int, several: int) -> None:
    async def others(log: list[str]) -> None:
        for turn in range(8):
            log.append(f"turn {turn}")
            await asyncio.sleep(0)

    async def told(way: object) -> list[str]:
        log: list[str] = []

        async def one_after_the_other() -> None:
            for number in range(several):
                await way([number], log, waits)  # type: ignore[operator]
                log.append(f"done with {number}")

        await asyncio.gather(others(log), one_after_the_other(), others(log))
        return log

    assert run_virtual(lambda _clock: told(without)) == run_virtual(lambda _clock: told(with_tasks))


@pytest.mark.parametrize("items", [[], [1], [1, 2, 3]])
def test_the_first_failure_is_returned_after_all_were_tried_and_a_bug_is_raised(items: list[int]) -> None:
    tried: list[int] = []

    async def fails(item: int) -> None:
        tried.append(item)
        raise HolokubeError(f"no {item}")

    async def breaks(_item: int) -> None:
        raise KeyError("a bug")

    async def go() -> None:
        failure = await together(items, fails)
        assert tried == items
        assert str(failure) == ("no 1" if items else "None")
        if items:
            with pytest.raises(KeyError):
                await together(items, breaks)
            assert str(await slow_start(items, fails)) == "no 1"
            assert tried == [*items, 1], "a failure ends it after the first"

    run_virtual(lambda _clock: go())
