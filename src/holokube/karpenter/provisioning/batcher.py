"""Gathers pods that come close together, so that one solve sees them all."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from holokube.base.clock import Clock

FIRST_WAIT_S: Final = 1.0


class Batcher:
    """A window that begins with the first element, and ends when none is new for a while, or it has lasted too long."""

    def __init__(self, clock: Clock, *, idle_s: float, max_s: float) -> None:
        self._clock = clock
        self._idle_s = idle_s
        self._max_s = max_s
        self._elements: set[str] = set()
        self._is_triggered = False
        self._sleep: asyncio.Future[None] | None = None
        self._is_over = False

    def trigger(self, element: str) -> None:
        """Begins a window or makes it longer; an element that is in it already does neither."""
        self.trigger_all((element,))

    def trigger_all(self, elements: Collection[str]) -> None:
        """The same for several."""
        if not self._elements.issuperset(elements):
            self._elements.update(elements)
            self._is_triggered = True
            self.wake()

    def wake(self) -> None:
        """Who waits for the first element without a limit looks whether he still wants to."""
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)

    async def wait(self, *, again_after_s: float | None = None) -> bool:
        """Waits for a window and its end; False when nothing came for a second.

        Who would only wait again, ``again_after_s`` later, says so: he is kept until something comes, or he is woken,
        and then everything is as if he had been asking all the time.
        """
        try:
            until_s = self._clock.monotonic() + FIRST_WAIT_S
            if again_after_s is not None:
                until_s = await self._idle(until_s, again_after_s)
            if not await self._next(until_s):
                return False
            ends_s = self._clock.monotonic() + self._max_s
            while True:
                now_s = self._clock.monotonic()
                left_s = ends_s - now_s
                if left_s <= 0 or not await self._next(now_s + min(self._idle_s, left_s)):
                    return True
        finally:
            self._elements.clear()

    async def _idle(self, until_s: float, pause_s: float) -> float:
        """Waits for something; until when the wait would last that would be under way then."""
        if not self._is_triggered:
            await self._doze(None)
        now_s = self._clock.monotonic()
        while until_s + pause_s <= now_s:
            until_s = until_s + pause_s + FIRST_WAIT_S
        if until_s <= now_s:
            # It came between two waits, and the second would have found it.
            while not await self._doze(until_s + pause_s):
                pass
            until_s = until_s + pause_s + FIRST_WAIT_S
        return until_s

    async def _next(self, until_s: float) -> bool:
        """Whether something new came in time."""
        while not self._is_triggered:
            if await self._doze(until_s):
                return False
        self._is_triggered = False
        return True

    async def _doze(self, until_s: float | None) -> bool:
        """Waits until woken; whether the time is over, even if something came at the same moment."""
        # A future and a timer: a time-out by cancellation costs several times as much.
        loop = asyncio.get_running_loop()
        self._sleep, self._is_over = loop.create_future(), False
        timer = loop.call_at(until_s, self._end) if until_s is not None else None
        try:
            await self._sleep
        finally:
            self._sleep = None
            if timer is not None:
                timer.cancel()
        return self._is_over

    def _end(self) -> None:
        self._is_over = True
        self.wake()
