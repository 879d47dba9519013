"""Which pods could run on a new node of which group: one pod for all that are alike, on one node for all new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.cluster_autoscaler.scale_up.grouping import PodGroup
from holokube.cluster_autoscaler.scale_up.reasons import Rejection, rejection_of
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject


@dataclass(slots=True)
class PodGroupReport:
    """Pods that are alike, and what the groups of nodes have to say to them."""

    pods: Sequence[JsonObject] = field(repr=False)
    feasible_on: list[str] = field(default_factory=list)
    """The groups whose new nodes could run one of the pods."""
    rejections: dict[str, Rejection] = field(default_factory=dict)
    """Why other groups could not, by group."""
    is_schedulable: bool = False
    """Whether some group can help; not so any more once what was tried has failed."""

    def give_up(self, reason: str, failed: frozenset[str] | None = None) -> None:
        """The groups that could have helped did not; all of them, or those named."""
        if not self.is_schedulable:
            return
        for group_id in self.feasible_on:
            if failed is None or group_id in failed:
                self.rejections[group_id] = Rejection((reason,))
        if failed is None or failed.issuperset(self.feasible_on):
            self.is_schedulable = False


def try_group(
    group_id: str, template: NodeInfo, pod_groups: Sequence[PodGroupReport], snapshot: ClusterSnapshot
) -> list[PodGroupReport]:
    """Note which pods a new node of a group could run; returns those."""
    name = template.node["metadata"]["name"]
    fitting = []
    with snapshot.trial():
        snapshot.add_node(template)
        row = snapshot.row(name)
        for pod_group in pod_groups:
            rejection = rejection_of(snapshot.state, snapshot.class_of(pod_group.pods[0]), row)
            if rejection is None:
                pod_group.feasible_on.append(group_id)
                pod_group.is_schedulable = True
                fitting.append(pod_group)
            else:
                pod_group.rejections[group_id] = rejection
    return fitting


def reports_of(groups: Sequence[PodGroup]) -> list[PodGroupReport]:
    """An empty report for each group of pods."""
    return [PodGroupReport(group.pods) for group in groups]
