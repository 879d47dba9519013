"""For how long nodes have been passed over by simulations that ended early."""

from __future__ import annotations

from collections.abc import Iterable


class SkipTimes:
    """A node that was skipped keeps the time of its last simulation until it is simulated again."""

    def __init__(self) -> None:
        self._last_turn_s: float | None = None
        self._skipped_since_s: dict[str, float] = {}

    def update(self, skipped: Iterable[str], now_s: float) -> float:
        """Note who was skipped in this turn; returns for how long the longest has been."""
        last_s = now_s if self._last_turn_s is None else self._last_turn_s
        self._skipped_since_s = {name: self._skipped_since_s.get(name, last_s) for name in skipped}
        self._last_turn_s = now_s
        return now_s - min(self._skipped_since_s.values(), default=now_s)
