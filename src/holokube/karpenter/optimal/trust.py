"""How far rehearsals can be trusted, learned from what became of the commands before."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

KEPT: Final = 0.5
"""A command that brought at least this share of what was rehearsed has kept its promise."""
LEAST: Final = 1 / 8
"""Below this share of the usual size nothing is begun any more."""
WORSE: Final = 1.01
"""When the cluster has become dearer than it was then by so much, it is another one."""


@dataclass(slots=True)
class Trust:
    """The size of commands: halved after one that did not bring what was hoped for, doubled after one that did.

    The fewer pods move, the less is left to chance. Measured is the price of nodes over what their pods are worth, so
    that it does not matter that pods come and go meanwhile.
    """

    share: float = 1.0
    _was: float = 0.0
    _hoped: float | None = None
    _end: float = inf
    """Where the price stood when nothing was to be gained any more."""

    def look(self, ratio: float) -> float:
        """Which share of the usual number of nodes may go now; 0 if it is better to leave things as they are."""
        if self._hoped is not None:
            kept = self._was - ratio >= KEPT * (self._was - self._hoped)
            self.share = min(1.0, 2 * self.share) if kept else self.share / 2
            self._hoped = None
            self._end = ratio if self.share < LEAST else inf
        if self.share < LEAST:
            if ratio <= WORSE * self._end:
                return 0.0
            self.share, self._end = 1.0, inf
        return self.share

    def hope(self, ratio: float, after: float) -> None:
        """A command begins that should bring the price from here to there."""
        self._was, self._hoped = ratio, after
