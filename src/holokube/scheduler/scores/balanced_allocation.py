"""NodeResourcesBalancedAllocation: better where the pod evens out the use of cpu and memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from holokube.packing.arrays import BoolArray, IntArray
from holokube.scheduler.scores.node_resources_fit import in_units
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile
from holokube.scheduler.scores.protocol import Question

_ALWAYS = (CPU, MEMORY, EPHEMERAL_STORAGE)


class BalancedAllocation:
    """See the module. The balance after is compared with the balance before."""

    name = "NodeResourcesBalancedAllocation"

    def weight(self, profile: ScoreProfile) -> int:
        """See :class:`Score`."""
        return profile.node_resources_balanced_allocation

    def points(self, question: Question) -> IntArray | None:
        """About 75 if little changes, up to 100 if the balance gets better, down to 50 if worse."""
        names = question.profile.balanced_resources
        requests = question.cls.requests
        # A pod that requests nothing changes no balance; upstream has no opinion then.
        if not any(requests.get(name) for name in names):
            return None
        known, before, after = [], [], []
        for name in names:
            wanted = requests.get(name, 0)
            if not wanted and name not in _ALWAYS:
                continue
            allocatable = in_units(name, question.state.allocatable(name)[question.rows])
            used = in_units(name, question.state.used(name)[question.rows])
            more = int(in_units(name, np.array([wanted], dtype=np.int64))[0])
            known.append(allocatable > 0)
            divisor = np.where(allocatable > 0, allocatable, 1).astype(np.float64)
            before.append(np.minimum(used.astype(np.float64) / divisor, 1.0))
            after.append(np.minimum((used + more).astype(np.float64) / divisor, 1.0))
        half = MAX_SCORE // 2
        points: IntArray = half + (half + _balance(after, known) - _balance(before, known)) // 2
        return points


def _balance(fractions: list[NDArray[np.float64]], known: list[BoolArray]) -> IntArray:
    """One minus the standard deviation of the fractions that a node knows, of 100, rounded down."""
    if len(fractions) == 2:
        deviation = np.where(known[0] & known[1], np.abs(fractions[0] - fractions[1]) / 2, 0.0)
    else:
        deviation = _deviation(np.array(fractions), np.array(known))
    points: IntArray = ((1.0 - deviation) * MAX_SCORE).astype(np.int64)
    return points


def _deviation(fractions: NDArray[np.float64], known: BoolArray) -> NDArray[np.float64]:
    """The standard deviation down each column of what is known there."""
    shares = np.where(known, fractions, 0.0)
    counts = np.maximum(known.sum(axis=0), 1)
    squares = np.where(known, (shares - shares.sum(axis=0) / counts) ** 2, 0.0).sum(axis=0)
    deviation = np.sqrt(squares / counts)
    # Of two, upstream takes half the distance, which is the same but for the last bit.
    distance = np.where(known, fractions, -np.inf).max(axis=0) - np.where(known, fractions, np.inf).min(axis=0)
    result: NDArray[np.float64] = np.where(counts == 2, distance / 2, deviation)
    return result
