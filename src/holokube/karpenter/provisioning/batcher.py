"""Gathers pods that come close together, so that one solve sees them all."""

from __future__ import annotations

import asyncio
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
        self._triggered = asyncio.Event()

    def trigger(self, element: str) -> None:
        """Begins a window or makes it longer; an element that is in it already does neither."""
        if element not in self._elements:
            self._elements.add(element)
            self._triggered.set()

    async def wait(self) -> bool:
        """Waits for a window and its end; False when nothing came for a second."""
        try:
            if not await self._next(FIRST_WAIT_S):
                return False
            ends_s = self._clock.monotonic() + self._max_s
            while True:
                left_s = ends_s - self._clock.monotonic()
                if left_s <= 0 or not await self._next(min(self._idle_s, left_s)):
                    return True
        finally:
            self._elements.clear()

    async def _next(self, within_s: float) -> bool:
        """Whether something new came in time."""
        try:
            async with asyncio.timeout(within_s):
                await self._triggered.wait()
        except TimeoutError:
            return False
        self._triggered.clear()
        return True
