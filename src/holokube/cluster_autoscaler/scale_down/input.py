"""What the scale-down planner is told about one turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.cloud.provider import GpuConfig, ResourceLimiter
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.observation import ControllerKey, Observation
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject


def _no_gpu(_node: JsonObject) -> GpuConfig | None:
    return None


@dataclass(frozen=True, slots=True)
class Deletions:
    """The deletions in flight."""

    empty: tuple[str, ...] = ()
    """Names of nodes that had nothing to move."""
    drained: tuple[str, ...] = ()
    per_group: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """All nodes on their way out."""
        return frozenset(self.empty) | frozenset(self.drained)

    def count(self, group_id: str) -> int:
        """How many nodes of a group are on their way out."""
        return self.per_group.get(group_id, 0)


@dataclass(frozen=True, slots=True)
class ScaleDownInput:
    """Everything the planner looks at."""

    observation: Observation
    """``nodes`` are the registered ones, in list order."""
    snapshot: ClusterSnapshot
    """As scale-up left it: with upcoming nodes, and with pending pods where they will go."""
    groups: Mapping[str, GroupView]
    """By id, with the target sizes as they are now, after scale-up."""
    deletions: Deletions = field(default_factory=Deletions)
    recent_evictions: tuple[JsonObject, ...] = ()
    """Pods that were evicted a moment ago."""
    limiter: ResourceLimiter = field(default_factory=ResourceLimiter)
    gpu_label: str = ""
    gpu_config: Callable[[JsonObject], GpuConfig | None] = _no_gpu
    """The accelerators of a node, as the provider knows them."""

    def group_of(self, node_name: str) -> GroupView | None:
        """The group of a node; None for a node that is nobody's."""
        return self.groups.get(self.observation.group_of_node.get(node_name, ""))


def controllers_of(observation: Observation) -> Mapping[ControllerKey, JsonObject]:
    """All controllers that drain rules may ask for, DaemonSets among them."""
    if not observation.daemon_sets:
        return observation.controllers
    daemon_sets = {
        ("DaemonSet", found["metadata"].get("namespace") or "", found["metadata"]["name"]): found
        for found in observation.daemon_sets
    }
    return {**observation.controllers, **daemon_sets}
