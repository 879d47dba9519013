"""Long decisions with pauses."""

from __future__ import annotations

import asyncio

from holokube.base.clock import VirtualClock
from holokube.karpenter.pausing import Steps, with_pauses, without_pauses


def counting(clock: VirtualClock, steps: int, step_s: float, seen: list[str]) -> Steps[int]:
    for step in range(steps):
        clock.advance(step_s)
        seen.append(f"step {step}")
        yield
    return steps


def test_others_have_a_turn_whenever_a_decision_has_taken_so_long() -> None:
    clock, seen = VirtualClock(), list[str]()

    async def renew() -> None:
        for number in range(2):
            seen.append(f"renewal {number}")
            await asyncio.sleep(0)

    async def both() -> int:
        renewing = asyncio.create_task(renew())
        answer = await with_pauses(clock, counting(clock, 5, 0.06, seen))
        await renewing
        return answer

    assert asyncio.run(both()) == 5
    assert seen == ["step 0", "step 1", "renewal 0", "step 2", "step 3", "renewal 1", "step 4"]


def test_a_decision_that_takes_no_time_is_made_in_one_go() -> None:
    clock, seen = VirtualClock(), list[str]()

    async def other() -> None:
        seen.append("other")

    async def both() -> int:
        task = asyncio.create_task(other())
        answer = await with_pauses(clock, counting(clock, 3, 0.0, seen))
        await task
        return answer

    assert asyncio.run(both()) == 3
    assert seen == ["step 0", "step 1", "step 2", "other"]


def test_without_pauses_the_answer_is_the_same() -> None:
    clock = VirtualClock()
    assert without_pauses(counting(clock, 4, 1.0, [])) == 4
