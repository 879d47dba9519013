"""Waiting longer and longer while things go wrong."""

from __future__ import annotations

from dataclasses import dataclass

from holokube.base.clock import Clock
from holokube.base.rng import Rng


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """By default that of upstream's reflector: 0.8 s doubling to 30 s, afresh after two good minutes."""

    first_s: float = 0.8
    factor: float = 2.0
    max_s: float = 30.0
    jitter: float = 1.0
    """Up to this share of the delay is added at random, so that many clients do not come back together."""
    reset_after_s: float = 120.0


class Backoff:
    """The delays of one loop."""

    def __init__(self, clock: Clock, rng: Rng, policy: BackoffPolicy | None = None) -> None:
        self._clock = clock
        self._rng = rng
        self._policy = policy or BackoffPolicy()
        self._base_s = self._policy.first_s
        self._last_used_at: float | None = None

    def next_delay_s(self) -> float:
        policy = self._policy
        now = self._clock.monotonic()
        if self._last_used_at is not None and now - self._last_used_at > policy.reset_after_s:
            self._base_s = policy.first_s
        self._last_used_at = now
        base_s = self._base_s
        self._base_s = min(policy.max_s, base_s * policy.factor)
        return base_s * (1 + self._rng.random() * policy.jitter)

    async def wait(self) -> None:
        await self._clock.sleep(self.next_delay_s())
