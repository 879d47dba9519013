"""PodTopologySpread: better where fewer pods of the same kind are, by ``ScheduleAnyway`` constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holokube.kube.requirements import HOSTNAME_LABEL
from holokube.packing.arrays import BoolArray, IntArray, RowArray
from holokube.packing.counters import Counter, SpreadMatcher, Tally
from holokube.packing.podclass import SpreadConstraint
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile
from holokube.scheduler.scores.protocol import Question

_NO_KEYS: Final[frozenset[str]] = frozenset()
_KEPT: Final = 256


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
        plan = _plan(question)
        if plan is None:
            return None
        rounded = _rounded(plan.crowding(question))
        counts = plan.counts
        if counts is None:
            most = int(rounded.max())
            if most == 0:
                return np.full(len(rounded), MAX_SCORE, dtype=np.int64)
            points: IntArray = MAX_SCORE * (most + int(rounded.min()) - rounded) // most
            return points
        rounded = np.where(counts, rounded, 0)
        most = int(rounded[counts].max(initial=0))
        if most == 0:
            return np.where(counts, MAX_SCORE, 0).astype(np.int64)
        least = int(rounded[counts].min())
        return np.where(counts, MAX_SCORE * (most + least - rounded) // most, 0)


@dataclass(slots=True)
class _Domains:
    """One constraint on certain rows."""

    constraint: SpreadConstraint
    matcher: SpreadMatcher
    ids: RowArray
    """The domain of each row."""
    has_label: BoolArray | None
    """Which rows are in a domain at all; None if all are."""
    weight: float
    """The more domains there are, the more a pod weighs."""
    counted: Tally | Counter | None = None
    """Who counts the pods, if it was asked before."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What of the score depends on nodes alone."""

    rows: RowArray
    nodes_at: int
    keys: frozenset[str]
    counts: BoolArray | None
    """Which rows have the labels of all constraints; None if all have."""
    domains: tuple[_Domains, ...]

    def crowding(self, question: Question) -> NDArray[np.float64]:
        """How crowded each row is, over all constraints."""
        crowding: NDArray[np.float64] | None = None
        for each in self.domains:
            found = _crowding(question, each, self.keys)
            crowding = found if crowding is None else crowding + found
        return np.zeros(len(self.rows), dtype=np.float64) if crowding is None else crowding


def _plan(question: Question) -> _Plan | None:
    """Remembered for a class as long as nodes, and the choice of feasible ones, stay the same."""
    memory, nodes_at = question.memory, question.state.node_journal.end
    # Pods of one class may have owners that select different ones.
    key = question.cls, question.default_selector
    known: _Plan | None = memory.get(key) if memory is not None else None
    if known is not None and known.rows is question.rows and known.nodes_at == nodes_at:
        return known
    constraints, is_default = _constraints(question)
    if not constraints or not len(question.rows):
        return None
    plan = _made(question, constraints, nodes_at, is_default=is_default)
    if memory is not None:
        if len(memory) >= _KEPT:
            memory.clear()
        memory[key] = plan
    return plan


def _made(
    question: Question, constraints: tuple[SpreadConstraint, ...], nodes_at: int, *, is_default: bool
) -> _Plan:
    nodes, rows = question.state.nodes, question.rows
    # System defaults spread over host names even where nodes have no zone.
    keys = _NO_KEYS if is_default else frozenset(c.topology_key for c in constraints)
    counts = np.ones(len(rows), dtype=np.bool_)
    for key in sorted(keys):
        counts &= nodes.has_label(key, rows)
    domains = []
    for constraint in constraints:
        column = nodes.column(constraint.topology_key)
        ids = column.ids[rows]
        if constraint.topology_key == HOSTNAME_LABEL:
            size = int(counts.sum())
        else:
            # A node without the label is in a domain of its own here, the same as one whose label is empty.
            values = np.where(ids == column.number_of(""), 0, ids)
            size = int(np.count_nonzero(np.bincount(values[counts])))
        has_label = ids > 0
        matcher = SpreadMatcher(question.cls.namespace, constraint.selector)
        weight = math.log(size + 2)
        domains.append(_Domains(constraint, matcher, ids, None if has_label.all() else has_label, weight))
    return _Plan(rows, nodes_at, keys, None if counts.all() else counts, tuple(domains))


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


def _crowding(question: Question, domains: _Domains, keys: frozenset[str]) -> NDArray[np.float64]:
    """How crowded each row's domain is."""
    if domains.has_label is not None and not domains.has_label.any():
        return np.zeros(len(question.rows), dtype=np.float64)
    counted = domains.counted
    if counted is None or not counted.users:
        # What nobody has acquired any more is not kept up to date.
        counted = domains.counted = _counted(question, domains, keys)
    if isinstance(counted, Counter):
        # Upstream counts the pods of the node itself, whatever the inclusion policies say.
        per_row = counted.by_row(question.state.nodes.capacity)[question.rows]
    else:
        per_row = counted.counts[domains.ids]
    crowding: NDArray[np.float64] = np.multiply(per_row, domains.weight, dtype=np.float64)
    crowding += float(domains.constraint.max_skew - 1)
    return crowding if domains.has_label is None else np.where(domains.has_label, crowding, 0.0)


def _counted(question: Question, domains: _Domains, keys: frozenset[str]) -> Tally | Counter:
    state, cls, constraint = question.state, question.cls, domains.constraint
    if constraint.topology_key == HOSTNAME_LABEL:
        return state.counter(cls, domains.matcher)
    return state.tally(
        cls, domains.matcher, constraint.topology_key, keys=keys,
        affinity=cls.node_affinity if constraint.honor_affinity else None,
        tolerations=cls.tolerations if constraint.honor_taints else None,
    )  # fmt: skip


def _rounded(numbers: NDArray[np.float64]) -> IntArray:
    """To the nearest whole number, halves up; numpy's own rounding takes halves to the even one."""
    whole = np.floor(numbers)
    rounded: IntArray = (whole + (numbers - whole >= 0.5)).astype(np.int64)
    return rounded
