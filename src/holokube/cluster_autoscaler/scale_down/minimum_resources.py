"""The cores, memory and accelerators that the cluster must keep (``--cores-total`` and its like)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from holokube.cluster_autoscaler.cloud.provider import ResourceLimiter
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.objects import (
    GPU_RESOURCES,
    cores_and_memory,
    gpu_allocatable,
    labels_of,
    metadata_of,
    name_of,
)
from holokube.kube import quantity
from holokube.kube.resources import CPU, MEMORY
from holokube.kube.types import JsonObject

KUBELET_LABEL = "type"
_VIRTUAL_KUBELET = (KUBELET_LABEL, "virtual-kubelet")


class UnknownAccelerators(Exception):
    """Nobody can say how many accelerators a node will have, so nobody can say what is left without another."""


class MinimumResources:
    """What may still be taken away. The nodes of a group are taken to be like the first that was asked about."""

    def __init__(
        self,
        limiter: ResourceLimiter,
        nodes: Iterable[JsonObject] | Callable[[], Iterable[JsonObject]],
        group_of: Callable[[str], GroupView | None],
        gpu_label: str = "",
        *,
        are_plain: bool = False,
    ) -> None:
        """``nodes`` are all of the snapshot. Raises ``UnknownAccelerators``.

        ``are_plain`` if there are neither accelerators nor virtual kubelets among them. Then nothing can be unknown,
        and nodes are counted when the first is to be taken, or never: nobody can take more than there is, so that
        where nothing has to stay nothing can be too little.
        """
        self._limiter = limiter
        self._nodes = nodes
        self._group_of = group_of
        self._gpu_label = gpu_label
        self._of_group: dict[str, Mapping[str, int]] = {}
        self._left: dict[str, int] | None = None
        self._may_be_short = not are_plain or any(amount > 0 for amount in limiter.minimum.values())
        if not are_plain:
            self._left = self._count()

    def take(self, node: JsonObject, group: GroupView) -> list[str]:
        """Count a node as gone; returns the resources of which there would be too little, and then counts nothing."""
        if not self._may_be_short:
            return []
        if self._left is None:
            self._left = self._count()
        left, resources = self._left, self._resources(node, group)
        short = [name for name, amount in resources.items() if amount > left.get(name, amount)]
        if not short:
            for name, amount in resources.items():
                if name in left:
                    left[name] = max(left[name] - amount, 0)
        return short

    def _count(self) -> dict[str, int]:
        usage: dict[str, int] = {}
        group_of, limiter = self._group_of, self._limiter
        for node in self._nodes() if callable(self._nodes) else self._nodes:
            metadata = metadata_of(node)
            labels = metadata.get("labels")
            if labels and labels.get(_VIRTUAL_KUBELET[0]) == _VIRTUAL_KUBELET[1]:
                continue
            for resource, amount in self._resources(node, group_of(metadata.get("name") or "")).items():
                usage[resource] = usage.get(resource, 0) + amount
        return {
            resource: max(0, usage.get(resource, 0) - max(0, limiter.minimum.get(resource, 0)))
            for resource in {**limiter.minimum, **limiter.maximum}
        }

    def _resources(self, node: JsonObject, group: GroupView | None) -> Mapping[str, int]:
        if group is not None and group.id in self._of_group:
            return self._of_group[group.id]
        cores, memory_bytes = cores_and_memory(node)
        resources = {CPU: cores, MEMORY: memory_bytes, "nodes": 1}
        gpu_type = labels_of(node).get(self._gpu_label) if self._gpu_label else None
        if gpu_type is not None:
            devices = gpu_allocatable(node) or _expected_devices(node, group)
            if gpu_type and devices > 0:
                resources[gpu_type] = devices
        if group is not None:
            self._of_group[group.id] = resources
        return resources


def _expected_devices(node: JsonObject, group: GroupView | None) -> int:
    """How many accelerators a node will have once its driver is there: as many as the template says."""
    if group is None or group.template is None:
        raise UnknownAccelerators(name_of(node))
    capacity = (group.template.node.get("status") or {}).get("capacity") or {}
    for name in GPU_RESOURCES:
        if name in capacity:
            return quantity.parse(capacity[name]).value()
    return 0
