"""How much more of each resource the cluster may have: ``--cores-total``, ``--memory-total``, ``--gpu-total``.

Cores are counted by capacity and rounded up to whole ones for each node, memory in bytes, accelerators by type. All
nodes of a group count as much as its first one, whatever they are really like, as upstream has it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.cloud.provider import NodeInfo, ResourceLimiter
from holokube.cluster_autoscaler.objects import GPU_RESOURCES, cores_and_memory, gpu_allocatable, labels_of, name_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.quantity import parse
from holokube.kube.resources import CPU, MEMORY
from holokube.kube.types import JsonObject

CLUSTER_WIDE: Final = "cluster-wide"
"""The name of the limits of the whole cluster in messages."""
NODES: Final = "nodes"


class QuotaCheck(NamedTuple):
    """Whether so many nodes are within the limits."""

    allowed: int
    """How many of them are."""
    exceeded: tuple[str, ...] = ()
    """The resources there would be too much of."""

    @property
    def reason(self) -> str:
        """Upstream's words for it; empty if nothing is exceeded."""
        if not self.exceeded:
            return ""
        return f'exceeded quota: "{CLUSTER_WIDE}", resources: {", ".join(self.exceeded)}'


class QuotaTracker:
    """What is left of the limits, given the nodes there are."""

    def __init__(
        self,
        limiter: ResourceLimiter,
        nodes: Iterable[JsonObject],
        *,
        group_of_node: Mapping[str, str],
        gpu_label: str = "",
        provider_templates: Mapping[str, NodeInfo] | None = None,
    ) -> None:
        """``provider_templates`` tell how many accelerators a node will have that does not show them yet."""
        self._gpu_label = gpu_label
        self._provider_templates = provider_templates or {}
        self._of_group: dict[str, Mapping[str, int]] = {}
        used: dict[str, int] = {}
        for node in nodes:
            if is_virtual(node):
                continue
            group_id = group_of_node.get(name_of(node), "")
            for name, amount in self._amounts(node, group_id).items():
                used[name] = used.get(name, 0) + amount
        self._left = {name: max(0, limit - used.get(name, 0)) for name, limit in limiter.maximum.items()}

    @property
    def left(self) -> Mapping[str, int]:
        """What may still be added of each limited resource."""
        return self._left

    def check(self, group_id: str, node: JsonObject, nodes: int) -> QuotaCheck:
        """How many of so many nodes like this one are within the limits."""
        allowed, exceeded = nodes, []
        for name, amount in self._amounts(node, group_id).items():
            left = self._left.get(name)
            if left is None or amount <= 0 or amount * nodes <= left:
                continue
            allowed = min(allowed, left // amount)
            exceeded.append(name)
        return QuotaCheck(allowed, tuple(exceeded))

    def consume(self, group_id: str, node: JsonObject, nodes: int) -> None:
        """Take so many nodes off what is left, if all of them are within the limits."""
        if self.check(group_id, node, nodes).allowed != nodes:
            return
        for name, amount in self._amounts(node, group_id).items():
            if name in self._left:
                self._left[name] = max(0, self._left[name] - amount * nodes)

    def _amounts(self, node: JsonObject, group_id: str) -> Mapping[str, int]:
        known = self._of_group.get(group_id) if group_id else None
        if known is None:
            known = self._amounts_of(node, group_id)
            if group_id:
                self._of_group[group_id] = known
        return known

    def _amounts_of(self, node: JsonObject, group_id: str) -> Mapping[str, int]:
        cores, memory_bytes = cores_and_memory(node)
        amounts = {CPU: cores, MEMORY: memory_bytes, NODES: 1}
        gpu_type, gpus = self._gpus_of(node, group_id)
        if gpu_type and gpus > 0:
            amounts[gpu_type] = gpus
        return amounts

    def _gpus_of(self, node: JsonObject, group_id: str) -> tuple[str, int]:
        gpu_type = labels_of(node).get(self._gpu_label) if self._gpu_label else None
        if gpu_type is None:
            return "", 0
        gpus = gpu_allocatable(node)
        if gpus:
            return gpu_type, gpus
        if not group_id:
            raise AutoscalerError(
                f'node "{name_of(node)}" has the label {self._gpu_label} and no accelerators yet, '
                "and belongs to no node group that could tell how many it will have",
                hint="Scale-up goes on once its driver has reported them.",
            )
        template = self._provider_templates.get(group_id)
        if template is None:
            raise AutoscalerError(
                f'node group "{group_id}" cannot tell how many accelerators its nodes will have',
                hint="Give the provider a template for the group.",
            )
        return gpu_type, _promised_gpus(template.node)


def limits_of(
    cores_total: tuple[int, int], memory_total_gib: tuple[int, int], gpu_total: Iterable[tuple[str, int, int]]
) -> ResourceLimiter:
    """The limits that the flags of the same names ask for."""
    gib = 1024**3
    minimum = {CPU: cores_total[0], MEMORY: min(memory_total_gib[0] * gib, sys.maxsize)}
    maximum = {CPU: cores_total[1], MEMORY: min(memory_total_gib[1] * gib, sys.maxsize)}
    for gpu_type, least, most in gpu_total:
        minimum[gpu_type], maximum[gpu_type] = least, most
    return ResourceLimiter({name: value for name, value in minimum.items() if value > 0}, maximum)


def limiter_of(options: AutoscalerOptions) -> ResourceLimiter:
    """The limits of the whole cluster."""
    return limits_of(options.cores_total, options.memory_total_gib, options.gpu_total)


def is_virtual(node: JsonObject) -> bool:
    """Whether a node is a virtual kubelet, whose capacity is not a machine's."""
    return labels_of(node).get("type") == "virtual-kubelet"


def _promised_gpus(template: JsonObject) -> int:
    capacity = (template.get("status") or {}).get("capacity") or {}
    for name in GPU_RESOURCES:
        if name in capacity:
            return parse(capacity[name]).value()
    return 0
