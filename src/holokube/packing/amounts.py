"""What pods request, in the form in which the tables of nodes have it; made once for all pods that request the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

import numpy as np

from holokube.kube.resources import ResourceVector
from holokube.packing.arrays import IntArray, RowArray
from holokube.packing.nodes import NONZERO, NodeTable

_KEPT: Final = 65_536
_ROWS_KEPT: Final = 4096


class Amounts:
    """Arrays of requests for one table of nodes."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._columns: dict[Hashable, tuple[RowArray, IntArray]] = {}
        self._rows: dict[int, tuple[ResourceVector, tuple[int, int], IntArray]] = {}
        """By the identity of the requests, which all pods of a class have in common, and which are held for that."""

    def columns(self, requests: ResourceVector) -> tuple[RowArray, IntArray]:
        """The columns of what is requested, and the amounts."""
        key = tuple(requests.items())
        found = self._columns.get(key)
        if found is None:
            if len(self._columns) > _KEPT:
                self._columns.clear()
            columns = self._nodes.resource_columns_of(requests)
            found = self._columns[key] = columns, np.array(list(requests.values()), dtype=np.int64)
        return found

    def row(self, requests: ResourceVector, requests_nonzero: tuple[int, int]) -> IntArray:
        """The same as a whole row of ``held``."""
        found = self._rows.get(id(requests))
        # A resource that is new to the table makes its rows longer.
        width = self._nodes.held.shape[1]
        if found is not None and found[0] is requests and found[1] == requests_nonzero and len(found[2]) == width:
            return found[2]
        if len(self._rows) > _ROWS_KEPT:
            self._rows.clear()
        columns, amounts = self.columns(requests)
        row = np.zeros(self._nodes.held.shape[1], dtype=np.int64)
        row[:NONZERO] = requests_nonzero
        row[NONZERO + columns] = amounts
        self._rows[id(requests)] = requests, requests_nonzero, row
        return row

    def take(self, requests: ResourceVector, requests_nonzero: tuple[int, int], row: int, pods: int) -> None:
        """So many pods with these requests came to a node, or (fewer than none) left it."""
        known, held = self._rows.get(id(requests)), self._nodes.held[row]
        # As ``row`` has it, without the call: all pods of a class ask for the same, and one comes after the other.
        if known is not None and known[0] is requests and known[1] == requests_nonzero and len(known[2]) == len(held):
            amounts = known[2]
        else:
            amounts = self.row(requests, requests_nonzero)
            # A resource that is new to the table makes another one of it.
            held = self._nodes.held[row]
        if pods == 1:
            held += amounts
        elif pods == -1:
            held -= amounts
        else:
            held += pods * amounts

    def take_on_rows(
        self, requests: ResourceVector, requests_nonzero: tuple[int, int], pods_on_rows: Mapping[int, int]
    ) -> None:
        """The same on several nodes; the pods of each are given by its row."""
        amounts, nodes = self.row(requests, requests_nonzero), self._nodes
        rows = np.fromiter(pods_on_rows, dtype=np.intp, count=len(pods_on_rows))
        pods = np.fromiter(pods_on_rows.values(), dtype=np.int64, count=len(pods_on_rows))[:, np.newaxis]
        nodes.held[rows] = nodes.held.take(rows, axis=0) + pods * amounts


def times_in(left: IntArray, amounts: IntArray) -> IntArray:
    """How often amounts are in what is left; what asks for nothing is in it any number of times."""
    times: IntArray = np.where(amounts > 0, left // np.maximum(amounts, 1), np.iinfo(np.int64).max)
    return times
