"""A cloud in memory, as simple as can be, whose machines do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import (
    GpuConfig,
    GroupOptions,
    Instance,
    InstanceState,
    NodeGroup,
    NodeInfo,
    PricingModel,
    ResourceLimiter,
)
from holokube.kube.types import JsonObject
from tests.kube.protobuf.objects import full_node


@dataclass
class FakeGroup:
    """One group; its target is the number of its instances."""

    id: str
    min_size: int = 0
    max_size: int = 10
    overrides: GroupOptions | None = None
    template: JsonObject | None = None
    trouble: Exception | None = None
    gate: asyncio.Event | None = None
    """Increases are held back until it is set."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    instances: dict[str, Instance] = field(default_factory=dict)
    asked: list[GroupOptions] = field(default_factory=list)

    def debug(self) -> str:
        return f"{self.id} ({self.min_size}:{self.max_size})"

    async def target_size(self) -> int:
        return len(self.instances)

    async def increase_size(self, delta: int) -> None:
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        if len(self.instances) + delta > self.max_size:
            raise CloudError(f"group {self.id} would have more than {self.max_size} nodes")
        for _ in range(delta):
            id_ = f"fake://{self.id}-{len(self.instances)}"
            self.instances[id_] = Instance(id_, InstanceState.CREATING)

    async def atomic_increase_size(self, delta: int) -> None:
        raise NotImplementedByProvider(f"atomic increase by {delta}")

    async def delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        for node in nodes:
            await asyncio.sleep(0)
            if self.instances.pop(node["spec"]["providerID"], None) is None:
                raise CloudError(f"node {node['metadata']['name']} is not of group {self.id}")

    async def force_delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        raise NotImplementedByProvider(f"forced deletion of {len(nodes)}")

    async def decrease_target_size(self, delta: int) -> None:
        coming = [found.id for found in self.instances.values() if found.state is InstanceState.CREATING]
        if len(coming) < -delta:
            raise CloudError(f"group {self.id} waits for {len(coming)} nodes only")
        for id_ in coming[delta:]:
            del self.instances[id_]

    async def nodes(self) -> list[Instance]:
        return list(self.instances.values())

    async def template_node_info(self) -> NodeInfo:
        if self.template is None:
            raise NotImplementedByProvider("a template")
        return NodeInfo(self.template)

    async def exists(self) -> bool:
        return True

    async def options(self, defaults: GroupOptions) -> GroupOptions | None:
        self.asked.append(defaults)
        return self.overrides


class FakePrices:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.pods: list[JsonObject] = []

    async def node_price(self, node: JsonObject, start_s: float, end_s: float) -> float:
        return len(node["metadata"]["name"]) * (end_s - start_s) / 3600

    async def pod_price(self, pod: JsonObject, start_s: float, end_s: float) -> float:
        self.pods.append(pod)
        return (end_s - start_s) / 7200


class FakeCloud:
    """The groups, and trouble on demand."""

    name = "fake"
    gpu_label = "example.com/gpu"

    def __init__(self, *groups: FakeGroup, prices: FakePrices | None = None) -> None:
        self.groups = list(groups) or [FakeGroup("pool-a", template=full_node("template"))]
        self.prices = prices
        self.trouble: Exception | None = None
        self.refreshes = self.cleanups = 0

    def node_groups(self) -> list[NodeGroup]:
        return list(self.groups)

    async def node_group_for_node(self, node: JsonObject) -> NodeGroup | None:
        for group in self.groups:
            if node["spec"]["providerID"] in group.instances:
                return group
        return None

    async def has_instance(self, node: JsonObject) -> bool:
        return await self.node_group_for_node(node) is not None

    def pricing(self) -> PricingModel:
        if self.prices is None:
            raise NotImplementedByProvider("prices")
        return self.prices

    def resource_limiter(self) -> ResourceLimiter:
        return ResourceLimiter()

    def available_gpu_types(self) -> frozenset[str]:
        return frozenset({"nvidia-t4", "nvidia-h100"})

    def node_gpu_config(self, node: JsonObject) -> GpuConfig | None:
        return None

    async def refresh(self) -> None:
        self.refreshes += 1
        if self.trouble is not None:
            raise self.trouble

    async def cleanup(self) -> None:
        self.cleanups += 1
