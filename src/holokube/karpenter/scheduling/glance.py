"""What groundwork of an earlier moment still tells: how many pods could be moved at most, with nodes as they are now.

Most passes of consolidation find that there is no room. That takes a sum over all nodes, in which those that are others
now are counted one by one; neither pods that wait have to be looked at nor arrays to be made.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from holokube.karpenter.api.labels import CONSOLIDATABLE
from holokube.karpenter.scheduling.existing_nodes import NodeTable
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.headroom import Need, Sizes, count_sizes, fit_on_one_new
from holokube.karpenter.scheduling.node_list import since
from holokube.karpenter.scheduling.pod_forms import FormBook, PodForm
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.type_table import IntArray

_CHANGED_MAX: Final = 64
"""Where more nodes are others now, arrays are the quicker way."""
_SOONER_S: Final = 0.001
"""Nodes are counted so long before they have settled: sums of times are not exact."""


class Glances:
    """The nodes of a table, and how they have changed since it was made."""

    def __init__(
        self,
        base: Groundwork,
        table: NodeTable,
        nodes: Sequence[StateNode],
        is_like_known: Callable[[StateNode], bool],
    ) -> None:
        """``nodes`` are those that the table was made of; others are of use as long as they are like them."""
        self.base = base
        self.table = table
        self.nodes = nodes
        """All of the moment that was followed last."""
        self._is_like_known = is_like_known
        self.changed: dict[StateNode, float] = {}
        """Nodes that are not in the table, and from when on pods that are moved may count on them."""
        self.gone: list[StateNode] = []
        """Nodes that are in the table, and are not there any more."""
        self.gone_rows: set[int] = set()
        """Their rows."""
        self._settled_s = table.settled_s[: table.up]
        """By row, of those that have come up: from when on pods that are moved may count on it; never if it is gone."""
        self._counted: tuple[float, float] = (math.inf, -math.inf)
        """From when on rows count as was found last, and until when: then the next one settles."""
        self._counts: IntArray = np.zeros(0, dtype=np.int64)
        """By row: one if it counts, else nothing."""
        self._sums: dict[PodForm, int] = {}
        """By size: how many pods would fit on rows that count."""
        self._unsettled: dict[StateNode, float] = {}
        """Changed nodes that do not count yet, and from when on they do."""
        self._next_s = math.inf
        """Until then none of them does."""
        self._rooms: dict[StateNode, list[int]] = {}
        """What is left on the others."""
        self._room_sums: dict[PodForm, int] = {}
        """By size: how many pods would fit there."""
        self._unlike: set[StateNode] = set()
        """Changed nodes that may be consolidated, and that are not like those of the table."""

    def follow(self, nodes: Sequence[StateNode]) -> bool:
        """Takes over what has changed; False if that cannot be told."""
        found = since(nodes, self.nodes)
        if found is None:
            return False
        self.nodes = nodes
        changed, gone = found
        for node in gone:
            if self.changed.pop(node, None) is None:
                self.gone.append(node)
                row = self.table.row(node)
                if row is not None:
                    self._leave(row)
            else:
                # It came and went in between.
                self._unlike.discard(node)
                if self._unsettled.pop(node, None) is None:
                    room = self._rooms.pop(node)
                    for size in self._room_sums:
                        self._room_sums[size] -= _fitting(room, size)
        for node in changed:
            settled_s = self.changed[node] = self._unsettled[node] = self.table.settled_from_s(node)
            if settled_s < self._next_s:
                self._next_s = settled_s
            if CONSOLIDATABLE in node.claim_states and not self._is_like_known(node):
                self._unlike.add(node)
        return True

    def at(self, now_s: float) -> Glance | None:
        """What can be told of this moment; None if arrays have to be made anew.

        Most nodes that are others now are neither counted nor candidates: their pods are not looked at.
        """
        if len(self.changed) > _CHANGED_MAX or self._unlike:
            return None
        until_s = now_s + _SOONER_S
        if self._next_s <= until_s and not self._count_settled(until_s):
            return None
        return Glance(self, until_s)

    def _count_settled(self, until_s: float) -> bool:
        """Counts changed nodes that have settled by then; False if one of them is not like those of the table.

        They count from then on, also for who asks about a moment before: numbers may be too large, never too small.
        """
        for node in [node for node, settled_s in self._unsettled.items() if settled_s <= until_s]:
            if not self._is_like_known(node):
                return False
            room = self._rooms[node] = self.table.room_on(node)
            del self._unsettled[node]
            for size in self._room_sums:
                self._room_sums[size] += _fitting(room, size)
        self._next_s = min(self._unsettled.values(), default=math.inf)
        return True

    def _leave(self, row: int) -> None:
        """The node of a row is not there any more."""
        self.gone_rows.add(row)
        if row >= self.table.up:
            return
        self._settled_s[row] = math.inf
        if len(self._counts) and self._counts.item(row):
            self._counts[row] = 0
            for size in self._sums:
                self._sums[size] -= self.table.capacity(size).item(row)

    def sum_of_rows(self, size: PodForm, until_s: float) -> int:
        """How many pods of a size would fit on nodes that have not changed, and that pods may count on by then.

        From one moment to the next it is nearly always the same, less what was on nodes that have gone.
        """
        since_s, next_s = self._counted
        if not since_s <= until_s < next_s:
            settled_s = self._settled_s
            count = settled_s <= until_s
            self._counted = until_s, float(settled_s[~count].min(initial=math.inf))
            self._counts, self._sums = count.astype(np.int64), {}
        found = self._sums.get(size)
        if found is None:
            found = self._sums[size] = int(self.table.capacity(size)[: self.table.up].dot(self._counts))
        return found

    def sum_of_rooms(self, size: PodForm) -> int:
        """How many pods of a size would fit on nodes that have changed, taints aside."""
        found = self._room_sums.get(size)
        if found is None:
            found = self._room_sums[size] = sum([_fitting(room, size) for room in self._rooms.values()])
        return found

    def on_node(self, size: PodForm, node: StateNode, until_s: float) -> int:
        """How many of the pods that fit on nodes which count by then would be on this one."""
        row = self.table.row(node)
        if row is None:
            room = self._rooms.get(node)
            return _fitting(room, size) if room is not None and self.changed[node] <= until_s else 0
        counts = row < self.table.up and self._settled_s.item(row) <= until_s
        return int(self.table.capacity(size).item(row)) if counts else 0


def _fitting(room: Sequence[int], size: PodForm) -> int:
    """How many pods of a size fit into what is left on a node."""
    return max(min([room[column] // milli for column, milli in size.amounts]), 0)


class Glance:
    """One moment. Numbers are never less than those of :class:`Headroom`."""

    def __init__(self, glances: Glances, until_s: float) -> None:
        self._glances = glances
        self._base = glances.base
        self._until_s = until_s
        self._sums: dict[PodForm, int] = {}
        self._nodes = glances.nodes

    @property
    def _is_over(self) -> bool:
        """Whether somebody has followed nodes to a later moment, so that nothing more can be told of this one."""
        return self._glances.nodes is not self._nodes

    @property
    def book(self) -> FormBook:
        """Whose forms can be asked about."""
        return self._base.forms

    def _moved_sum(self, size: PodForm) -> int:
        """How many pods of a size would fit that are moved for good, or more: taints of changed nodes do not count."""
        found = self._sums.get(size)
        if found is None:
            if self._is_over:
                return sys.maxsize
            glances = self._glances
            found = self._sums[size] = glances.sum_of_rows(size, self._until_s) + glances.sum_of_rooms(size)
        return found

    @property
    def are_all_up(self) -> bool:
        """Whether no node is on its way that pods may be counted on in vain."""
        table = self._glances.table
        if table.up < len(table) or self._is_over:
            return False
        return all(node.is_initialized or node.is_marked_for_deletion for node in self._glances.changed)

    def has(self, node: StateNode) -> bool:
        """Whether a node is there and stays, and has a name of its own."""
        if self._is_over:
            return False
        table = self._glances.table
        row = table.rows.get(node.name)
        if row is not None and table.nodes[row] is node:
            return row not in self._glances.gone_rows
        if node not in self._glances.changed or node.is_marked_for_deletion:
            return False
        return row is None or row in self._glances.gone_rows

    def fit_on_one_new(self, need: Need) -> bool:
        """Whether pods, and any part of them, would be counted onto one new node if no node that is there has room."""
        return self._base.has_plain_offers and fit_on_one_new(need, self._base)

    def is_hopeless(self, need: Need, sizes: Sizes, price: float, gone: Sequence[StateNode] = ()) -> bool:
        """Whether, for certain, the pods can neither be placed on other nodes, nor with one cheaper new one.

        Room on nodes that are ``gone`` then does not count.
        """
        for size, count in sizes:
            lost = self._lost(size, gone) if gone else 0
            if count > self._moved_sum(size) - lost + self._base.new_capacity(size, price):
                return True
        return self._cannot_take_rest(need, price, gone)

    def _cannot_take_rest(self, need: Need, price: float, gone: Sequence[StateNode]) -> bool:
        """The same of pods of several sizes, of which one new node would have to take all that other nodes cannot.

        However they are placed, at least so many of each size are left as are more than there is room for, if nobody
        else wanted any of it.
        """
        counts = count_sizes(need)
        if len(counts) < 2:
            # Of one size that is known already.
            return False
        left = [
            size.vector * over
            for size, count in counts.items()
            if (over := count - self._moved_sum(size) + self._lost(size, gone)) > 0
        ]
        return bool(left) and not self._base.takes_together(np.add.reduce(left), price)

    def _lost(self, size: PodForm, gone: Sequence[StateNode]) -> int:
        """How much of a sum is on nodes that go."""
        return sum([self._glances.on_node(size, node, self._until_s) for node in gone])

    def most(self, size: PodForm) -> int:
        """More pods of a size or larger cannot be moved together, for certain, whatever one new node may cost."""
        return self._moved_sum(size) + self._base.new_capacity(size, math.inf)
