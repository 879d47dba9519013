"""How much of a node is requested by its pods.

The sums come from the engine's tables; single pods are looked at only where some of them do not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from holokube.cluster_autoscaler.cloud.provider import GpuConfig
from holokube.cluster_autoscaler.objects import is_daemon_set_pod, is_long_terminating, is_mirror
from holokube.cluster_autoscaler.scale_down.report import Utilization
from holokube.kube.resources import CPU, MEMORY
from holokube.packing import ClusterState
from holokube.packing.placed import PlacedPod


class UtilizationTable:
    """The utilisation of the nodes of a snapshot."""

    def __init__(self, state: ClusterState, now_s: float, *, ignore_mirror_pods: bool = False) -> None:
        self._state = state
        self._now_s = now_s
        self._ignore_mirror_pods = ignore_mirror_pods

    def of(
        self, node_name: str, *, ignore_daemon_sets: bool, gpu: GpuConfig | None, has_terminating: bool | None = None
    ) -> Utilization | None:  # fmt: skip
        """The utilisation of a node; None if it has no cpu or no memory to begin with.

        On a node with accelerators only they count, and while they do not work yet nothing does, so that such a node
        can go. ``has_terminating`` is for those who have asked already.
        """
        row = self._state.node_names[node_name]
        if has_terminating is None:
            has_terminating = self.has_terminating(row)
        exempt: list[tuple[PlacedPod, bool]] = []
        if has_terminating or ignore_daemon_sets or self._ignore_mirror_pods:
            exempt = list(self._find_exempt(self._state.pods_on(row), ignore_daemon_sets))
        if gpu is not None:
            used = self._ratio(gpu.resource_name, row, exempt) or 0.0
            return Utilization(gpu.resource_name, used, gpu=used)
        cpu, memory = self._ratio(CPU, row, exempt), self._ratio(MEMORY, row, exempt)
        if cpu is None or memory is None:
            return None
        resource, value = (CPU, cpu) if cpu > memory else (MEMORY, memory)
        return Utilization(resource, value, cpu=cpu, memory=memory)

    def has_terminating(self, row: int) -> bool:
        """Whether a pod is on its way out, so that it may stop to count without anything being changed."""
        # Quicker than a generator: this is asked of every pod of every node that has changed.
        return True in [placed.is_terminating for placed in self._state.pods_on(row)]

    def _find_exempt(self, found: Iterable[PlacedPod], ignore_daemon_sets: bool) -> Iterator[tuple[PlacedPod, bool]]:
        """The pods whose requests do not count; True if their room does not count either."""
        for placed in found:
            pod = placed.pod
            if pod is None:
                continue
            if (ignore_daemon_sets and is_daemon_set_pod(pod)) or (self._ignore_mirror_pods and is_mirror(pod)):
                yield placed, True
            elif placed.is_terminating and is_long_terminating(pod, self._now_s):
                yield placed, False

    def _ratio(self, resource: str, row: int, exempt: list[tuple[PlacedPod, bool]]) -> float | None:
        """Requested over allocatable, in milli-units as upstream has it; None if nothing is allocatable."""
        nodes = self._state.nodes
        column = nodes.resource_columns.get(resource)
        if column is None:
            return None
        allocatable, used = int(nodes.allocatable[row, column]), int(nodes.used[row, column])
        if not allocatable:
            return None
        for placed, leaves_no_room in exempt:
            requested = placed.requests.get(resource, 0)
            used -= requested
            if leaves_no_room:
                allocatable -= requested
        if not allocatable:
            # Upstream divides all the same: by zero nothing is not a number, and anything is infinitely much.
            return math.nan if not used else math.copysign(math.inf, used)
        return float(used) / float(allocatable)
