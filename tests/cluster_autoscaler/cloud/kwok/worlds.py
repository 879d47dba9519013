"""Clusters with a kwok provider in them, on virtual time or real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.base.clock import Clock, VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NODES
from holokube.client.transport import Call, Transport, WatchEvent
from holokube.cluster_autoscaler.cloud.kwok.faults import Faults
from holokube.cluster_autoscaler.cloud.kwok.group import KwokNodeGroup
from holokube.cluster_autoscaler.cloud.kwok.marks import PREFIX, group_of
from holokube.cluster_autoscaler.cloud.kwok.provider import KwokProvider, build
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.store.store import Store
from holokube.testing.cluster import shared_catalog

HELD_S = 7200.0


def template(
    name: str = "worker",
    group: str = "",
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    labels: Mapping[str, str] | None = None,
    **settings: Any,
) -> JsonObject:
    """A template; settings are annotations, ``boot_delay="30s"`` say."""
    annotations = {f"{PREFIX}{key.replace('_', '-')}": str(value) for key, value in settings.items()}
    if group:
        annotations[f"{PREFIX}name"] = group
    size = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {}), "annotations": annotations},
        "spec": {},
        "status": {"capacity": size, "allocatable": size},
    }


class Stubborn:
    """A transport that fails when told to."""

    def __init__(self, clock: Clock, inner: Transport) -> None:
        self._clock = clock
        self._inner = inner
        self.server_takes_s = 0.0
        """How long the server thinks about a creation."""
        self.fail: Callable[[Call], BaseException | None] = lambda _call: None
        self.before: Callable[[Call], Awaitable[None]] | None = None
        self.calls: list[tuple[str, str]] = []

    async def call(self, call: Call) -> JsonObject:
        self.calls.append((call.verb, call.name))
        if self.before is not None:
            await self.before(call)
        failure = self.fail(call)
        if failure is not None:
            raise failure
        # As with any server, what was sent is carried out whether or not somebody waits for the answer.
        return await asyncio.shield(asyncio.create_task(self._carry_out(call)))

    async def _carry_out(self, call: Call) -> JsonObject:
        if self.server_takes_s and call.verb == "create":
            await self._clock.sleep(self.server_takes_s)
        return await self._inner.call(call)

    async def request(self, *what: Any, **more: Any) -> Any:
        return await self._inner.request(*what, **more)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self._inner.watch(call)

    async def close(self) -> None:
        await self._inner.close()


class KwokWorld:
    """A cluster in this process, or that of another client."""

    implements = frozenset(
        {"atomic_increase_size", "force_delete_nodes", "pricing", "has_instance", "options", "cleanup"}
    )

    def __init__(self, clock: Clock, client: Client, registry: Registry | None = None, *, seed: int = 0) -> None:
        self.clock = clock
        self.transport = Stubborn(clock, client.transport)
        self.client = Client(self.transport)
        self.rng = Rng(seed)
        self._registry = registry
        self.informers = InformerSet(clock, client, self.rng)
        self.provider: KwokProvider = cast("KwokProvider", None)
        self._templates: Sequence[JsonObject] | None = None
        self._environ: Mapping[str, str] = {}
        self.settle_s = 1.0

    @classmethod
    async def in_process(cls, clock: Clock, *, seed: int = 0) -> KwokWorld:
        """A fresh cluster, whose ``transport`` fails when told to."""
        registry = Registry(clock, Rng(seed).fork("apiserver"), Store(), catalog=shared_catalog())
        await bootstrap(registry)
        return cls(clock, Client(InProcessTransport(registry)), registry, seed=seed)

    async def start(
        self, templates: Sequence[JsonObject] | None = None, environ: Mapping[str, str] | None = None
    ) -> KwokWorld:
        """Builds the provider before its informer runs, as the autoscaler does."""
        self._templates = templates
        self._environ = environ or {}
        self.provider = await build(
            self.clock, self.client, self.informers, self.rng, environ=self._environ, templates=templates
        )
        self.informers.get(NODES).start()
        await self.informers.synced()
        return self

    def group(self, name: str) -> KwokNodeGroup:
        return cast("KwokNodeGroup", next(each for each in self.provider.node_groups() if each.id == name))

    def set_faults(self, faults: Faults) -> None:
        for each in self.provider.node_groups():
            group = cast("KwokNodeGroup", each)
            group.settings = replace(group.settings, faults=faults)

    async def settle(self) -> None:
        await self.clock.sleep(self.settle_s)

    async def hold(self) -> None:
        self.set_faults(Faults(boot_delay_s=(HELD_S, HELD_S)))

    async def release(self) -> None:
        self.set_faults(Faults())
        await self.clock.sleep(HELD_S)

    async def nodes(self) -> dict[str, JsonObject]:
        return {node["metadata"]["name"]: node for node in (await self.client.list_all(NODES)).items}

    async def add_foreign_node(self, name: str) -> JsonObject:
        node = template(name, labels={"kubernetes.io/hostname": name})
        node["spec"] = {"providerID": f"metal://{name}"}
        made = await self.client.create(NODES, node)
        await self.clock.sleep(0.1)
        return made

    async def restart(self) -> None:
        await self.provider.close()
        await self.informers.get(NODES).stop()
        self.informers = InformerSet(self.clock, self.client, self.rng)
        await self.start(self._templates, self._environ)

    async def close(self) -> None:
        if self.provider is not None:
            await self.provider.close()
        await self.informers.get(NODES).stop()
        await self.client.close()
        if self._registry is not None:
            await self._registry.close()


class SlowWorld(KwokWorld):
    """Machines always take their time."""

    async def hold(self) -> None:
        """Nothing to do."""

    async def release(self) -> None:
        """Nothing to do."""


def run(test: Callable[[KwokWorld], Awaitable[None]], *, seed: int = 0) -> None:
    async def main(clock: VirtualClock) -> None:
        world = await KwokWorld.in_process(clock, seed=seed)
        try:
            await test(world)
        finally:
            await world.close()

    run_virtual(main)


async def sizes(world: KwokWorld, name: str) -> tuple[int, int]:
    """The target and the nodes of a group."""
    there = [node for node in (await world.nodes()).values() if group_of(node) == name]
    return await world.group(name).target_size(), len(there)


def created(call: Call) -> bool:
    return call.verb == "create" and call.resource == NODES
