"""Which scores count, and how much."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from holokube.kube.requirements import HOSTNAME_LABEL, ZONE_LABEL

MAX_SCORE: Final = 100
"""What the best node of a score can get before weights."""

FitStrategy = Literal["LeastAllocated", "MostAllocated"]
"""Whether NodeResourcesFit likes nodes for the room they have, or for having little left."""


class DefaultSpread(NamedTuple):
    """A spread constraint for pods that bring none of their own, if a service or an owner selects them."""

    topology_key: str
    max_skew: int


SYSTEM_SPREAD: Final = (DefaultSpread(HOSTNAME_LABEL, 3), DefaultSpread(ZONE_LABEL, 5))


@dataclass(frozen=True, slots=True)
class ScoreProfile:
    """The weights of a scheduler profile; the defaults are upstream's. A weight of zero turns a score off."""

    node_resources_fit: int = 1
    node_resources_balanced_allocation: int = 1
    image_locality: int = 1
    taint_toleration: int = 3
    node_affinity: int = 2
    inter_pod_affinity: int = 2
    pod_topology_spread: int = 2
    fit_resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    """What NodeResourcesFit looks at, and the weight of each."""
    fit_strategy: FitStrategy = "LeastAllocated"
    balanced_resources: tuple[str, ...] = ("cpu", "memory")
    hard_pod_affinity_weight: int = 1
    """What a required affinity term of a pod that is there is worth to a pod that it means."""
    default_spread: tuple[DefaultSpread, ...] = field(default=SYSTEM_SPREAD)
