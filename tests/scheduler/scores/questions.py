"""What tests of scores share: the points of each node by name."""

from __future__ import annotations

import numpy as np

from holokube.kube.selectors import LabelSelector
from holokube.packing import ClusterState
from holokube.scheduler.scores import ScoreProfile, plugin_scores, total_scores
from tests.builders import JsonObject


def points(
    state: ClusterState,
    pod: JsonObject,
    plugin: str,
    profile: ScoreProfile | None = None,
    *,
    default: LabelSelector | None = None,
) -> dict[str, int] | None:
    """The weighted points of one score for every node of the state; None if it has nothing to say."""
    names = sorted(state.node_names)
    rows = np.array([state.node_names[name] for name in names], dtype=np.intp)
    found = plugin_scores(
        state, state.class_of(pod), pod, rows, profile or ScoreProfile(), default_selector=default
    ).get(plugin)
    return None if found is None else dict(zip(names, found.tolist(), strict=True))


def totals(state: ClusterState, pod: JsonObject, profile: ScoreProfile | None = None) -> dict[str, int]:
    """The totals of every node of the state."""
    names = sorted(state.node_names)
    rows = np.array([state.node_names[name] for name in names], dtype=np.intp)
    found = total_scores(state, state.class_of(pod), pod, rows, profile or ScoreProfile())
    return dict(zip(names, found.tolist(), strict=True))
