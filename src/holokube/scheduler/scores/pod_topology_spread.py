"""PodTopologySpread: better where fewer pods of the same kind are, by ``ScheduleAnyway`` constraints."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from holokube.kube.requirements import HOSTNAME_LABEL
from holokube.kube.selectors import LabelSelector
from holokube.packing.arrays import BoolArray, IntArray, RowArray
from holokube.packing.counters import Counter, SpreadMatcher, Tally
from holokube.packing.nodes import NodeTable
from holokube.packing.podclass import SpreadConstraint
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile
from holokube.scheduler.scores.protocol import Question

_NO_KEYS: Final[frozenset[str]] = frozenset()
_KEPT: Final = 256
_TABLE_SIZE: Final = 512
_TABLES_KEPT: Final = 512
# As an array it need not be made one each time.
_HALF: Final = np.array(0.5)


class PodTopologySpread:
    """See the module.

    A pod without constraints of its own gets the profile's default ones if a service or an owner selects it.
    """

    name = "PodTopologySpread"

    def weight(self, profile: ScoreProfile) -> int:
        """See :class:`Score`."""
        return profile.pod_topology_spread

    def points(self, question: Question) -> IntArray | None:
        """100 where the fewest pods are; nodes without the labels of all constraints get nothing."""
        return self.weighted_points(question, 1)

    def weighted_points(self, question: Question, weight: int) -> IntArray | None:
        """The same times a weight."""
        if question.default_selector is None and not question.cls.wishes.spread:
            return None
        spread = _spread(question)
        if spread is None or not len(question.rows):
            return None
        ground = spread.ground
        if ground is None or not ground.is_under(question):
            ground = _ground(question, spread)
        rounded = _rounded(_crowding(question, spread, ground))
        counts = ground.counts
        if counts is None:
            # To find where the largest is, and then look, is several times faster than to ask for it.
            most, least = rounded.item(rounded.argmax()), rounded.item(rounded.argmin())
            if most == 0:
                return np.full(len(rounded), MAX_SCORE * weight, dtype=np.int64)
            points: IntArray
            if most < _TABLE_SIZE:
                points = _points_table(most, least, weight)[rounded]
            else:
                points = MAX_SCORE * (most + least - rounded) // most * weight
            return points
        rounded = np.where(counts, rounded, 0)
        most = int(rounded[counts].max(initial=0))
        if most == 0:
            return np.where(counts, MAX_SCORE * weight, 0).astype(np.int64)
        least = int(rounded[counts].min())
        return np.where(counts, MAX_SCORE * (most + least - rounded) // most * weight, 0)


@dataclass(slots=True)
class _Spread:
    """By what constraints a pod is spread, which pods they count, and who counts them."""

    selector: LabelSelector | None
    """Held, so that no other selector can come to lie in its place."""
    constraints: tuple[SpreadConstraint, ...]
    keys: frozenset[str]
    """The labels that a node must have to count."""
    topology: tuple[tuple[str, int], ...]
    """The label of each constraint, and how uneven pods may be over it."""
    matchers: tuple[SpreadMatcher, ...]
    counted: list[Tally | Counter | None]
    """For each constraint, if it was asked before."""
    ground: _Ground | None = None
    """Where it was asked for last."""


@dataclass(frozen=True, slots=True)
class _Domains:
    """The domains of one label on certain rows."""

    ids: RowArray | None
    """The domain of each row; None for host names, of which every row is one."""
    has_label: BoolArray | None
    """Which rows are in a domain at all; None if all are."""
    weight: float
    """The more domains there are, the more a pod weighs."""
    max_skew: int
    weights: NDArray[np.float64]
    """What so many pods make of a domain. Few numbers of pods occur, so they are looked up, which is quicker."""


@dataclass(frozen=True, slots=True)
class _Ground:
    """What of the score depends on nodes alone: the same for all pods that are spread alike over the same labels."""

    rows: RowArray
    nodes_at: int
    counts: BoolArray | None
    """Which rows have the labels of all constraints; None if all have."""
    domains: tuple[_Domains, ...]

    def is_under(self, question: Question) -> bool:
        """Whether nodes, and the choice of feasible ones, are the same still."""
        return self.rows is question.rows and self.nodes_at == question.state.node_journal.end


def _spread(question: Question) -> _Spread | None:
    """Remembered for a class and a selector: pods of one class may have owners that select different ones."""
    memory, selector = question.memory, question.default_selector
    key = question.cls, id(selector)
    known: _Spread | None = memory.get(key) if memory is not None else None
    if known is not None and known.selector is selector:
        return known
    constraints, is_default = _constraints(question)
    if not constraints:
        return None
    topology = tuple((constraint.topology_key, constraint.max_skew) for constraint in constraints)
    matchers = tuple(SpreadMatcher(question.cls.namespace, constraint.selector) for constraint in constraints)
    # System defaults spread over host names even where nodes have no zone.
    keys = _NO_KEYS if is_default else frozenset(label for label, _ in topology)
    made = _Spread(selector, constraints, keys, topology, matchers, [None] * len(constraints))
    _remember(memory, key, made)
    return made


def _ground(question: Question, spread: _Spread) -> _Ground:
    """Remembered as long as nodes, and the choice of feasible ones, stay the same."""
    memory, nodes_at, rows = question.memory, question.state.node_journal.end, question.rows
    key = spread.keys, spread.topology
    known: _Ground | None = memory.get(key) if memory is not None else None
    if known is not None and known.is_under(question):
        spread.ground = known
        return known
    counts: BoolArray | None = None
    for label in sorted(spread.keys):
        has_label = _has_label(question.state.nodes, label, rows)
        if has_label is not None:
            counts = has_label if counts is None else counts & has_label
    nodes = question.state.nodes
    domains = tuple(_domains(nodes, label, max_skew, rows, counts) for label, max_skew in spread.topology)
    made = spread.ground = _Ground(rows, nodes_at, counts, domains)
    _remember(memory, key, made)
    return made


def _remember(memory: dict[Hashable, Any] | None, key: Hashable, made: _Spread | _Ground) -> None:
    if memory is not None:
        if len(memory) >= _KEPT:
            memory.clear()
        memory[key] = made


def _domains(nodes: NodeTable, label: str, max_skew: int, rows: RowArray, counts: BoolArray | None) -> _Domains:
    has_label = _has_label(nodes, label, rows)
    if label == HOSTNAME_LABEL:
        weight = math.log((len(rows) if counts is None else int(counts.sum())) + 2)
        return _Domains(None, has_label, weight, max_skew, _weights_table(weight, max_skew))
    column = nodes.column(label)
    ids = column.ids[rows]
    present = np.bincount(ids if counts is None else ids[counts], minlength=len(column))
    size, empty = int(np.count_nonzero(present)), column.number_of("")
    if empty and present[empty] and present[0]:
        # A node without the label is in a domain of its own here, the same as one whose label is empty.
        size -= 1
    weight = math.log(size + 2)
    return _Domains(ids, has_label, weight, max_skew, _weights_table(weight, max_skew))


def _has_label(nodes: NodeTable, label: str, rows: RowArray) -> BoolArray | None:
    """Which rows have a label; None if all have."""
    column = nodes.column(label)
    if column.labelled == len(nodes.row_of):
        return None
    has_label: BoolArray = column.ids[rows] > 0
    return None if has_label.all() else has_label


def _constraints(question: Question) -> tuple[tuple[SpreadConstraint, ...], bool]:
    """The constraints that count, and whether they are the profile's default ones."""
    if (question.pod.get("spec") or {}).get("topologySpreadConstraints"):
        return question.cls.wishes.spread, False
    selector = question.default_selector
    if selector is None or selector.is_empty:
        return (), True
    return tuple(
        SpreadConstraint(default.topology_key, default.max_skew, 1, selector, True, False)
        for default in question.profile.default_spread
    ), True


def _crowding(question: Question, spread: _Spread, ground: _Ground) -> NDArray[np.float64]:
    """How crowded the domains of each row are, over all constraints."""
    crowding: NDArray[np.float64] | None = None
    rows = ground.rows
    for number, domains in enumerate(ground.domains):
        has_label = domains.has_label
        if has_label is not None and not has_label.any():
            continue
        counted = spread.counted[number]
        if counted is None or not counted.users:
            # What nobody has acquired any more is not kept up to date.
            counted = spread.counted[number] = _counted(question, spread, number)
        found: NDArray[np.float64]
        if isinstance(counted, Counter):
            # Upstream counts the pods of the node itself, whatever the inclusion policies say.
            found = _weighed(counted.by_row(question.state.nodes.capacity)[rows], domains)
        else:
            assert domains.ids is not None, "only host names go without numbers"
            found = _weighed(counted.counts, domains)[domains.ids]
        if has_label is not None:
            found = np.where(has_label, found, 0.0)
        if crowding is None:
            crowding = found
        else:
            crowding += found
    return np.zeros(len(rows), dtype=np.float64) if crowding is None else crowding


def _counted(question: Question, spread: _Spread, number: int) -> Tally | Counter:
    state, cls, constraint = question.state, question.cls, spread.constraints[number]
    if constraint.topology_key == HOSTNAME_LABEL:
        return state.counter(cls, spread.matchers[number])
    return state.tally(
        cls, spread.matchers[number], constraint.topology_key, keys=spread.keys,
        affinity=cls.node_affinity if constraint.honor_affinity else None,
        tolerations=cls.tolerations if constraint.honor_taints else None,
    )  # fmt: skip


def _weighed(pods: IntArray, domains: _Domains) -> NDArray[np.float64]:
    """What so many pods make of a domain."""
    found: NDArray[np.float64]
    try:
        found = domains.weights[pods]
    except IndexError:
        found = np.multiply(pods, domains.weight, dtype=np.float64)
        found += float(domains.max_skew - 1)
    return found


@lru_cache(maxsize=_TABLES_KEPT)
def _weights_table(weight: float, max_skew: int) -> NDArray[np.float64]:
    table = np.multiply(np.arange(_TABLE_SIZE), weight, dtype=np.float64)
    table += float(max_skew - 1)
    return table


@lru_cache(maxsize=_TABLES_KEPT)
def _points_table(most: int, least: int, weight: int) -> IntArray:
    table: IntArray = MAX_SCORE * (most + least - np.arange(most + 1)) // most * weight
    return table


def _rounded(numbers: NDArray[np.float64]) -> IntArray:
    """To the nearest whole number, halves up; numpy's own rounding takes halves to the even one.

    None is negative, so that to cut off what is behind the point is to round down. To add a half and round down is
    exact but for the number just below a half, and no sum of pods comes near that: what is above zero is at least the
    logarithm of two.
    """
    numbers += _HALF
    return numbers.astype(np.int64)
