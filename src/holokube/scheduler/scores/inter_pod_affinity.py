"""InterPodAffinity: near pods that are liked, away from those that are not, seen from both sides."""

from __future__ import annotations

import numpy as np

from holokube.packing.arrays import IntArray
from holokube.packing.counters import AffinityMatcher, Tally
from holokube.packing.nodes import labels_of
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile
from holokube.scheduler.scores.protocol import Question


class InterPodAffinity:
    """See the module.

    What counts: preferred terms of the pod about pods that are there, preferred terms of those about the pod,
    and required affinity of those that means the pod.
    """

    name = "InterPodAffinity"

    def weight(self, profile: ScoreProfile) -> int:
        """See :class:`Score`."""
        return profile.inter_pod_affinity

    def points(self, question: Question) -> IntArray | None:
        """The sums of weights, stretched over 0 to 100."""
        wishes = question.cls.wishes
        if not (wishes.affinity or wishes.anti_affinity or question.state.counters.has_pulls):
            return None
        sums = np.zeros(len(question.rows), dtype=np.int64)
        found = self._add_wishes_of_pod(question, sums) | self._add_pulls_of_others(question, sums)
        if not found or not len(sums):
            return None
        least, most = int(sums.min()), int(sums.max())
        if least == most:
            return np.zeros_like(sums)
        shares = (sums - least).astype(np.float64) / float(most - least)
        points: IntArray = (MAX_SCORE * shares).astype(np.int64)
        return points

    @staticmethod
    def _add_wishes_of_pod(question: Question, sums: IntArray) -> bool:
        found = False
        wishes = question.cls.wishes
        for terms, sign in ((wishes.affinity, 1), (wishes.anti_affinity, -1)):
            for term in terms:
                tally = question.state.tally(question.cls, AffinityMatcher((term,)), term.topology_key)
                found |= _add(question, sums, tally, sign * term.weight)
        return found

    @staticmethod
    def _add_pulls_of_others(question: Question, sums: IntArray) -> bool:
        found = False
        labels, hard = labels_of(question.pod), question.profile.hard_pod_affinity_weight
        for term, sign, tally in question.state.counters.pulls_on(question.cls.namespace, labels):
            weight = term.weight or hard
            if weight:
                found |= _add(question, sums, tally, sign * weight)
        return found


def _add(question: Question, sums: IntArray, tally: Tally, weight: int) -> bool:
    """Add what a term is worth in each row's domain; whether there is anybody in any domain."""
    if not tally.counts.any():
        return False
    sums += weight * tally.counts[tally.column.ids[question.rows]]
    return True
