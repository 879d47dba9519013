"""Keeps the books when something was asked for or went wrong: registry, delays per group, metrics."""

from __future__ import annotations

from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, GpuConfig, InstanceError
from holokube.cluster_autoscaler.cluster_state.registry import ClusterStateRegistry, FailedScaleUp
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.objects import name_of, readiness_of
from holokube.cluster_autoscaler.scale_down.cooldown import LocalDelays
from holokube.kube.types import JsonObject

DELETION_TIME_S = 300.0
"""How long a cloud may take to delete a machine."""


class Books:
    """The observer of scale-ups and of deletions."""

    def __init__(self, registry: ClusterStateRegistry, metrics: AutoscalerMetrics, provider: CloudProvider,
                 delays: LocalDelays) -> None:
        self._registry = registry
        self._metrics = metrics
        self._provider = provider
        self._delays = delays
        self.gpus: dict[str, GpuConfig | None] = {}
        """The accelerators of each group, as its template shows them."""

    def scaled_up(self, group_id: str, delta: int, now_s: float) -> None:
        """A group was asked for machines."""
        self._registry.register_scale_up(group_id, delta, now_s)
        self._delays.scaled_up(group_id, now_s)
        self._metrics.scaled_up(delta, self.gpus.get(group_id))

    def scale_up_failed(self, group_id: str, delta: int, error: InstanceError, now_s: float) -> None:
        """A group was asked and refused."""
        self._registry.register_failed_scale_up(group_id, error, now_s)
        self._metrics.scale_up_failed(error.code, delta, self.gpus.get(group_id))

    def machines_failed(self, failure: FailedScaleUp) -> None:
        """Machines did not come; the registry has noticed by itself."""
        self._metrics.scale_up_failed(failure.error.code, failure.delta, self.gpus.get(failure.group_id))

    def node_deleted(self, group_id: str, node: JsonObject, *, drain: bool, now_s: float) -> None:
        """A machine is on its way out."""
        self._registry.register_scale_down(group_id, name_of(node), now_s, now_s + DELETION_TIME_S)
        self._delays.scaled_down(group_id, now_s)
        reason = ("underutilized" if drain else "empty") if readiness_of(node).is_ready else "unready"
        self._metrics.scaled_down(reason, self._provider.node_gpu_config(node))

    def deletion_failed(self, group_id: str, kind: ErrorKind, now_s: float) -> None:
        """The provider refused to delete nodes."""
        del kind
        self._delays.failed(group_id, now_s)

    def pod_evicted(self, *, succeeded: bool) -> None:
        """A pod was evicted, or could not be."""
        self._metrics.evicted(succeeded=succeeded)

    def deletions_pending(self, count: int) -> None:
        """Deletions under way."""
        self._metrics.deletions_pending(count)
