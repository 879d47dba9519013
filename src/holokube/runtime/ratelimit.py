"""How long a failed item waits, and how often something may happen at all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol, TypeVar

from holokube.base.clock import Clock

T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)

DEFAULT_BASE_DELAY_S = 0.005
DEFAULT_MAX_DELAY_S = 1000.0
DEFAULT_BUCKET_PER_S = 10.0
DEFAULT_BUCKET_BURST = 100

# Float arithmetic on elapsed times may miss a whole token by a hair; a nanotoken of credit closes the gap.
TOKEN_EPSILON = 1e-9


class RateLimiter(Protocol[T_contra]):
    """Decides the delay before an item is tried again."""

    def next_delay_s(self, item: T_contra) -> float:
        """The delay of the next try; asking counts as a failure of the item."""

    def forget(self, item: T_contra) -> None:
        """The item is well: its next failure starts from the beginning."""

    def num_requeues(self, item: T_contra) -> int:
        """How often the item has failed since it was last forgotten."""


def exponential_delay_s(failures: int, base_s: float, max_s: float) -> float:
    """``base * 2^failures``, never more than ``max``."""
    # 2**64 is past any sensible ratio of max to base, and keeps the float finite for items that fail forever.
    return min(base_s * 2.0 ** min(failures, 64), max_s)


class ExponentialBackoff:
    """Per item: 5 ms, 10 ms, 20 ms, ... up to 1000 s, as client-go's default limiter."""

    def __init__(self, base_s: float = DEFAULT_BASE_DELAY_S, max_s: float = DEFAULT_MAX_DELAY_S) -> None:
        if base_s <= 0 or max_s < base_s:
            raise ValueError(f"backoff needs 0 < base <= max, got base {base_s} s and max {max_s} s")
        self._base_s = base_s
        self._max_s = max_s
        self._failures: dict[Hashable, int] = {}

    def next_delay_s(self, item: Hashable) -> float:
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return exponential_delay_s(failures, self._base_s, self._max_s)

    def forget(self, item: Hashable) -> None:
        self._failures.pop(item, None)

    def num_requeues(self, item: Hashable) -> int:
        return self._failures.get(item, 0)


class TokenBucket:
    """So many per second, with a burst; starts full."""

    __slots__ = ("_burst", "_clock", "_per_s", "_tokens", "_updated_s")

    def __init__(self, clock: Clock, *, per_s: float, burst: int) -> None:
        if per_s <= 0 or burst < 1:
            raise ValueError(f"a token bucket needs rate > 0 and burst >= 1, got {per_s} per second, {burst}")
        self._clock = clock
        self._per_s = per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._updated_s = clock.monotonic()

    def try_take(self) -> bool:
        """Takes a token if there is one."""
        self._refill()
        if self._tokens + TOKEN_EPSILON < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def reserve_s(self) -> float:
        """Takes a token, of the future if need be; returns how long to wait for it."""
        self._refill()
        self._tokens -= 1.0
        if self._tokens >= -TOKEN_EPSILON:
            return 0.0
        return -self._tokens / self._per_s

    def _refill(self) -> None:
        now_s = self._clock.monotonic()
        elapsed_s = now_s - self._updated_s
        self._updated_s = now_s
        if elapsed_s > 0.0:
            self._tokens = min(self._burst, self._tokens + elapsed_s * self._per_s)


class BucketLimiter:
    """All items together share one token bucket."""

    def __init__(
        self, clock: Clock, *, per_s: float = DEFAULT_BUCKET_PER_S, burst: int = DEFAULT_BUCKET_BURST
    ) -> None:
        self._bucket = TokenBucket(clock, per_s=per_s, burst=burst)

    def next_delay_s(self, item: Hashable) -> float:  # noqa: ARG002  (the protocol's signature)
        return self._bucket.reserve_s()

    def forget(self, item: Hashable) -> None:
        """A shared bucket has no memory of single items."""

    def num_requeues(self, item: Hashable) -> int:  # noqa: ARG002  (the protocol's signature)
        return 0


class MaxOfLimiters:
    """The longest delay of several limiters, each of which is charged."""

    def __init__(self, *limiters: RateLimiter[Hashable]) -> None:
        self._limiters = limiters

    def next_delay_s(self, item: Hashable) -> float:
        return max((limiter.next_delay_s(item) for limiter in self._limiters), default=0.0)

    def forget(self, item: Hashable) -> None:
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: Hashable) -> int:
        return max((limiter.num_requeues(item) for limiter in self._limiters), default=0)


def default_limiter(clock: Clock, *, overall_bucket: bool = False) -> RateLimiter[Hashable]:
    """Exponential per item; with ``overall_bucket`` also 10 per second (burst 100) over all items."""
    if not overall_bucket:
        return ExponentialBackoff()
    return MaxOfLimiters(ExponentialBackoff(), BucketLimiter(clock))
