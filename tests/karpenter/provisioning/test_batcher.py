from __future__ import annotations

import asyncio

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
