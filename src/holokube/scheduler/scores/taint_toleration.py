"""TaintToleration: better where fewer PreferNoSchedule taints would rather not have the pod."""

from __future__ import annotations

from holokube.packing.arrays import IntArray
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.scheduler.scores.protocol import Question, scaled_to_most


class TaintToleration:
    """See the module."""

    name = "TaintToleration"

    def weight(self, profile: ScoreProfile) -> int:
        """See :class:`Score`."""
        return profile.taint_toleration

    def points(self, question: Question) -> IntArray:
        """100 without such taints, 0 for the node with the most of them."""
        taints = question.state.nodes.discouraging_taints(question.cls.tolerations, question.rows)
        return scaled_to_most(taints, reverse=True)
