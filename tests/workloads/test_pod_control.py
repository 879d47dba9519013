"""Acting on one item and on several: the same outcome, side by side where there is something to wait for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.errors import HolokubeError
from holokube.base.loop import run_virtual
from holokube.workloads.pod_control import slow_start, together


@settings(max_examples=80, deadline=None)
@given(refused=st.lists(st.booleans(), max_size=4), waits=st.lists(st.sampled_from([0.0, 1.0]), max_size=3))
def test_what_comes_of_it_is_the_same_one_by_one(refused: list[bool], waits: list[float]) -> None:
    def outcome(*, one_by_one: bool) -> tuple[str, list[int]]:
        done: list[int] = []

        async def main(clock: VirtualClock) -> str:
            async def act(item: int) -> None:
                for wait_s in waits:
                    await clock.sleep(wait_s)
                done.append(item)
                if refused[item]:
                    raise HolokubeError(f"{item} failed")

            return str(await together(range(len(refused)), act, one_by_one=one_by_one))

        return run_virtual(main), done

    assert outcome(one_by_one=True) == outcome(one_by_one=False)


def test_several_things_are_waited_for_side_by_side_unless_told_otherwise() -> None:
    async def main(clock: VirtualClock) -> tuple[float, float]:
        async def act(_item: int) -> None:
            await clock.sleep(1)

        began_s = clock.monotonic()
        await together([1, 2, 3], act)
        between_s = clock.monotonic()
        await together([1, 2, 3], act, one_by_one=True)
        return between_s - began_s, clock.monotonic() - between_s

    assert run_virtual(main) == (1, 3)


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("items", [[], [1], [1, 2, 3]])
def test_the_first_failure_is_returned_after_all_were_tried_and_a_bug_is_raised(
    items: list[int], one_by_one: bool
) -> None:
    tried: list[int] = []

    async def fails(item: int) -> None:
        tried.append(item)
        raise HolokubeError(f"no {item}")

    async def breaks(_item: int) -> None:
        raise KeyError("a bug")

    async def go() -> None:
        failure = await together(items, fails, one_by_one=one_by_one)
        assert tried == items
        assert str(failure) == ("no 1" if items else "None")
        if items:
            with pytest.raises(KeyError):
                await together(items, breaks, one_by_one=one_by_one)
            assert str(await slow_start(items, fails, one_by_one=one_by_one)) == "no 1"
            assert tried == [*items, 1], "a failure ends it after the first"

    run_virtual(lambda _clock: go())
