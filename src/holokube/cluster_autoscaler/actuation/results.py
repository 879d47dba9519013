"""How the deletion of a node, and of each pod on it, came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from holokube.base.errors import HolokubeError
from holokube.kube.types import JsonObject


class ScaleDownResult(Enum):
    """How a turn's scale-down ended."""

    ERROR = "Error"
    NO_NODE_DELETED = "NoNodeDeleted"
    NODE_DELETE_STARTED = "NodeDeleteStarted"
    NOT_TRIED = "NotTried"
    IN_COOLDOWN = "InCooldown"
    IN_PROGRESS = "InProgress"
    NO_CANDIDATES = "NoCandidates"


class NodeDeleteOutcome(IntEnum):
    """Why a node could not be deleted; the numbers are upstream's."""

    OK = 0
    FAILED_TO_MARK_TO_BE_DELETED = 1
    FAILED_TO_EVICT_PODS = 2
    FAILED_TO_DELETE = 3
    INTERNAL = 4


@dataclass(frozen=True, slots=True)
class PodEvictionResult:
    """How the eviction of a pod came out."""

    pod: JsonObject
    timed_out: bool = False
    error: HolokubeError | None = None

    @property
    def is_successful(self) -> bool:
        return self.error is None and not self.timed_out


@dataclass(frozen=True, slots=True)
class NodeDeleteResult:
    """How the deletion of a node came out."""

    outcome: NodeDeleteOutcome = NodeDeleteOutcome.OK
    error: HolokubeError | None = None
    evictions: Mapping[str, PodEvictionResult] = field(default_factory=dict)
    """By the pods' keys, namespace/name."""


@dataclass(frozen=True, slots=True)
class ScaledDownNode:
    """A node whose deletion was started."""

    node: JsonObject
    group_id: str
    evicted: tuple[JsonObject, ...]
    """The pods that are being evicted; DaemonSet pods and mirror pods are not counted."""
    drain: bool


@dataclass(frozen=True, slots=True)
class DeletionStart:
    """What ``Actuator.start_deletion`` has begun."""

    result: ScaleDownResult
    nodes: tuple[ScaledDownNode, ...] = ()
    error: HolokubeError | None = None
