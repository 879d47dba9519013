"""One label key as a column: a small number per node instead of a text.

The number of a value serves two ends. A condition on the label is a table with one truth per value, looked up
for all nodes at once; and the values of a topology key are its domains. Number 0 means that the node lacks
the label. Numbers of values that no node has any more are used again, so that a column of host names does not
grow with every node that ever lived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from holokube.kube.selectors import LabelRequirement
from holokube.packing.arrays import BoolArray, IdArray, grown

MISSING: Final = 0


class LabelColumn:
    """The value of one label on every node."""

    __slots__ = ("_free", "_number_of", "_tables", "_uses", "ids", "key", "labelled", "values")

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.ids: IdArray = np.zeros(capacity, dtype=np.intp)
        self.labelled = 0
        """How many nodes have the label."""
        self.values: list[str | None] = [None]
        self._uses: list[int] = [0]
        self._number_of: dict[str, int] = {}
        self._free: list[int] = []
        self._tables: dict[LabelRequirement, BoolArray] = {}

    def __len__(self) -> int:
        """One more than the largest number in use."""
        return len(self.values)

    @property
    def is_used(self) -> bool:
        """Whether any node has the label."""
        return bool(self._number_of)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self.ids = grown(self.ids, capacity)

    def number_of(self, value: str) -> int:
        """The number of a value; MISSING if no node has it."""
        return self._number_of.get(value, MISSING)

    def set(self, row: int, value: str | None) -> None:
        """Note what a node's label is now."""
        old = int(self.ids[row])
        if self.values[old] == value:
            return
        self.ids[row] = MISSING if value is None else self._take(value)
        self.labelled += (value is not None) - (old != MISSING)
        if old:
            self._release(old)

    def table(self, requirement: LabelRequirement) -> BoolArray:
        """Whether each value fulfils the requirement, by number."""
        table = self._tables.get(requirement)
        if table is None:
            table = np.zeros(0, dtype=np.bool_)
        known = len(table)
        if known < len(self.values):
            table = grown(table, len(self.values))
            for number in range(known, len(self.values)):
                table[number] = requirement.matches(self._as_labels(number))
            self._tables[requirement] = table
        return table

    def _as_labels(self, number: int) -> Mapping[str, str]:
        value = self.values[number]
        return {} if value is None else {self.key: value}

    def _take(self, value: str) -> int:
        number = self._number_of.get(value)
        if number is None:
            if self._free:
                number = self._free.pop()
                self.values[number] = value
                for requirement, table in self._tables.items():
                    if number < len(table):
                        table[number] = requirement.matches({self.key: value})
            else:
                number = len(self.values)
                self.values.append(value)
                self._uses.append(0)
            self._number_of[value] = number
        self._uses[number] += 1
        return number

    def _release(self, number: int) -> None:
        self._uses[number] -= 1
        if not self._uses[number]:
            value = self.values[number]
            assert value is not None, "a number in use has a value"
            del self._number_of[value]
            self.values[number] = None
            self._free.append(number)
