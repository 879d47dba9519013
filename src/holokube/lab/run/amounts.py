"""Amounts over time, summed up exactly: whole numbers of milliseconds, so that no order of additions matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NANO_USD: Final = 1_000_000_000
HOUR_MS: Final = 3_600_000


def milliseconds(seconds: float) -> int:
    """A time as a whole number."""
    return round(seconds * 1000)


class Area:
    """A whole amount that changes, and its integral over milliseconds."""

    __slots__ = ("_area", "_since_ms", "amount")

    def __init__(self) -> None:
        self.amount = 0
        self._area = 0
        self._since_ms = 0

    def add(self, delta: int, now_ms: int) -> None:
        """The amount changes by so much."""
        self._area += self.amount * (now_ms - self._since_ms)
        self._since_ms = now_ms
        self.amount += delta

    def until(self, now_ms: int) -> int:
        """The integral up to now."""
        return self._area + self.amount * (now_ms - self._since_ms)


def nearest_rank(ordered: Sequence[int], percent: int) -> int | None:
    """The value that so many per cent of the ordered values do not exceed; None without any."""
    if not ordered:
        return None
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(rank, 1) - 1]
