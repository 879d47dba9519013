"""The kubemark provider: hollow nodes that are pods of an external cluster, one ReplicationController each.

Everything it knows is in the labels of both clusters' objects, so that a restart loses nothing. Unlike upstream's it
creates what is missing to the minimum when it starts, knows what a new node will look like, answers whether a machine
exists, and resolves machines without a node by their id.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Final, Self

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer
from holokube.client.resources import CONFIG_MAPS, NODES
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.kubemark.external_cluster import SUFFIX_LENGTH, ExternalCluster
from holokube.cluster_autoscaler.cloud.kubemark.group import KubemarkGroup
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import (
    GROUP_LABEL,
    NAMESPACE,
    group_of,
    is_live,
    machine_of,
)
from holokube.cluster_autoscaler.cloud.kubemark.kubemark_cluster import KubemarkCluster
from holokube.cluster_autoscaler.cloud.kubemark.node_spec import NodeSpec
from holokube.cluster_autoscaler.cloud.kubemark.templates import HollowTemplate, choose, parse_templates
from holokube.cluster_autoscaler.cloud.provider import GpuConfig, NodeGroup, PricingModel, ResourceLimiter
from holokube.kube.errors import NotFound
from holokube.kube.names import is_dns1123_subdomain, is_label_value
from holokube.kube.quantity import milli_of
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

GPU_LABEL: Final = "cloud.google.com/gke-accelerator"
GPU_TYPES: Final = frozenset({"nvidia-tesla-k80", "nvidia-tesla-p100", "nvidia-tesla-v100"})
GPU_RESOURCES: Final = ("nvidia.com/gpu", "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx")


class KubemarkProvider:
    """Speaks to both clusters; made by ``build``, ended by ``close``."""

    def __init__(
        self,
        specs: Sequence[NodeSpec],
        external: ExternalCluster,
        kubemark: KubemarkCluster,
        templates: Sequence[HollowTemplate],
        resource_limiter: ResourceLimiter,
    ) -> None:
        self._external = external
        self._kubemark = kubemark
        self._given = tuple(templates)
        self._last_used: dict[str, HollowTemplate] = {}
        self._limiter = resource_limiter
        self._groups = {
            spec.name: KubemarkGroup(spec, external, kubemark, partial(self._template, spec.name))
            for spec in specs
        }
        external.on_pod(self._on_pod)
        self._log = get_logger("holokube.cluster_autoscaler.kubemark")

    async def start(self) -> None:
        """Fills the caches, checks that every group has a template, and creates what is missing to the minimum."""
        await self._external.start()
        await self._kubemark.start()
        for name in self._groups:
            self._template(name).check(name)
        for name, group in self._groups.items():
            if made := await group.ensure_minimum():
                self._log.info("created nodes that were missing to the minimum", group=name, nodes=made)

    async def close(self) -> None:
        """Ends the watches. All nodes stay as they are."""
        await self._kubemark.stop()
        await self._external.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _template(self, group: str) -> HollowTemplate:
        found = choose(group, self._given, self._external.all_controllers())
        if found is None:
            found = self._last_used.get(group)
        if found is None:
            raise CloudError(
                f"group {group}: there is no template of its nodes, and no hollow node that could serve as one",
                kind=ErrorKind.CONFIGURATION,
                hint=f"Give a template, or create a ReplicationController with the label {GROUP_LABEL}={group} in "
                f"namespace {self._external.namespace}; with no replicas it is a template and nothing else.",
            )
        self._last_used[group] = found
        return found

    def _on_pod(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        pod = new or old
        if pod is not None and (new is None or not is_live(new)):
            self._kubemark.look(pod["metadata"]["name"])

    # The interface

    @property
    def name(self) -> str:
        return "kubemark"

    @property
    def gpu_label(self) -> str:
        return GPU_LABEL

    def node_groups(self) -> list[NodeGroup]:
        return [*self._groups.values()]

    async def node_group_for_node(self, node: JsonObject) -> NodeGroup | None:
        """By its machine; a node whose machine is gone is known by its own label until it goes too."""
        machine = machine_of(node)
        if not machine:
            return None
        pod = self._external.pod(machine)
        return self._groups.get(group_of(node if pod is None else pod))

    async def has_instance(self, node: JsonObject) -> bool:
        """Whether the node's pod is alive in the external cluster."""
        machine = machine_of(node)
        pod = self._external.pod(machine) if machine else None
        return pod is not None and is_live(pod)

    def pricing(self) -> PricingModel:
        raise NotImplementedByProvider("prices: pods cost nothing")

    def resource_limiter(self) -> ResourceLimiter:
        return self._limiter

    def available_gpu_types(self) -> frozenset[str]:
        return GPU_TYPES

    def node_gpu_config(self, node: JsonObject) -> GpuConfig | None:
        labels = node["metadata"].get("labels") or {}
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        devices = [name for name in GPU_RESOURCES if milli_of(allocatable.get(name, 0))]
        if not devices and GPU_LABEL not in labels:
            return None
        return GpuConfig(GPU_LABEL, labels.get(GPU_LABEL, ""), devices[0] if devices else GPU_RESOURCES[0])

    async def refresh(self) -> None:
        """The caches are always fresh; nodes that are left behind are looked at once more."""
        self._kubemark.look_at_all()

    async def cleanup(self) -> None:
        """Nothing: hollow nodes outlive the autoscaler, as upstream's do."""


async def build(
    clock: Clock,
    external_client: Client,
    kubemark_client: Client,
    informers: InformerSet | None,
    rng: Rng,
    *,
    nodes: Sequence[NodeSpec],
    template_manifest: str | bytes = "",
    template_source: str = "template",
    template_config_map: str = "",
    namespace: str = NAMESPACE,
    resource_limiter: ResourceLimiter | None = None,
) -> KubemarkProvider:
    """A provider that runs. ``informers`` are those of the kubemark cluster, for one cache of its nodes for all.

    Templates come from a manifest, from the values of a ConfigMap of the external cluster, or from what runs there.
    """
    _check_names(nodes)
    templates = parse_templates(template_manifest, template_source) if template_manifest else []
    if template_config_map:
        templates += await _from_config_map(external_client, template_config_map, namespace)
    external = ExternalCluster(clock, external_client, rng.fork("external"), namespace=namespace)
    own = Informer(clock, kubemark_client, NODES, rng=rng.fork("nodes")) if informers is None else None
    kubemark = KubemarkCluster(
        clock, kubemark_client, own or _shared(informers), [spec.name for spec in nodes], external.has_machine,
        owns_informer=own is not None,
    )  # fmt: skip
    provider = KubemarkProvider(nodes, external, kubemark, templates, resource_limiter or ResourceLimiter())
    try:
        await provider.start()
    except BaseException:
        await provider.close()
        raise
    return provider


def _shared(informers: InformerSet | None) -> Informer:
    assert informers is not None
    return informers.get(NODES)


def _check_names(specs: Sequence[NodeSpec]) -> None:
    """A group's name is the value of a label and the beginning of names."""
    seen: set[str] = set()
    for spec in specs:
        longest = f"{spec.name}-{'x' * SUFFIX_LENGTH}"
        problems = [*is_dns1123_subdomain(spec.name), *is_label_value(longest)]
        if problems or spec.name in seen:
            why = problems[0] if problems else "there is another one of that name"
            raise CloudError(
                f"--nodes={spec}: {spec.name!r} cannot be a group of kubemark: {why}",
                kind=ErrorKind.CONFIGURATION,
                hint="Its name is the value of a label and begins the names of pods: lower case letters, digits and "
                "dashes, at most 54 of them.",
            )
        seen.add(spec.name)


async def _from_config_map(client: Client, name: str, namespace: str) -> list[HollowTemplate]:
    try:
        found = await client.get(CONFIG_MAPS, name, namespace)
    except NotFound as error:
        raise CloudError(
            f"the external cluster has no ConfigMap {namespace}/{name} with templates",
            kind=ErrorKind.CONFIGURATION,
            hint="See deploy/kubemark for one.",
        ) from error
    templates: list[HollowTemplate] = []
    for key, text in sorted((found.get("data") or {}).items()):
        templates += parse_templates(text, f"ConfigMap {namespace}/{name}, key {key}")
    return templates
