"""What consolidation remembers between passes, so that it does not search again where nothing has changed.

The cluster carries a mark that moves when something changes that could make consolidation possible: a pod bound that
was not seen before, a pod deleted, a node or claim come or gone, a node initialized, a deletion mark set or taken
back, a pool changed. It does not move when a pod ends without being deleted, is resized, when a disruption budget, an
annotation or a price changes, or when another claim becomes consolidatable; so it also moves by itself every five
minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

REFRESH_AFTER_S: Final = 300.0


class Mark(NamedTuple):
    """One state of the cluster, as far as consolidation is concerned."""

    moved_at_s: float
    moves: int
    """Tells apart changes at the same instant, of which virtual time has many."""


class ConsolidationMark:
    """The cluster's mark."""

    __slots__ = ("_mark",)

    def __init__(self, now_s: float) -> None:
        self._mark = Mark(now_s, 0)

    def move(self, now_s: float) -> Mark:
        """Something has changed."""
        self._mark = Mark(now_s, self._mark.moves + 1)
        return self._mark

    def read(self, now_s: float) -> Mark:
        """The mark; a new one if the last is five minutes old."""
        return self._mark if now_s - self._mark.moved_at_s < REFRESH_AFTER_S else self.move(now_s)


@dataclass(frozen=True, slots=True)
class Memory:
    """What one method remembers. Each has its own."""

    settled_at: Mark | None = None
    """Where the mark stood when the method last had candidates, could do nothing, and no budget held it back."""
    unreached_pools: tuple[str, ...] = ()
    """Pools of which single-node consolidation saw no candidate before its time was up; first in the next pass."""

    def is_settled(self, mark: Mark) -> bool:
        """Whether nothing has changed since."""
        return self.settled_at == mark

    def settled(self, mark: Mark) -> Memory:
        """After a search that found nothing to do."""
        return Memory(mark, self.unreached_pools)

    def with_unreached(self, pools: tuple[str, ...]) -> Memory:
        """After a search that did, or did not, get to every pool."""
        return Memory(self.settled_at, pools)
