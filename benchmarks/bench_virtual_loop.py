"""How many timer wake-ups per second the virtual-time loop delivers on one core.

Goal: 150,000 per second. Anchor, measured in the same run: plain asyncio with zero-delay timers, which is the
most an ordinary loop can do when it never has to wait, and which it may fire a thousand at a time. The best
of several rounds counts, since other load on the machine only ever makes a round slower.

    python benchmarks/bench_virtual_loop.py [--wakeups 200000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual

GOAL_PER_S = 150_000
TASKS = 1_000


async def sleeping_tasks(clock: VirtualClock, wakeups: int) -> None:
    """Many tasks, each with a period of its own, so that nearly every wake-up is a jump."""

    async def beat(period_s: float) -> None:
        for _ in range(wakeups // TASKS):
            await clock.sleep(period_s)

    await asyncio.gather(*(beat(10.0 + i * 0.0137) for i in range(TASKS)))


async def aligned_tasks(clock: VirtualClock, wakeups: int) -> None:
    """Many tasks with one period: a thousand wake-ups per jump."""

    async def beat() -> None:
        for _ in range(wakeups // TASKS):
            await clock.sleep(10.0)

    await asyncio.gather(*(beat() for _ in range(TASKS)))


async def library_sleeps(_clock: VirtualClock, wakeups: int) -> None:
    """As `sleeping_tasks`, through asyncio.sleep, as a library would."""

    async def beat(period_s: float) -> None:
        for _ in range(wakeups // TASKS):
            await asyncio.sleep(period_s)

    await asyncio.gather(*(beat(10.0 + i * 0.0137) for i in range(TASKS)))


async def later_calls(_clock: VirtualClock, wakeups: int) -> None:
    """Callbacks that set their own next timer with call_later."""
    await _call_later_chains(wakeups, lambda i: 10.0 + i * 0.0137)


async def plain_sleeps(wakeups: int) -> None:
    # asyncio.sleep(0) sets no timer at all; the smallest positive delay does, and is due at once.
    async def beat() -> None:
        for _ in range(wakeups // TASKS):
            await asyncio.sleep(1e-9)

    await asyncio.gather(*(beat() for _ in range(TASKS)))


async def plain_later_calls(wakeups: int) -> None:
    await _call_later_chains(wakeups, lambda _i: 0.0)


async def _call_later_chains(wakeups: int, delay_s: Callable[[int], float]) -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    left = wakeups

    def fire(period_s: float) -> None:
        nonlocal left
        left -= 1
        if left > 0:
            loop.call_later(period_s, fire, period_s)
        elif not done.done():
            done.set_result(None)

    for i in range(TASKS):
        loop.call_later(delay_s(i), fire, delay_s(i))
    await done


def rate_per_s(run: Callable[[], None], wakeups: int, rounds: int) -> float:
    best_s = float("inf")
    for _ in range(rounds):
        gc.collect()
        began_s = time.process_time()
        run()
        best_s = min(best_s, time.process_time() - began_s)
    return wakeups / best_s


def main() -> None:
    parser = argparse.ArgumentParser(description="Timer wake-ups per second of the virtual-time loop.")
    parser.add_argument("--wakeups", type=int, default=200_000, help="per round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="the best counts (default: %(default)s)")
    arguments = parser.parse_args()
    wakeups = max(TASKS, arguments.wakeups // TASKS * TASKS)

    def plain(main: Callable[[int], Coroutine[Any, Any, None]]) -> float:
        return rate_per_s(lambda: asyncio.run(main(wakeups)), wakeups, arguments.rounds)

    def virtual(main: Callable[[VirtualClock, int], Coroutine[Any, Any, None]]) -> float:
        return rate_per_s(lambda: run_virtual(lambda clock: main(clock, wakeups)), wakeups, arguments.rounds)

    plain_sleep = plain(plain_sleeps)
    plain_later = plain(plain_later_calls)
    rows = [
        ("clock.sleep, 1,000 tasks", virtual(sleeping_tasks), plain_sleep),
        ("clock.sleep, aligned", virtual(aligned_tasks), plain_sleep),
        ("asyncio.sleep, 1,000 tasks", virtual(library_sleeps), plain_sleep),
        ("call_later, 1,000 chains", virtual(later_calls), plain_later),
    ]
    print(f"{'virtual-time loop':<28}{'wake-ups/s':>12}{'x goal':>10}{'x plain asyncio':>18}")
    for name, per_s, anchor_per_s in rows:
        print(f"{name:<28}{per_s:>12,.0f}{per_s / GOAL_PER_S:>10.2f}{per_s / anchor_per_s:>18.2f}")
    print(f"goal {GOAL_PER_S:,}/s; plain asyncio, timers already due: sleep {plain_sleep:,.0f}/s, "
          f"call_later {plain_later:,.0f}/s")


if __name__ == "__main__":
    main()
