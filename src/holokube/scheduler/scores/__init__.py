"""How good each of the feasible nodes is for a pod: upstream's default scores, one file each.

All work on whole arrays of nodes. ``profile.py`` has the weights, ``protocol.py`` says what a score is.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, PodClass
from holokube.packing.arrays import IntArray, RowArray
from holokube.scheduler.scores.balanced_allocation import BalancedAllocation
from holokube.scheduler.scores.image_locality import ImageLocality
from holokube.scheduler.scores.inter_pod_affinity import InterPodAffinity
from holokube.scheduler.scores.node_affinity import NodeAffinity
from holokube.scheduler.scores.node_resources_fit import NodeResourcesFit
from holokube.scheduler.scores.pod_topology_spread import PodTopologySpread
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.scheduler.scores.protocol import Question, Score
from holokube.scheduler.scores.spread_selector import spread_selector
from holokube.scheduler.scores.taint_toleration import TaintToleration

__all__ = ["DEFAULT_SCORES", "ScoreProfile", "plugin_scores", "spread_selector", "total_scores"]

DEFAULT_SCORES: Final[tuple[Score, ...]] = (
    TaintToleration(),
    NodeAffinity(),
    NodeResourcesFit(),
    PodTopologySpread(),
    InterPodAffinity(),
    BalancedAllocation(),
    ImageLocality(),
)


def total_scores(
    state: ClusterState,
    cls: PodClass,
    pod: JsonObject,
    rows: RowArray,
    profile: ScoreProfile,
    *,
    default_selector: LabelSelector | None = None,
    memory: dict[Hashable, Any] | None = None,
) -> IntArray:
    """The weighted sum of all scores for each of ``rows``, which are the nodes that passed all filters.

    ``default_selector`` is what :func:`spread_selector` found for the pod; without it, pods without spread
    constraints of their own are not spread.
    """
    total = np.zeros(len(rows), dtype=np.int64)
    found = plugin_scores(state, cls, pod, rows, profile, default_selector=default_selector, memory=memory)
    for points in found.values():
        total += points
    return total


def plugin_scores(
    state: ClusterState,
    cls: PodClass,
    pod: JsonObject,
    rows: RowArray,
    profile: ScoreProfile,
    *,
    default_selector: LabelSelector | None = None,
    memory: dict[Hashable, Any] | None = None,
) -> dict[str, IntArray]:
    """The weighted points of each score that has something to say, by the name of upstream's plugin."""
    question = Question(state, cls, pod, rows, profile, default_selector, memory)
    found = {}
    for score in DEFAULT_SCORES:
        weight = score.weight(profile)
        if weight:
            points = score.points(question)
            if points is not None:
                found[score.name] = points * weight
    return found
