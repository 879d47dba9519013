"""How hard to look again at a cluster that stays as it is: each time for twice as long, until that was in vain too."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

TIMES_MOST: Final = 8
"""Of the work of a first look. A cluster in which nothing was found with that is left alone until it changes."""


class Persistence:
    """Remembers what was looked at last, and how often in vain."""

    def __init__(self) -> None:
        self._seen: Hashable = None
        self._times = 1

    def times_for(self, picture: Hashable) -> int:
        """How many times the work of a first look this one is worth; 0 for none at all."""
        if picture != self._seen:
            self._seen, self._times = picture, 1
        return self._times if self._times <= TIMES_MOST else 0

    def was_in_vain(self) -> None:
        """Nothing was found in what was last asked about."""
        self._times *= 2
