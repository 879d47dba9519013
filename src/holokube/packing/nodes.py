"""Nodes as rows of integer arrays, with columns for labels, taints and resources.

The table knows what nodes are; what pods do to them is in :mod:`holokube.packing.state`. Rows of removed nodes
are used again, last in first out, so that undoing a removal brings a node back to its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from holokube.kube import resources
from holokube.kube.affinity import NodeSelector, NodeSelectorTerm, RequiredNodeAffinity
from holokube.kube.resources import ResourceVector
from holokube.kube.selectors import LabelSelector
from holokube.kube.taints import Taint, Toleration, count_untolerated_preferences, find_untolerated, taints_of
from holokube.kube.types import JsonObject
from holokube.packing.arrays import BoolArray, IdArray, IntArray, RowArray, Rows, grown, true_for
from holokube.packing.errors import PackingError
from holokube.packing.images import ImageTable
from holokube.packing.labels import LabelColumn

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
"""The columns that every state has; others follow in the order they were first seen."""
FIXED_RESOURCES: Final = (resources.CPU, resources.MEMORY, resources.EPHEMERAL_STORAGE, resources.PODS)
NONZERO: Final = 2
"""How many columns come before these in the table of what pods take: cpu and memory as scores see them."""

# Sums of amounts must stay within 64 bits. A thousandth of a byte as the unit leaves room for a pebibyte.
_LARGEST_MILLI: Final = 2**60 // 1000 * 1000
_EMPTY: Final[Mapping[str, Any]] = {}


def scheduled_amounts(vector: Mapping[str, int]) -> ResourceVector:
    """The amounts that the scheduler looks at, rounded up to whole units for everything but cpu.

    Upstream knows cpu, memory, ephemeral storage, huge pages and everything with a domain in its name; other
    names, such as ``storage``, are not counted.
    """
    amounts: ResourceVector = {}
    for name, milli in vector.items():
        if name == resources.CPU:
            amounts[name] = min(milli, _LARGEST_MILLI)
        elif _is_counted(name):
            amounts[name] = min(-(-milli // 1000) * 1000, _LARGEST_MILLI)
    return amounts


def _is_counted(name: str) -> bool:
    if name in FIXED_RESOURCES:
        return True
    if name.startswith((resources.HUGEPAGES_PREFIX, "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return resources.is_extended_resource(name)


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels of any object."""
    return (obj.get("metadata") or _EMPTY).get("labels") or _EMPTY


def allocatable_of(node: Mapping[str, Any]) -> ResourceVector:
    """What a Node offers to pods."""
    return scheduled_amounts(resources.parse_resources((node.get("status") or _EMPTY).get("allocatable")))


def is_same_to_pods(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two states of a Node mean the same to the filters; heartbeats do."""
    if labels_of(old) != labels_of(new):
        return False
    old_spec, new_spec = old.get("spec") or _EMPTY, new.get("spec") or _EMPTY
    if bool(old_spec.get("unschedulable")) != bool(new_spec.get("unschedulable")):
        return False
    if old_spec.get("taints") != new_spec.get("taints") and taints_of(old) != taints_of(new):
        return False
    before, after = old.get("status") or _EMPTY, new.get("status") or _EMPTY
    return bool(before.get("allocatable") == after.get("allocatable"))


class NodeTable:
    """All nodes of a cluster."""

    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        """How many rows the arrays have; more than there are nodes."""
        self.version = 0
        """Moves with every change that a filter could see."""
        self.row_of: dict[str, int] = {}
        self.names: list[str] = []
        """By row; empty for a row without a node."""
        self.objects: list[JsonObject] = []
        self.present: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.unschedulable: BoolArray = np.zeros(capacity, dtype=np.bool_)
        self.taint_ids: IdArray = np.zeros(capacity, dtype=np.intp)
        self.allocatable: IntArray = np.zeros((capacity, len(FIXED_RESOURCES)), dtype=np.int64)
        self.held: IntArray = np.zeros((capacity, NONZERO + len(FIXED_RESOURCES)), dtype=np.int64)
        """What pods take of each row: ``used_nonzero``, then ``used``, side by side, so that both change at once."""
        self.used_nonzero: IntArray = self.held[:, :NONZERO]
        """Cpu and memory with the scheduler's assumptions for containers that request none; for scores."""
        self.used: IntArray = self.held[:, NONZERO:]
        self.row_numbers: RowArray = np.arange(capacity)
        self.resource_columns: dict[str, int] = {name: i for i, name in enumerate(FIXED_RESOURCES)}
        self.columns: dict[str, LabelColumn] = {}
        self.images = ImageTable()
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_numbers: dict[tuple[Taint, ...], int] = {(): 0}
        self._taint_tables: dict[tuple[Toleration, ...], BoolArray] = {}
        self._preference_tables: dict[tuple[Toleration, ...], IntArray] = {}
        self._free_rows: list[int] = []

    def row(self, name: str) -> int:
        """The row of a node; :class:`PackingError` if there is none."""
        row = self.row_of.get(name)
        if row is None:
            raise PackingError(f'there is no node "{name}" in the state', hint="Add it with add_node first.")
        return row

    def insert(self, name: str) -> int:
        """A row for a new node, still without content."""
        if self._free_rows:
            row = self._free_rows.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            if row == self.capacity:
                self._grow(self.capacity * 2)
            self.names.append(name)
            self.objects.append({})
        self.row_of[name] = row
        self.present[row] = True
        return row

    def write(self, row: int, node: JsonObject) -> None:
        """Bring a row up to what a Node object says."""
        before, after = self.objects[row].get("status") or _EMPTY, node.get("status") or _EMPTY
        # Most changes are of labels and taints. Amounts that cannot be read leave the row as it was.
        amounts = None if before.get("allocatable") == after.get("allocatable") else allocatable_of(node)
        self.replace(row, node)
        labels = labels_of(node)
        for key, column in self.columns.items():
            column.set(row, labels.get(key))
        self.unschedulable[row] = bool((node.get("spec") or _EMPTY).get("unschedulable"))
        self.taint_ids[row] = self._taint_number(taints_of(node))
        if amounts is not None:
            self.allocatable[row] = 0
            for name, milli in amounts.items():
                column_number = self.resource_column(name)
                self.allocatable[row, column_number] = milli
        self.version += 1

    def replace(self, row: int, node: JsonObject) -> None:
        """Note a new state of a Node that means the same to the filters."""
        self.objects[row] = node
        self.images.set(row, (node.get("status") or _EMPTY).get("images") or ())

    def erase(self, row: int) -> None:
        """Give a row back."""
        self.write(row, {})
        self.present[row] = False
        del self.row_of[self.names[row]]
        self.names[row] = ""
        self._free_rows.append(row)

    def resource_column(self, name: str) -> int:
        """The column of a resource, made if it is new."""
        number = self.resource_columns.get(name)
        if number is None:
            number = self.resource_columns[name] = len(self.resource_columns)
            wider = ((0, 0), (0, 1))
            self.allocatable = np.pad(self.allocatable, wider)
            self._hold(np.pad(self.held, wider))
        return number

    def resource_columns_of(self, names: Iterable[str]) -> RowArray:
        """The columns of several resources."""
        return np.array([self.resource_column(name) for name in names], dtype=np.intp)

    def column(self, key: str) -> LabelColumn:
        """The column of a label, filled in when it is first asked for."""
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = LabelColumn(key, self.capacity)
            for row, node in enumerate(self.objects):
                value = labels_of(node).get(key)
                if value is not None:
                    column.set(row, value)
        return column

    def _taint_number(self, taints: tuple[Taint, ...]) -> int:
        number = self._taint_numbers.get(taints)
        if number is None:
            number = self._taint_numbers[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return number

    def _grow(self, capacity: int) -> None:
        self.capacity = capacity
        self.present = grown(self.present, capacity)
        self.unschedulable = grown(self.unschedulable, capacity)
        self.taint_ids = grown(self.taint_ids, capacity)
        self.allocatable = grown(self.allocatable, capacity)
        self._hold(grown(self.held, capacity))
        self.row_numbers = np.arange(capacity)
        for column in self.columns.values():
            column.grow(capacity)

    def _hold(self, held: IntArray) -> None:
        """Another table of what pods take, with all that the one before had."""
        self.held, self.used_nonzero, self.used = held, held[:, :NONZERO], held[:, NONZERO:]

    # What follows answers for many rows at once.

    def tolerated(self, tolerations: tuple[Toleration, ...], rows: Rows) -> BoolArray:
        """Where no taint keeps a pod with these tolerations away."""
        table = self._taint_tables.get(tolerations)
        known = 0 if table is None else len(table)
        if table is None or known < len(self.taint_sets):
            table = grown(np.zeros(0, dtype=np.bool_) if table is None else table, len(self.taint_sets))
            for number in range(known, len(table)):
                table[number] = find_untolerated(self.taint_sets[number], tolerations) is None
            self._taint_tables[tolerations] = table
        return table[self.taint_ids[rows]]

    def discouraging_taints(self, tolerations: tuple[Toleration, ...], rows: Rows) -> IntArray:
        """How many taints would rather not have a pod with these tolerations (``PreferNoSchedule``)."""
        table = self._preference_tables.get(tolerations)
        known = 0 if table is None else len(table)
        if table is None or known < len(self.taint_sets):
            # Taints with a time in them make a new set for every node that gets one.
            table = grown(np.zeros(0, dtype=np.int64) if table is None else table, len(self.taint_sets))
            for number in range(known, len(table)):
                table[number] = count_untolerated_preferences(self.taint_sets[number], tolerations)
            self._preference_tables[tolerations] = table
        return table[self.taint_ids[rows]]

    def selected(self, selector: LabelSelector, rows: Rows) -> BoolArray:
        """Where the labels match."""
        mask = true_for(rows, self.capacity)
        if selector.matches_nothing:
            mask[:] = False
        for requirement in selector.requirements:
            column = self.column(requirement.key)
            mask &= column.table(requirement)[column.ids[rows]]
        return mask

    def has_label(self, key: str, rows: Rows) -> BoolArray:
        """Where the label exists."""
        return self.column(key).ids[rows] > 0

    def any_term(self, selector: NodeSelector, rows: Rows, *, by_name: bool = True) -> BoolArray:
        """Where one of the terms matches; ``by_name=False`` leaves ``matchFields`` out, as volumes do."""
        mask = ~true_for(rows, self.capacity)
        for term in selector.terms:
            mask |= self.term(term, rows, by_name=by_name)
        return mask

    def term(self, term: NodeSelectorTerm, rows: Rows, *, by_name: bool = True) -> BoolArray:
        """Where one term matches; a malformed one does nowhere."""
        if term.errors:
            return ~true_for(rows, self.capacity)
        mask = self.selected(term.labels, rows)
        if by_name:
            for condition in term.fields:
                if condition.field == "metadata.name":
                    named = self.row_numbers[rows] == self.row_of.get(condition.value, -1)
                    mask &= ~named if condition.negated else named
                elif not condition.matches(""):
                    mask[:] = False
        return mask

    def wanted(self, affinity: RequiredNodeAffinity, rows: Rows) -> BoolArray:
        """Where a pod's node selector and required node affinity are fulfilled."""
        mask = self.selected(affinity.node_selector, rows)
        if affinity.affinity is not None:
            mask &= self.any_term(affinity.affinity, rows)
        return mask
