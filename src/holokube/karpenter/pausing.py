"""Long decisions with pauses, so that others on the loop have a turn; the renewal of a lease cannot wait."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Final, TypeVar

from holokube.base.clock import Clock

Answer = TypeVar("Answer")
Steps = Generator[None, None, Answer]
"""A decision that can be left alone after each step; nothing it goes by may change meanwhile."""

TURN_S: Final = 0.1


async def with_pauses(clock: Clock, steps: Steps[Answer], turn_s: float = TURN_S) -> Answer:
    """Makes a decision, and lets others run whenever it has taken so long.

    On virtual time nothing takes any time, so there it is made in one go.
    """
    ends_s = clock.monotonic() + turn_s
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
        if clock.monotonic() >= ends_s:
            await asyncio.sleep(0)
            ends_s = clock.monotonic() + turn_s


def without_pauses(steps: Steps[Answer]) -> Answer:
    """Makes a decision in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
