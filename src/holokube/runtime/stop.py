"""The one way to tell a component to wind down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class StopSignal:
    """Set once, never cleared. Components wait on it, sleep on it, or look at it between steps."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.came = False
        """Whether it has been asked for: ``is_set`` for loops that ask at every turn."""
        # A dict is an ordered set here: callbacks run in the order they were given.
        self._callbacks: dict[Callable[[], object], None] = {}
        self.reason = ""

    def set(self, reason: str = "") -> None:
        """Asks for the stop; the first reason given is kept."""
        if self._event.is_set():
            return
        self.reason = reason
        self.came = True
        self._event.set()
        callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks:
            callback()

    def is_set(self) -> bool:
        return self.came

    async def wait(self) -> None:
        """Returns when the stop has been asked for."""
        await self._event.wait()

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Calls back when the stop is asked for; at once when it was already."""
        if self._event.is_set():
            callback()
        else:
            self._callbacks[callback] = None

    def remove_callback(self, callback: Callable[[], object]) -> None:
        self._callbacks.pop(callback, None)

    async def sleep(self, seconds: float) -> bool:
        """Sleeps, unless the stop comes first; True when it came.

        The timer is the event loop's, which is virtual where the clock is.
        """
        if self._event.is_set():
            return True
        # A future and a timer: a time-out by cancellation costs several times as much, and loops sleep often.
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        timer = loop.call_later(seconds, end) if seconds > 0 else loop.call_soon(end)
        self.add_callback(end)
        try:
            await over
        finally:
            timer.cancel()
            self.remove_callback(end)
        return self._event.is_set()

    async def finishes_first(self, work: Awaitable[object]) -> bool:
        """Runs the work until it is finished, True, or until the stop cancels it, False."""
        task = asyncio.ensure_future(work)
        self.add_callback(task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            cancelled_from_outside = current is not None and current.cancelling() > 0
            if self._event.is_set() and not cancelled_from_outside:
                return False
            raise
        finally:
            self.remove_callback(task.cancel)
        return True
