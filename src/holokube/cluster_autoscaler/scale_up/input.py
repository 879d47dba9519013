"""Everything that a scale-up decision looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.cloud.provider import NodeInfo, ResourceLimiter
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_up.node_budget import ClockS
from holokube.cluster_autoscaler.scale_up.quotas import QuotaTracker
from holokube.cluster_autoscaler.scale_up.skipping import SafetyOf
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpInput:
    """The state of the cluster when it is decided. The snapshot is used and left as it was."""

    snapshot: ClusterSnapshot
    """With the nodes, their pods, the upcoming nodes, and the pods that need no new ones."""
    groups: Sequence[GroupView]
    """All groups, in the provider's order."""
    templates: Mapping[str, NodeInfo]
    """What a new node of each group will look like."""
    pods: Sequence[JsonObject]
    """The pods that need new nodes."""
    nodes: Sequence[JsonObject]
    """All nodes, upcoming ones included: what limits are counted by."""
    options: AutoscalerOptions
    safety_of: SafetyOf
    limiter: ResourceLimiter = field(default_factory=ResourceLimiter)
    group_of_node: Mapping[str, str] = field(default_factory=dict)
    gpu_label: str = ""
    provider_ignored_labels: frozenset[str] = frozenset()
    """Labels that mean nothing to the likeness of groups of this cloud."""
    clock_s: ClockS | None = None
    """For time limits; without a clock there are none."""

    def quotas(self) -> QuotaTracker:
        """What is left of the cluster's limits."""
        return QuotaTracker(
            self.limiter, self.nodes, group_of_node=self.group_of_node, gpu_label=self.gpu_label,
            provider_templates={group.id: group.template for group in self.groups if group.template is not None},
        )  # fmt: skip

    def group(self, group_id: str) -> GroupView:
        """A group by its id."""
        return next(group for group in self.groups if group.id == group_id)
