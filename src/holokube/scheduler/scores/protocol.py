"""What a score is: an opinion about nodes that would all do."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, PodClass
from holokube.packing.arrays import IntArray, RowArray
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile


@dataclass(slots=True)
class Question:
    """Which of these nodes is how good for this pod."""

    state: ClusterState
    cls: PodClass
    pod: JsonObject
    rows: RowArray
    """The nodes that passed all filters."""
    profile: ScoreProfile
    default_selector: LabelSelector | None = None
    """What the services and the owner of the pod select pods by; see ``spread_selector``."""
    memory: dict[Hashable, Any] | None = None
    """Where a score may remember what it worked out; None if it shall not."""


class Score(Protocol):
    """One opinion. Scores have no state of their own."""

    name: str
    """The name of upstream's plugin."""

    def weight(self, profile: ScoreProfile) -> int:
        """How much it counts."""

    def points(self, question: Question) -> IntArray | None:
        """From 0 to 100 for each row, in an array that is the asker's; None, as good as 0, if it has nothing to say."""


def scaled_to_most(counts: IntArray, *, reverse: bool = False) -> IntArray:
    """Counts as shares of the largest, of 100; reversed, few are good."""
    most = int(counts.max(initial=0))
    if most == 0:
        return np.full_like(counts, MAX_SCORE if reverse else 0)
    shares: IntArray = MAX_SCORE * counts // most
    return MAX_SCORE - shares if reverse else shares
