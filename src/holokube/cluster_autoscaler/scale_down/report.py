"""What scale-down says about each node: that it may go, or why it stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holokube.cluster_autoscaler.objects import name_of, pod_key
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason, UnremovableReason
from holokube.kube.types import JsonObject


@dataclass(frozen=True, slots=True)
class Utilization:
    """How much of a node is spoken for. With accelerators only they count."""

    resource: str
    """The resource that is used most."""
    value: float
    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"resource": self.resource, "value": self.value, "cpu": self.cpu, "memory": self.memory, "gpu": self.gpu}


class BlockingPod(NamedTuple):
    """The pod that holds a node."""

    pod: JsonObject
    reason: BlockingReason
    message: str = ""


class HomelessPod(NamedTuple):
    """The pod of a node that found no other place."""

    pod: JsonObject
    reasons: Mapping[str, int]
    """How many nodes refused it, by reason."""


@dataclass(frozen=True, slots=True)
class Unremovable:
    """A node that stays, and why."""

    node: JsonObject
    reason: UnremovableReason
    blocking_pod: BlockingPod | None = None
    """For BlockedByPod."""
    homeless_pod: HomelessPod | None = None
    """For NoPlaceToMovePods."""
    utilization: Utilization | None = None
    """As far as it was looked at."""
    threshold: float | None = None
    """What the utilisation was compared with."""
    earlier: Unremovable | None = None
    """For RecentlyUnremovable: what was found then."""
    recheck_at_s: float | None = None
    """When a node that was found unremovable is looked at again."""
    detail: str = ""
    """One more sentence where the reason alone does not say it."""

    @property
    def name(self) -> str:
        """The node's name."""
        return name_of(self.node)

    def with_utilization(self, used: Utilization) -> Unremovable:
        """The same for a node of which so much is used."""
        return Unremovable(
            self.node, self.reason, self.blocking_pod, self.homeless_pod, used, self.threshold, self.earlier,
            self.recheck_at_s, self.detail)

    @property
    def blocking_reason(self) -> str:
        """Why the pod blocks; empty if no pod does."""
        return str(self.blocking_pod.reason) if self.blocking_pod is not None else ""

    def as_json(self) -> dict[str, Any]:
        """Plain values; what does not apply is left out."""
        found: dict[str, Any] = {"node": self.name, "reason": str(self.reason)}
        if self.blocking_pod is not None:
            found["blockingPod"] = pod_key(self.blocking_pod.pod)
            found["blockingReason"] = str(self.blocking_pod.reason)
            found["blockingMessage"] = self.blocking_pod.message
        if self.homeless_pod is not None:
            found["homelessPod"] = pod_key(self.homeless_pod.pod)
            found["refusals"] = dict(self.homeless_pod.reasons)
        if self.utilization is not None:
            found["utilization"] = self.utilization.as_json()
        if self.threshold is not None:
            found["threshold"] = self.threshold
        if self.earlier is not None:
            found["earlier"] = self.earlier.as_json()
        if self.recheck_at_s is not None:
            found["recheckAtSeconds"] = self.recheck_at_s
        if self.detail:
            found["detail"] = self.detail
        return found


@dataclass(frozen=True, slots=True)
class NodeToRemove:
    """A node that may go, and what becomes of its pods."""

    node: JsonObject
    pods_to_reschedule: tuple[JsonObject, ...] = ()
    daemon_set_pods: tuple[JsonObject, ...] = ()
    on_completion_pods: tuple[JsonObject, ...] = ()
    """The node waits for these."""
    is_risky: bool = False
    """Disruption budgets do not let all its pods go at the same time."""

    @property
    def name(self) -> str:
        """The node's name."""
        return name_of(self.node)

    @property
    def is_empty(self) -> bool:
        """Nothing has to be moved."""
        return not self.pods_to_reschedule


class UnneededNode(NamedTuple):
    """A node that could do without, and for how long already."""

    node: JsonObject
    since_s: float
    removal_threshold_s: float


@dataclass(frozen=True, slots=True)
class Removals:
    """What could be deleted right now, in the order in which it should be."""

    empty: list[NodeToRemove] = field(default_factory=list)
    drain: list[NodeToRemove] = field(default_factory=list)
    unremovable: list[Unremovable] = field(default_factory=list)
    """Unneeded nodes that have to stay for now."""


@dataclass(frozen=True, slots=True)
class PlannerReport:
    """What one look at the cluster found."""

    unneeded: list[str] = field(default_factory=list)
    """Names, in the order in which they were found."""
    unremovable: list[Unremovable] = field(default_factory=list)
    utilization: Mapping[str, Utilization] = field(default_factory=dict)
    candidates: list[str] = field(default_factory=list)
    """The nodes that were considered, in the order in which they were."""
    not_candidates: list[Unremovable] = field(default_factory=list)
    """Nodes that were not even considered. Upstream does not list them among the unremovable ones."""
    skipped: list[str] = field(default_factory=list)
    """Eligible nodes that were not simulated, because enough were found or time was up."""
    skipped_because: str = ""
    longest_skip_s: float = 0.0
    """For how long the node that was skipped most often has not been simulated."""
