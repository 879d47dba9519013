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
    """A whole amount that changes, and its integral over milliseconds.

    Each change counts from its time on, for as long as it lasts: what the amount of now would be since the beginning,
    less what each of its changes lacks of that. Whole numbers make this exact, and a change costs two additions.
    """

    __slots__ = ("_lacking", "amount")

    def __init__(self) -> None:
        self.amount = 0
        self._lacking = 0

    def add(self, delta: int, now_ms: int) -> None:
        """The amount changes by so much."""
        self.amount += delta
        self._lacking += delta * now_ms

    def until(self, now_ms: int) -> int:
        """The integral up to now."""
        return self.amount * now_ms - self._lacking


def nearest_rank(ordered: Sequence[int], percent: int) -> int | None:
    """The value that so many per cent of the ordered values do not exceed; None without any."""
    if not ordered:
        return None
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(rank, 1) - 1]
