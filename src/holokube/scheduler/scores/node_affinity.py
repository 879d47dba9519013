"""NodeAffinity: better where more of the pod's preferred terms match."""

from __future__ import annotations

import numpy as np

from holokube.packing.arrays import IntArray
from holokube.scheduler.scores.profile import ScoreProfile
from holokube.scheduler.scores.protocol import Question, scaled_to_most


class NodeAffinity:
    """See the module."""

    name = "NodeAffinity"

    def weight(self, profile: ScoreProfile) -> int:
        """See :class:`Score`."""
        return profile.node_affinity

    def points(self, question: Question) -> IntArray | None:
        """The weights of the terms that match, as a share of the most that a node has."""
        wishes = question.cls.wishes.nodes.terms
        if not wishes:
            return None
        sums = np.zeros(len(question.rows), dtype=np.int64)
        for wish in wishes:
            sums += np.where(question.state.nodes.term(wish.term, question.rows), wish.weight, 0)
        return scaled_to_most(sums)
