"""PodTopologySpread: better where fewer pods of the same kind are, by ``ScheduleAnyway`` constraints."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from holokube.kube.requirements import HOSTNAME_LABEL
from holokube.packing.arrays import BoolArray, IntArray
from holokube.packing.counters import SpreadMatcher
from holokube.packing.podclass import SpreadConstraint
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile
from holokube.scheduler.scores.protocol import Question

_NO_KEYS: Final[frozenset[str]] = frozenset()


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
        constraints, is_default = _constraints(question)
        if not constraints or not len(question.rows):
            return None
        # System defaults spread over host names even where nodes have no zone.
        keys = _NO_KEYS if is_default else frozenset(c.topology_key for c in constraints)
        counts = np.ones(len(question.rows), dtype=np.bool_)
        for key in keys:
            counts &= question.state.nodes.has_label(key, question.rows)
        crowding = np.zeros(len(question.rows), dtype=np.float64)
        for constraint in constraints:
            crowding += _crowding(question, constraint, keys, counts)
        rounded = np.where(counts, _rounded(crowding), 0)
        most = int(rounded[counts].max(initial=0))
        if most == 0:
            return np.where(counts, MAX_SCORE, 0).astype(np.int64)
        least = int(rounded[counts].min())
        return np.where(counts, MAX_SCORE * (most + least - rounded) // most, 0)


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


def _crowding(
    question: Question, constraint: SpreadConstraint, keys: frozenset[str], counts: BoolArray
) -> NDArray[np.float64]:
    """How crowded each row's domain is; the more domains there are, the more a pod weighs."""
    state, cls, rows = question.state, question.cls, question.rows
    matcher = SpreadMatcher(cls.namespace, constraint.selector)
    column = state.nodes.column(constraint.topology_key)
    domains = column.ids[rows]
    if constraint.topology_key == HOSTNAME_LABEL:
        # Upstream counts the pods of the node itself, whatever the inclusion policies say.
        per_row = state.pods_per_row(cls, matcher)[rows]
        size = int(counts.sum())
    else:
        tally = state.tally(
            cls, matcher, constraint.topology_key, keys=keys,
            affinity=cls.node_affinity if constraint.honor_affinity else None,
            tolerations=cls.tolerations if constraint.honor_taints else None,
        )  # fmt: skip
        per_row = tally.counts[domains]
        # A node without the label is in a domain of its own here, the same as one whose label is empty.
        values = np.where(domains == column.number_of(""), 0, domains)
        size = int(np.count_nonzero(np.bincount(values[counts])))
    crowding = per_row.astype(np.float64) * math.log(size + 2) + float(constraint.max_skew - 1)
    return np.where(domains > 0, crowding, 0.0)


def _rounded(numbers: NDArray[np.float64]) -> IntArray:
    """To the nearest whole number, halves up; numpy's own rounding takes halves to the even one."""
    whole = np.floor(numbers)
    rounded: IntArray = (whole + (numbers - whole >= 0.5)).astype(np.int64)
    return rounded
