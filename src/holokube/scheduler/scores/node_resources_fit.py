"""NodeResourcesFit: the emptier a node, the better; or, by the strategy MostAllocated, the fuller."""

from __future__ import annotations

import numpy as np

from holokube.kube.resources import CPU, MEMORY
from holokube.packing.arrays import IntArray
from holokube.packing.nodes import CPU as CPU_COLUMN
from holokube.packing.nodes import MEMORY as MEMORY_COLUMN
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile
from holokube.scheduler.scores.protocol import Question

_NONZERO_COLUMNS = {CPU: CPU_COLUMN, MEMORY: MEMORY_COLUMN}


def in_units(name: str, milli: IntArray) -> IntArray:
    """Amounts in the units in which upstream counts: cpu in thousandths, everything else in wholes."""
    return milli if name == CPU else milli // 1000


class NodeResourcesFit:
    """See the module.

    Containers that request no cpu or memory are assumed to need a little. Requests of the pod as a whole
    (``spec.resources``) count for pods that are there, but not for the one that is scored, as upstream has it.
    """

    name = "NodeResourcesFit"

    def weight(self, profile: ScoreProfile) -> int:
        """See :class:`Score`."""
        return profile.node_resources_fit

    def points(self, question: Question) -> IntArray:
        """The mean share that would be left of each resource, or be in use, of 100."""
        packs = question.profile.fit_strategy == "MostAllocated"
        total = np.zeros(len(question.rows), dtype=np.int64)
        weights = np.zeros_like(total)
        for name, weight in question.profile.fit_resources:
            wanted, used = _demand(question, name)
            if not wanted and name not in _NONZERO_COLUMNS and name != "ephemeral-storage":
                continue
            allocatable = in_units(name, question.state.allocatable(name)[question.rows])
            used_then = np.minimum(used + wanted, allocatable)
            counts = allocatable > 0
            share = (used_then if packs else allocatable - used_then) * MAX_SCORE // np.where(counts, allocatable, 1)
            total += np.where(counts, share * weight, 0)
            weights += np.where(counts, weight, 0)
        points: IntArray = total // np.maximum(weights, 1)
        return points


def _demand(question: Question, name: str) -> tuple[int, IntArray]:
    """What the pod wants of a resource, and what is taken of it on each row."""
    nodes, cls = question.state.nodes, question.cls
    column = _NONZERO_COLUMNS.get(name)
    if column is not None:
        wanted = np.array([cls.requests_scored[column]], dtype=np.int64)
        used = nodes.used_nonzero[question.rows, column]
    else:
        wanted = np.array([cls.requests.get(name, 0)], dtype=np.int64)
        used = question.state.used(name)[question.rows]
    return int(in_units(name, wanted)[0]), in_units(name, used)
