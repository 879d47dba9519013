"""Time as an object: every component is given a Clock and asks nobody else what time it is.

``WallClock`` is real time. ``VirtualClock`` stands still until a ``VirtualTimeLoop`` jumps it to the next
timer (``holokube.base.loop.run_virtual``), or until a test moves it by hand with ``advance``.
"""

from __future__ import annotations

import asyncio
import math
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What a component may ask about time."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""

    def time(self) -> float:
        """The current instant in Unix seconds."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back. Equals the running loop's ``time()``."""

    async def sleep(self, seconds: float) -> None:
        """Suspend the calling task; zero or less lets other tasks run once."""


class TimerHost(Protocol):
    """What a virtual clock needs from the event loop that drives it."""

    def create_future(self) -> asyncio.Future[None]: ...

    def wake_at(self, when_s: float, future: asyncio.Future[None]) -> None: ...

    def forget(self, future: asyncio.Future[None]) -> None: ...


class WallClock:
    """Real time."""

    __slots__ = ()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(_checked(seconds))


class VirtualClock:
    """A clock that only moves when told to.

    ``monotonic()`` counts virtual seconds since ``start``; the other readings are derived from it, so that
    they can never disagree. Counting from zero keeps sub-nanosecond precision for months of virtual time,
    which a float of Unix seconds (steps of 0.24 us) would not.
    """

    __slots__ = ("_host", "_now", "_start", "_start_unix_s", "elapsed_s")

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        if start.tzinfo is None:
            raise ValueError(f"VirtualClock start {start.isoformat()} has no time zone; "
                             "pass an aware datetime, for example datetime(2026, 1, 1, tzinfo=UTC)")
        self._start = start.astimezone(UTC)
        self._start_unix_s = self._start.timestamp()
        self.elapsed_s = 0.0
        """What ``monotonic`` reads, for the loop that looks at it in every round."""
        self._now = (0.0, self._start)
        """The last answer, for many ask at the same instant."""
        self._host: TimerHost | None = None

    def __repr__(self) -> str:
        return f"<VirtualClock {self.now().isoformat()} (+{self.elapsed_s:g}s)>"

    @property
    def start(self) -> datetime:
        """The instant at which ``monotonic()`` was zero."""
        return self._start

    def now(self) -> datetime:
        at_s, moment = self._now
        if at_s != self.elapsed_s:
            moment = self._start + timedelta(seconds=self.elapsed_s)
            self._now = (self.elapsed_s, moment)
        return moment

    def time(self) -> float:
        return self._start_unix_s + self.elapsed_s

    def monotonic(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        host = self._host
        if host is None:
            raise RuntimeError("VirtualClock.sleep: no VirtualTimeLoop drives this clock, so the sleep would "
                               "never end; run the coroutine with "
                               "holokube.base.loop.run_virtual(main, clock=clock)")
        if not seconds > 0:
            await asyncio.sleep(0 if seconds <= 0 else _checked(seconds))
            return
        future = host.create_future()
        host.wake_at(self.elapsed_s + seconds, future)
        try:
            await future
        except BaseException:
            host.forget(future)
            raise

    def advance(self, seconds: float) -> None:
        """Move time forward by hand.

        Under a running loop this is the machine being suspended: timers that became due fire late, at the
        new time, in the order of their deadlines.
        """
        self.advance_to(self.elapsed_s + seconds)

    def advance_to(self, elapsed_s: float) -> None:
        """Move time forward until ``monotonic()`` reads ``elapsed_s``."""
        if not self.elapsed_s <= elapsed_s < math.inf:
            raise ValueError(f"VirtualClock cannot move from {self.elapsed_s!r} s to {elapsed_s!r} s: "
                             "time only moves forward, by a finite amount")
        self.elapsed_s = elapsed_s

    def elapsed_at(self, instant: datetime) -> float:
        """What ``monotonic()`` reads at an instant."""
        if instant.tzinfo is None:
            raise ValueError(f"{instant.isoformat()} has no time zone; pass an aware datetime")
        return (instant - self._start).total_seconds()

    def attach(self, host: TimerHost) -> None:
        """Hand the clock to the loop that will drive it."""
        if self._host is not None and self._host is not host:
            raise RuntimeError("this VirtualClock is already driven by another VirtualTimeLoop; close that "
                               "loop first, or give each loop a clock of its own")
        self._host = host

    def detach(self, host: TimerHost) -> None:
        """Take the clock back from a loop that is closed; the reading stays."""
        if self._host is host:
            self._host = None


def _checked(seconds: float) -> float:
    # A NaN compares false with everything, so it would silently break the order of any timer heap.
    if math.isnan(seconds):
        raise ValueError("cannot sleep for NaN seconds; check the computation of the delay")
    return seconds
