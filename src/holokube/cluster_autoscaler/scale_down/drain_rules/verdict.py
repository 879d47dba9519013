"""What a drain rule says about a pod, and what it may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from holokube.cluster_autoscaler.observation import ControllerKey
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.pdb_tracker import PdbTracker
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject


class Outcome(Enum):
    """What happens to a pod when its node is drained."""

    DRAIN = "drain"
    BLOCK = "block"
    """It holds its node."""
    SKIP = "skip"
    """It is neither moved nor in the way."""
    WAIT = "wait"
    """The node waits until the pod has finished."""


class Verdict(NamedTuple):
    """The word of a rule."""

    outcome: Outcome
    reason: BlockingReason | None = None
    """Why it blocks."""
    message: str = ""


DRAIN = Verdict(Outcome.DRAIN)
SKIP = Verdict(Outcome.SKIP)
WAIT = Verdict(Outcome.WAIT)


def block(reason: BlockingReason, message: str) -> Verdict:
    """The pod holds its node."""
    return Verdict(Outcome.BLOCK, reason, message)


@dataclass(frozen=True, slots=True)
class DrainContext:
    """What rules know besides the pod."""

    now_s: float
    options: AutoscalerOptions
    pdbs: PdbTracker = field(default_factory=PdbTracker)
    controllers: Mapping[ControllerKey, JsonObject] | None = None
    """ReplicationControllers, ReplicaSets, Jobs, StatefulSets and DaemonSets; None: nobody asks whether they exist."""


class DrainRule(NamedTuple):
    """One rule of the table."""

    name: str
    judge: Callable[[JsonObject, DrainContext], Verdict | None]
    """None: the rule has nothing to say about the pod."""
    is_on: Callable[[AutoscalerOptions], bool] | None = None
    """Which settings switch it on; None: it always is."""
