"""A provider that owns nothing: it keeps the books of node groups, for dry runs.

What it is asked for is written down. Nodes that it deletes are deleted from the copy of the cluster; nodes that it is
asked to make appear there only if told so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.client.resources import NODES
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
from holokube.cluster_autoscaler.objects import gpu_allocatable, gpu_resource_name, labels_of, name_of, provider_id
from holokube.kube.errors import NotFound
from holokube.kube.resources import pod_requests
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

GPU_LABEL = "cloud.google.com/gke-accelerator"
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """What a group is."""

    id: str
    min_size: int
    max_size: int
    template: NodeInfo | None
    target: int | None = None
    """As many as there are nodes, unless told."""
    price_usd_per_hour: float | None = None
    refuses_increase: str = ""
    """The error of every request for more nodes."""
    options: GroupOptions | None = None


@dataclass(slots=True)
class Books:
    """What all groups of a provider share."""

    clock: Clock
    client: Client
    calls: list[dict[str, Any]] = field(default_factory=list)
    creates_nodes: bool = False
    group_of: dict[str, str] = field(default_factory=dict)
    """Provider id of a node -> the id of its group."""


class PlanGroup:
    """A node group in the books."""

    def __init__(self, books: Books, spec: GroupSpec, nodes: Sequence[JsonObject]) -> None:
        self.spec = spec
        self.id = spec.id
        self.min_size = spec.min_size
        self.max_size = spec.max_size
        self._books = books
        self._instances = {provider_id(node): name_of(node) for node in nodes}
        self._target = len(nodes) if spec.target is None else spec.target
        self._made = 0
        books.group_of.update(dict.fromkeys(self._instances, spec.id))

    def debug(self) -> str:
        return f"{self.id} ({self.min_size}:{self.max_size})"

    @property
    def target(self) -> int:
        """How many nodes were asked for."""
        return self._target

    async def target_size(self) -> int:
        return self._target

    async def increase_size(self, delta: int) -> None:
        if delta <= 0:
            raise CloudError(f"group {self.id}: cannot increase by {delta}", hint="Ask for one node at least.")
        if self._target + delta > self.max_size:
            raise CloudError(
                f"group {self.id}: {self._target + delta} nodes would be more than the {self.max_size} allowed",
                hint="Raise the maximum of the group.")
        self._books.calls.append({"op": "IncreaseSize", "group": self.id, "delta": delta})
        if self.spec.refuses_increase:
            raise CloudError(self.spec.refuses_increase, hint="The plan says that this group cannot grow.")
        self._target += delta
        if self._books.creates_nodes:
            for _ in range(delta):
                await self._create()

    async def atomic_increase_size(self, delta: int) -> None:  # noqa: ARG002 - the interface's
        raise NotImplementedByProvider("AtomicIncreaseSize")

    async def delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        self._check_ours(nodes)
        if self._target - len(nodes) < self.min_size:
            raise CloudError(
                f"group {self.id}: {self._target - len(nodes)} nodes would be fewer than the {self.min_size} allowed",
                hint="Lower the minimum of the group.")
        await self._delete("DeleteNodes", nodes)

    async def force_delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        self._check_ours(nodes)
        await self._delete("ForceDeleteNodes", nodes)

    async def decrease_target_size(self, delta: int) -> None:
        if delta >= 0 or self._target + delta < len(self._instances):
            raise CloudError(
                f"group {self.id}: cannot change the target {self._target} by {delta}: "
                f"{len(self._instances)} nodes exist",
                hint="Only requests that were not fulfilled can be taken back.")
        self._books.calls.append({"op": "DecreaseTargetSize", "group": self.id, "delta": delta})
        self._target += delta

    async def nodes(self) -> list[Instance]:
        return [Instance(machine, InstanceState.RUNNING) for machine in self._instances]

    async def template_node_info(self) -> NodeInfo:
        if self.spec.template is None:
            raise NotImplementedByProvider("TemplateNodeInfo")
        return self.spec.template

    async def exists(self) -> bool:
        return True

    async def options(self, defaults: GroupOptions) -> GroupOptions | None:  # noqa: ARG002 - the interface's
        return self.spec.options

    def _check_ours(self, nodes: Sequence[JsonObject]) -> None:
        for node in nodes:
            if provider_id(node) not in self._instances:
                raise CloudError(f"node {name_of(node)} is not in group {self.id}", hint="Ask its own group.")

    async def _delete(self, op: str, nodes: Sequence[JsonObject]) -> None:
        self._books.calls.append({"op": op, "group": self.id, "nodes": [name_of(node) for node in nodes]})
        for node in nodes:
            del self._instances[provider_id(node)]
            self._books.group_of.pop(provider_id(node), None)
            self._target -= 1
            try:
                await self._books.client.delete(NODES, name_of(node))
            except NotFound:
                continue

    async def _create(self) -> None:
        if self.spec.template is None:
            raise CloudError(f"group {self.id}: there is no template to make nodes from",
                             hint="Give the group a template.")
        self._made += 1
        name = f"{self.id}-new-{self._made}"
        template = self.spec.template.node
        now = format_time(self._books.clock.now())
        machine = f"{provider_id(template).rpartition('/')[0]}/{name}"
        annotations = template["metadata"].get("annotations") or {}
        await self._books.client.create(NODES, {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "annotations": annotations,
                "labels": {**labels_of(template), "kubernetes.io/hostname": name},
            },
            "spec": {**template["spec"], "providerID": machine},
        })
        await self._books.client.patch_status(NODES, name, {"status": {
            **template["status"],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": now,
                            "lastHeartbeatTime": now}],
        }})
        # The API server taints new nodes until a controller, of which the copy has none, finds them ready.
        await self._books.client.patch(NODES, name, {"spec": {"taints": template["spec"].get("taints")}})
        self._instances[machine] = name
        self._books.group_of[machine] = self.id


class PlanPricing:
    """Prices by group for nodes, and by request for pods."""

    def __init__(
        self, price_of_node: Callable[[JsonObject], float | None], usd_per_core_hour: float, usd_per_gib_hour: float
    ) -> None:
        self._price_of_node = price_of_node
        self._usd_per_core_hour = usd_per_core_hour
        self._usd_per_gib_hour = usd_per_gib_hour

    async def node_price(self, node: JsonObject, start_s: float, end_s: float) -> float:
        price = self._price_of_node(node)
        if price is None:
            raise CloudError(f"node {name_of(node)} has no price", hint="Give every group a price per hour.")
        return price * (end_s - start_s) / 3600.0

    async def pod_price(self, pod: JsonObject, start_s: float, end_s: float) -> float:
        requests = pod_requests(pod)
        cores = requests.get("cpu", 0) / 1000
        gib = requests.get("memory", 0) / 1000 / GIB
        return (cores * self._usd_per_core_hour + gib * self._usd_per_gib_hour) * (end_s - start_s) / 3600.0


class PlanProvider:
    """The provider of a dry run."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        groups: Sequence[GroupSpec],
        nodes_of: Mapping[str, Sequence[JsonObject]],
        *,
        limiter: ResourceLimiter,
        usd_per_core_hour: float = 0.0,
        usd_per_gib_hour: float = 0.0,
    ) -> None:
        """``nodes_of`` holds the nodes of each group that exist already."""
        self.books = Books(clock, client)
        self.groups = {spec.id: PlanGroup(self.books, spec, nodes_of.get(spec.id, ())) for spec in groups}
        self._limiter = limiter
        self._pricing = PlanPricing(self.price_of_node, usd_per_core_hour, usd_per_gib_hour)
        self._has_prices = any(spec.price_usd_per_hour is not None for spec in groups)

    @property
    def name(self) -> str:
        return "plan"

    @property
    def gpu_label(self) -> str:
        return GPU_LABEL

    def node_groups(self) -> list[NodeGroup]:
        return list(self.groups.values())

    async def node_group_for_node(self, node: JsonObject) -> NodeGroup | None:
        return self.groups.get(self.books.group_of.get(provider_id(node), ""))

    async def has_instance(self, node: JsonObject) -> bool:
        return provider_id(node) in self.books.group_of

    def pricing(self) -> PricingModel:
        if not self._has_prices:
            raise NotImplementedByProvider("Pricing")
        return self._pricing

    def price_of_node(self, node: JsonObject) -> float | None:
        """The price of a node per hour; of a template, that of its group."""
        group_id = self.books.group_of.get(provider_id(node))
        if group_id is None:
            machine = provider_id(node)
            group_id = next(
                (group.id for group in self.groups.values()
                 if group.spec.template is not None and provider_id(group.spec.template.node) == machine), None)
        return None if group_id is None else self.groups[group_id].spec.price_usd_per_hour

    def resource_limiter(self) -> ResourceLimiter:
        return self._limiter

    def available_gpu_types(self) -> frozenset[str]:
        return frozenset(
            labels_of(group.spec.template.node)[GPU_LABEL] for group in self.groups.values()
            if group.spec.template is not None and GPU_LABEL in labels_of(group.spec.template.node))

    def node_gpu_config(self, node: JsonObject) -> GpuConfig | None:
        if GPU_LABEL not in labels_of(node) and not gpu_allocatable(node):
            return None
        return GpuConfig(GPU_LABEL, labels_of(node).get(GPU_LABEL, ""), gpu_resource_name(node))

    async def refresh(self) -> None:
        return None

    async def cleanup(self) -> None:
        return None
