"""How fast virtual time may pass: a throttle and a stop for those who want to watch.

A ``VirtualTimeLoop`` without a pace jumps as fast as it can, and nothing here costs it anything. With one it asks
before each jump how long to wait in real time. What happens, and in which order, stays the same.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

BEHIND_MAX_S = 0.25
"""A run that cannot keep its speed is not hurried afterwards: what it lost beyond this, in real time, is forgotten."""


class Pace:
    """Virtual seconds per real second, or paused. It may be read and changed from any thread."""

    def __init__(
        self, speed: float = math.inf, *, is_paused: bool = False, real: Callable[[], float] = time.monotonic
    ) -> None:
        self._speed = _checked(speed)
        self._is_paused = is_paused
        self._real = real
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], object]] = []
        # At the real time began_s, virtual time was at from_s; None until the loop asks.
        self._began_s = 0.0
        self._from_s: float | None = None
        self._next_s = math.inf
        # How far between two events time had come when something changed, so that it goes on from there.
        self._reached_s = -math.inf

    @property
    def speed(self) -> float:
        """Infinite for as fast as possible."""
        return self._speed

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    def set_speed(self, speed: float) -> None:
        """From now on; a pause goes on."""
        self._change(_checked(speed), self._is_paused)

    def pause(self) -> None:
        """Let what is due at this moment happen, and no more."""
        self._change(self._speed, True)

    def resume(self) -> None:
        """Go on at the speed of before."""
        self._change(self._speed, False)

    def listen(self, on_change: Callable[[], object]) -> Callable[[], None]:
        """Has ``on_change`` called, in the thread of whoever changes something; returns a way to end that."""
        with self._lock:
            self._listeners.append(on_change)

        def end() -> None:
            with self._lock, suppress(ValueError):
                self._listeners.remove(on_change)

        return end

    def wait_s(self, now_s: float, next_s: float) -> float:
        """How long to wait in real time before the clock may go from ``now_s`` to ``next_s``; infinite in a pause."""
        with self._lock:
            self._next_s = next_s
            if self._is_paused:
                self._from_s = None
                return math.inf
            if self._speed == math.inf:
                self._from_s = None
                return 0.0
            real_s = self._real()
            if self._from_s is None:
                self._began_s, self._from_s = real_s, max(now_s, min(self._reached_s, next_s))
            wait_s = (next_s - self._from_s) / self._speed - (real_s - self._began_s)
            if wait_s < -BEHIND_MAX_S:
                self._began_s, self._from_s = real_s, next_s
            return max(0.0, wait_s)

    def shown_s(self, now_s: float) -> float:
        """Where time stands between two jumps, for a display: the clock itself only ever shows times of events."""
        with self._lock:
            return max(now_s, min(self._come_to(), self._next_s))

    def _come_to(self) -> float:
        if self._from_s is None:
            return self._reached_s
        return self._from_s + (self._real() - self._began_s) * self._speed

    def _change(self, speed: float, is_paused: bool) -> None:
        with self._lock:
            self._reached_s = self._come_to()
            self._speed, self._is_paused = speed, is_paused
            self._from_s = None
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()


def _checked(speed: float) -> float:
    if not speed > 0:
        raise ValueError(f"a speed must be above zero virtual seconds per second, not {speed!r}; pause() stops time")
    return speed
