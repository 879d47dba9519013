"""All timers of a fleet: one structure, one wake-up for everything that is due at the same tick.

Timers of one tick share a bucket, and only buckets are kept in order. A fleet's 100,000 timers lie in a few
thousand buckets, so setting, moving and cancelling a timer costs the same whatever the number of timers.
Rounding up to ticks is also what batches writes: renewals that fall due within a tenth of a second leave
together.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable
from typing import Generic, TypeVar

from holokube.base.clock import Clock

T = TypeVar("T")

TICK_S = 0.1


class Timer(Generic[T]):
    """A pending timer; hand it back to ``TimerWheel.cancel``."""

    __slots__ = ("is_over", "item", "tick")

    def __init__(self, tick: int, item: T) -> None:
        self.tick = tick
        self.item = item
        self.is_over = False
        """Whether it has fired or was cancelled."""


class _Bucket(Generic[T]):
    """The timers of one tick. Cancelled ones stay until their time or the next sweep: a list takes a tenth of the
    room of anything that single timers could be taken out of."""

    __slots__ = ("pending", "timers")

    def __init__(self) -> None:
        self.timers: list[Timer[T]] = []
        self.pending = 0


class TimerWheel(Generic[T]):
    """Items, each due at a time on the monotonic clock; never early, late by at most one tick."""

    def __init__(self, *, tick_s: float = TICK_S) -> None:
        if not tick_s > 0:
            raise ValueError(f"a timer wheel needs a tick above zero, not {tick_s!r} s")
        self._tick_s = tick_s
        self._buckets: dict[int, _Bucket[T]] = {}
        self._ticks: list[int] = []
        self._size = 0
        self._cancelled = 0
        """Timers that were cancelled and are still in their buckets."""

    def __len__(self) -> int:
        return self._size

    def schedule(self, at_s: float, item: T) -> Timer[T]:
        """Sets a timer."""
        tick = math.ceil(at_s / self._tick_s - 1e-9)
        timer = Timer(tick, item)
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = _Bucket()
            heapq.heappush(self._ticks, tick)
        bucket.timers.append(timer)
        bucket.pending += 1
        self._size += 1
        return timer

    def cancel(self, timer: Timer[T] | None) -> bool:
        """Takes a timer back; False if it has fired or was cancelled before."""
        if timer is None or timer.is_over:
            return False
        bucket = self._buckets.get(timer.tick)
        if bucket is None:
            # Of a wheel that was stopped.
            return False
        timer.is_over = True
        bucket.pending -= 1
        self._size -= 1
        self._cancelled += 1
        if self._cancelled > 64 and self._cancelled > self._size:
            self._sweep()
        return True

    def _sweep(self) -> None:
        """Timers of the far future that were cancelled would otherwise stay until their time."""
        for bucket in self._buckets.values():
            bucket.timers = [timer for timer in bucket.timers if not timer.is_over]
        self._buckets = {tick: bucket for tick, bucket in self._buckets.items() if bucket.pending}
        self._ticks = list(self._buckets)
        heapq.heapify(self._ticks)
        self._cancelled = 0

    @property
    def next_at_s(self) -> float | None:
        """When the next timer fires; None when there is none."""
        while self._ticks:
            tick = self._ticks[0]
            if self._buckets[tick].pending:
                return tick * self._tick_s
            self._cancelled -= len(self._buckets.pop(heapq.heappop(self._ticks)).timers)
        return None

    def due(self, now_s: float) -> list[T]:
        """Takes out what is due, in the order of time, and of setting within a tick."""
        last = math.floor(now_s / self._tick_s + 1e-9)
        items: list[T] = []
        while self._ticks and self._ticks[0] <= last:
            bucket = self._buckets.pop(heapq.heappop(self._ticks))
            for timer in bucket.timers:
                if not timer.is_over:
                    timer.is_over = True
                    items.append(timer.item)
            self._size -= bucket.pending
            self._cancelled -= len(bucket.timers) - bucket.pending
        return items


class WheelDriver(Generic[T]):
    """Turns a wheel by a single timer of the event loop, and hands over what falls due."""

    def __init__(self, clock: Clock, on_due: Callable[[T], None], *, tick_s: float = TICK_S) -> None:
        self._clock = clock
        self._on_due = on_due
        self._tick_s = tick_s
        self._wheel: TimerWheel[T] = TimerWheel(tick_s=tick_s)
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for_s = math.inf

    def __len__(self) -> int:
        return len(self._wheel)

    def after(self, delay_s: float, item: T) -> Timer[T]:
        """Sets a timer so many seconds from now."""
        return self.at(self._clock.monotonic() + max(0.0, delay_s), item)

    def at(self, at_s: float, item: T) -> Timer[T]:
        """Sets a timer at a time of the monotonic clock."""
        timer = self._wheel.schedule(at_s, item)
        # Nothing that is pending is due before what is armed for.
        if timer.tick * self._tick_s < self._armed_for_s:
            self._arm()
        return timer

    def cancel(self, timer: Timer[T] | None) -> bool:
        return self._wheel.cancel(timer)

    def stop(self) -> None:
        """Fires nothing any more."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._armed_for_s = None, math.inf
        self._wheel = TimerWheel(tick_s=self._tick_s)

    def _arm(self) -> None:
        next_s = self._wheel.next_at_s
        if next_s is None or next_s >= self._armed_for_s:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._armed_for_s = next_s
        # Clock.monotonic() is the loop's own time, so the loop's timer and the wheel agree.
        self._handle = asyncio.get_running_loop().call_at(next_s, self._fire)

    def _fire(self) -> None:
        self._handle, self._armed_for_s = None, math.inf
        try:
            for item in self._wheel.due(self._clock.monotonic()):
                self._on_due(item)
        finally:
            self._arm()
