"""A single thing is done without a task, and nobody can tell but by how long it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.errors import HolokubeError
from holokube.base.loop import run_virtual
from holokube.runtime.together import act_on_each

Act = Callable[[int], Awaitable[None]]
Together = Callable[[Sequence[int], Act], Awaitable[Sequence[BaseException | None]]]


async def gather_all(items: Sequence[int], act: Act) -> Sequence[BaseException | None]:
    """The long way."""
    return await asyncio.gather(*(act(item) for item in items), return_exceptions=True)


async def one_by_one(items: Sequence[int], act: Act) -> Sequence[BaseException | None]:
    """Without tasks."""
    return await act_on_each(items, act, one_by_one=True)


@settings(max_examples=80, deadline=None)
@given(
    items=st.integers(0, 3),
    waits=st.lists(st.sampled_from(["turn", "second"]), max_size=3),
    fails=st.booleans(),
    others=st.integers(0, 4),
)
def test_everybody_gets_the_turns_that_a_task_would_leave_them(
    items: int, waits: list[str], fails: bool, others: int
) -> None:
    def told_by(together: Together) -> list[str]:
        told: list[str] = []

        async def main(clock: VirtualClock) -> None:
            async def act(item: int) -> None:
                told.append(f"{item} begins at {clock.monotonic()}")
                # What it leads to comes after what was led to before it.
                asyncio.get_running_loop().call_soon(told.append, f"led to by {item}")
                for wait in waits:
                    await clock.sleep(0 if wait == "turn" else 1)
                told.append(f"{item} ends")
                if fails:
                    raise HolokubeError(f"{item} failed")

            async def other(number: int) -> None:
                for turn in range(8):
                    told.append(f"other {number} in its turn {turn}")
                    await asyncio.sleep(0)

            async def asker() -> None:
                came = await together(range(items), act)
                told.append(f"came: {[str(error) for error in came]}")

            # They stand before and after the one who asks.
            early = [asyncio.create_task(other(number)) for number in range(others // 2)]
            asking = asyncio.create_task(asker())
            late = [asyncio.create_task(other(number)) for number in range(others // 2, others)]
            await asyncio.gather(*early, asking, *late)

        run_virtual(main)
        return told

    assert told_by(act_on_each) == told_by(gather_all)


@settings(max_examples=80, deadline=None)
@given(
    fates=st.lists(st.sampled_from(["done", "refused", "bug"]), max_size=4),
    waits=st.lists(st.sampled_from(["turn", "second"]), max_size=3),
)
def test_what_came_of_each_is_the_same_one_by_one(fates: list[str], waits: list[str]) -> None:
    def told_by(together: Together) -> tuple[list[str], list[int]]:
        done: list[int] = []

        async def main(clock: VirtualClock) -> list[str]:
            async def act(item: int) -> None:
                for wait in waits:
                    await clock.sleep(0 if wait == "turn" else 1)
                done.append(item)
                if fates[item] == "refused":
                    raise HolokubeError(f"{item} failed")
                if fates[item] == "bug":
                    raise ZeroDivisionError(f"{item} is a bug")

            return [repr(error) for error in await together(range(len(fates)), act)]

        return run_virtual(main), done

    assert told_by(one_by_one) == told_by(gather_all)


def test_several_things_are_waited_for_side_by_side_unless_told_otherwise() -> None:
    async def main(clock: VirtualClock) -> tuple[float, float]:
        async def act(_item: int) -> None:
            await clock.sleep(1)

        began_s = clock.monotonic()
        await act_on_each([1, 2, 3], act)
        between_s = clock.monotonic()
        await act_on_each([1, 2, 3], act, one_by_one=True)
        return between_s - began_s, clock.monotonic() - between_s

    assert run_virtual(main) == (1, 3)


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_who_is_cancelled_does_not_go_on(turns: int) -> None:
    def told_by(together: Together) -> list[str]:
        told: list[str] = []

        async def main(clock: VirtualClock) -> None:
            async def act(_item: int) -> None:
                told.append("begins")
                try:
                    await clock.sleep(60)
                finally:
                    told.append(f"ends at {clock.monotonic()}")

            task = asyncio.ensure_future(together([1], act))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run_virtual(main)
        return told

    assert told_by(act_on_each) == told_by(gather_all)


def test_a_bug_is_told_as_well() -> None:
    async def main(_clock: VirtualClock) -> list[BaseException | None]:
        async def act(_item: int) -> None:
            raise ZeroDivisionError("a bug")

        return await act_on_each([1], act)

    assert [repr(error) for error in run_virtual(main)] == ["ZeroDivisionError('a bug')"]
