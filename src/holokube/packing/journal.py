"""Which rows changed, in order, for readers that each catch up when they like."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from holokube.packing.arrays import RowArray


class Journal:
    """An endless list of rows of which the oldest part is forgotten."""

    __slots__ = ("_first", "_keep", "_rows", "end")

    def __init__(self, keep: int = 16_384) -> None:
        self._rows: list[int] = []
        self._first = 0
        self._keep = keep
        self.end = 0
        """The place of the next entry; a reader who has been here has seen everything."""

    def append(self, row: int) -> None:
        """Note a change."""
        self._rows.append(row)
        self.end += 1
        if len(self._rows) > 2 * self._keep:
            self._forget()

    def extend(self, rows: Iterable[int]) -> None:
        """Note several changes."""
        self._rows.extend(rows)
        self.end = self._first + len(self._rows)
        if len(self._rows) > 2 * self._keep:
            self._forget()

    def _forget(self) -> None:
        self._first += len(self._rows) - self._keep
        del self._rows[: -self._keep]

    @property
    def latest(self) -> int:
        """The row that changed last."""
        return self._rows[-1]

    def few_since(self, place: int, most: int) -> list[int] | None:
        """The same as a list; None as well if there are more entries than ``most``."""
        if place < self._first or self.end - place > most:
            return None
        changed = self._rows[place - self._first :]
        return sorted(set(changed)) if len(changed) > 1 else changed

    def since(self, place: int) -> RowArray | None:
        """The rows that changed after ``place``, each once; None if that is too long ago to tell."""
        if place < self._first:
            return None
        changed = self._rows[place - self._first :]
        if len(changed) > 1:
            changed = sorted(set(changed))
        return np.array(changed, dtype=np.intp)
