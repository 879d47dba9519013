from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.karpenter.provisioning.batcher import Batcher


def window(times: list[tuple[float, str]]) -> float | None:
    """How long a batch lasted with these triggers; None when there was none."""

    async def main(clock: VirtualClock) -> float | None:
        batcher = Batcher(clock, idle_s=1.0, max_s=10.0)

        async def trigger() -> None:
            for at_s, element in times:
                await clock.sleep(at_s - clock.monotonic())
                batcher.trigger(element)

        feeding = asyncio.create_task(trigger())
        found = await batcher.wait()
        took_s = round(clock.monotonic(), 3)
        feeding.cancel()
        return took_s if found else None

    return run_virtual(main)


def test_nothing_for_a_second_is_no_batch() -> None:
    assert window([(1.5, "a")]) is None


def test_a_batch_ends_a_second_after_its_last_new_element() -> None:
    assert window([(0.5, "a")]) == 1.5
    assert window([(0.5, "a"), (1.2, "b"), (2.0, "c")]) == 3.0


def test_an_element_that_is_there_already_does_not_make_the_batch_longer() -> None:
    assert window([(0.5, "a"), (1.2, "a"), (1.4, "a")]) == 1.5


def test_a_batch_ends_after_ten_seconds_however_many_come() -> None:
    assert window([(0.5 * number, str(number)) for number in range(1, 60)]) == 10.5


def test_elements_count_anew_in_the_next_batch() -> None:
    async def main(clock: VirtualClock) -> None:
        batcher = Batcher(clock, idle_s=1.0, max_s=10.0)
        for _ in range(2):
            batcher.trigger("a")
            assert await batcher.wait()
        assert not await batcher.wait()

    run_virtual(main)


def batches(times: list[tuple[float, str]], *, again_after_s: float | None) -> list[float]:
    """When windows ended, of who asks again and again with a pause of a millisecond."""

    async def main(clock: VirtualClock) -> list[float]:
        batcher = Batcher(clock, idle_s=1.0, max_s=10.0)
        ended: list[float] = []
        is_over = False

        async def ask() -> None:
            while not is_over:
                if await batcher.wait(again_after_s=again_after_s):
                    ended.append(clock.monotonic())
                await clock.sleep(0.001)

        asking = asyncio.create_task(ask())
        for at_s, element in times:
            if at_s > clock.monotonic():
                await clock.sleep(at_s - clock.monotonic())
            batcher.trigger(element)
        await clock.sleep(30.0)
        is_over = True
        batcher.wake()
        await asking
        assert clock.monotonic() < (times[-1][0] if times else 0.0) + 32.0, "who is woken ends soon"
        return ended

    return run_virtual(main)


# Steps of half a millisecond, and the pauses between rounds, of which each lasts 1.001 s: what comes in a pause counts
# after it. Nothing comes at the very instant when a round ends.
moments = st.integers(0, 40_000).map(lambda n: 0.00025 + n / 2000) | st.integers(0, 20).map(
    lambda n: 1.0004 + n * 1.001
)


@settings(deadline=None)
@given(st.lists(st.tuples(moments, st.sampled_from("abc")), max_size=8).map(sorted))
def test_who_asks_all_the_time_and_who_is_kept_see_the_same_batches(times: list[tuple[float, str]]) -> None:
    assert batches(times, again_after_s=0.001) == batches(times, again_after_s=None)


def test_who_is_kept_is_not_asked_again_before_something_comes() -> None:
    async def main(clock: VirtualClock) -> float:
        batcher = Batcher(clock, idle_s=1.0, max_s=10.0)
        asyncio.get_running_loop().call_later(3600.0, batcher.trigger, "a")
        assert await batcher.wait(again_after_s=0.001)
        return clock.monotonic()

    assert run_virtual(main) == 3601.0
