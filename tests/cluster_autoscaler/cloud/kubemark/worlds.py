"""Two clusters on virtual time with a kubemark provider between them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.resources import NODES, PODS, REPLICATION_CONTROLLERS
from holokube.cluster.kubemark import TwoClusterOptions, TwoClusters
from holokube.cluster_autoscaler.cloud.kubemark.node_spec import NodeSpec
from holokube.cluster_autoscaler.cloud.kubemark.provider import KubemarkProvider, build
from holokube.cluster_autoscaler.cloud.provider import NodeGroup
from holokube.kube.conditions import is_true
from holokube.kube.types import JsonObject
from holokube.testing.cluster import shared_catalog

TEMPLATE = Path(__file__).parents[4] / "deploy" / "kubemark" / "external" / "template.yaml"
SILENCE_S = 75.0
"""Until the control plane has noticed that a kubelet is silent, and the provider has taken its node away."""


class World:
    """Both clusters, and the provider that runs now."""

    def __init__(self, clock: VirtualClock, specs: Sequence[NodeSpec], template: str) -> None:
        self.clock = clock
        self.specs = specs
        self.template = template
        self.template_config_map = ""
        self.rng = Rng(7)
        self.clusters = TwoClusters.in_process(clock, self.rng, TwoClusterOptions(), catalog=shared_catalog())
        self.provider: KubemarkProvider
        self.external: FaultyTransport
        """What lies between the provider and the external cluster; no fault unless told."""
        self._starts = 0

    @classmethod
    async def start(cls, clock: VirtualClock, *specs: str) -> Self:
        """With the provider and the template that is shipped."""
        world = await cls.without_provider(clock, *specs, template=TEMPLATE.read_text())
        await world.start_provider()
        return world

    @classmethod
    async def without_provider(cls, clock: VirtualClock, *specs: str, template: str = "") -> Self:
        world = cls(clock, [NodeSpec.parse(spec) for spec in specs], template)
        await world.clusters.start()
        return world

    async def start_provider(self) -> None:
        self._starts += 1
        rng = self.rng.fork(f"provider {self._starts}")
        transport = self.clusters.external_client.transport
        self.external = FaultyTransport(self.clock, transport, rng.fork("faults"), Faults())
        self.provider = await build(
            self.clock, Client(self.external), self.clusters.kubemark_client, None, rng, nodes=self.specs,
            template_manifest=self.template, template_config_map=self.template_config_map,
        )  # fmt: skip

    async def restart(self) -> None:
        await self.provider.close()
        await self.start_provider()

    async def close(self) -> None:
        if hasattr(self, "provider"):
            await self.provider.close()
        await self.clusters.stop()

    def group(self, name: str) -> NodeGroup:
        return next(group for group in self.provider.node_groups() if group.id == name)

    async def nodes(self) -> dict[str, JsonObject]:
        listed = await self.clusters.kubemark_client.list(NODES)
        return {node["metadata"]["name"]: node for node in listed.items}

    async def ready(self) -> list[str]:
        return [name for name, node in (await self.nodes()).items() if is_true(node, "Ready")]

    async def controllers(self) -> list[JsonObject]:
        return (await self.clusters.external_client.list(REPLICATION_CONTROLLERS, "kubemark")).items

    async def hollow_pods(self) -> list[JsonObject]:
        return (await self.clusters.external_client.list(PODS, "kubemark")).items

    async def hold(self) -> None:
        """New hollow-node pods find no place."""
        await self._cordon(True)

    async def release(self) -> None:
        await self._cordon(False)

    async def _cordon(self, unschedulable: bool) -> None:
        client = self.clusters.external_client
        for node in (await client.list(NODES)).items:
            await client.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": unschedulable}})
        # The scheduler has to hear of it.
        await self.clock.sleep(1.0)

    async def settle(self) -> None:
        await self.clock.sleep(SILENCE_S)

    async def add_foreign_node(self, name: str) -> JsonObject:
        return await self.clusters.kubemark_client.create(NODES, {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"providerID": f"somewhere://{name}"},
        })  # fmt: skip


def in_world(*specs: str) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    """Runs a test in a world with these groups and a provider."""

    def run(body: Callable[[World], Awaitable[None]]) -> None:
        async def main(clock: VirtualClock) -> None:
            world = await World.start(clock, *specs)
            try:
                await body(world)
            finally:
                await world.close()

        run_virtual(main)

    return run


def in_bare_world(*specs: str, template: str = "") -> Callable[[Callable[[World], Awaitable[None]]], None]:
    """Runs a test that starts the provider by itself."""

    def run(body: Callable[[World], Awaitable[None]]) -> None:
        async def main(clock: VirtualClock) -> None:
            world = await World.without_provider(clock, *specs, template=template)
            try:
                await body(world)
            finally:
                await world.close()

        run_virtual(main)

    return run
