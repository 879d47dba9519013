"""A whole cluster in process and on virtual time, with Karpenter on it, and what tests do to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import DEPLOYMENTS, EVENTS, NODES, PODS, Resource
from holokube.karpenter.api.install import install
from holokube.karpenter.api.labels import NODEPOOL_LABEL, TERMINATION_FINALIZER
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.app import COMPONENT, build
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provider.faults import Faults
from holokube.karpenter.settings import Settings
from holokube.karpenter.strategy import KARPENTER, Strategy
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import (
    ON_DEMAND,
    SPOT,
    Catalog,
    InstanceType,
    Offering,
    type_requirements,
)
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.journal import Journal
from holokube.testing import Cluster
from tests.builders import deployment

GIB_MILLI = 1024**3 * 1000
ZONES = ("zone-a", "zone-b")


def instance_type(name: str, cores: int, gib: int, price: float, *, zones: tuple[str, ...] = ZONES,
                  extra: tuple[Offering, ...] = ()) -> InstanceType:  # fmt: skip
    """An instance type that costs the same in all zones, and on spot seven tenths of it."""
    offerings = (
        *(Offering(zone, ON_DEMAND, price) for zone in zones),
        *(Offering(zone, SPOT, round(price * 0.7, 6)) for zone in zones),
        *extra,
    )
    capacity = {"cpu": cores * 1000, "memory": gib * GIB_MILLI, "pods": 110_000}
    overhead = {"cpu": 100, "memory": GIB_MILLI // 100}
    requirements = type_requirements(name, "amd64", ("linux",), offerings)
    return InstanceType(name, requirements, capacity, overhead, offerings)


def small_catalog() -> Catalog:
    """Three sizes of one shape; a larger one is a little cheaper by the core."""
    return Catalog([
        instance_type("small", 2, 8, 0.10), instance_type("medium", 4, 16, 0.19), instance_type("large", 8, 32, 0.36),
    ])  # fmt: skip


def node_class(name: str = "default", delay: str = "") -> JsonObject:
    spec = {"nodeRegistrationDelay": delay} if delay else {}
    version = KWOK_NODE_CLASSES.api_version
    return {"apiVersion": version, "kind": "KWOKNodeClass", "metadata": {"name": name}, "spec": spec}


def node_pool(name: str = "default", *, disruption: JsonObject | None = None, limits: JsonObject | None = None,
              requirements: list[JsonObject] | None = None, **template: Any) -> JsonObject:  # fmt: skip
    """A pool of on-demand nodes that is consolidated as soon as nothing has changed for 30 s."""
    on_demand = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]
    spec: JsonObject = {
        "template": {
            "spec": {
                "requirements": on_demand if requirements is None else requirements,
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "expireAfter": "Never",
                **template,
            }
        },
        "disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}], **(disruption or {})},
    }
    if limits:
        spec["limits"] = limits
    return {"apiVersion": NODE_POOLS.api_version, "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def workload(name: str, replicas: int, cpu: str = "900m", memory: str = "64Mi", **spec: Any) -> JsonObject:
    """A Deployment of pods with a request."""
    made = deployment(name, replicas=replicas, app=name)
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    pod.update(spec)
    return made


class Controllers:
    """One run of Karpenter: a process that can be stopped, or killed."""

    def __init__(
        self, cluster: Cluster, catalog: Catalog, settings: Settings, faults: Faults | None, seed: str, client: Client,
        strategy: Strategy = KARPENTER,
    ) -> None:  # fmt: skip
        rng = Rng(seed)
        self.metrics = KarpenterMetrics()
        self.journal = Journal()
        informers = InformerSet(cluster.clock, client, rng.fork("informers"))
        recorder = EventRecorder(cluster.clock, client, COMPONENT, rng=rng.fork("events"))
        parts = build(
            cluster.clock, client, informers, recorder, rng.fork("karpenter"), settings, catalog, faults=faults,
            metrics=self.metrics, installs_definitions=False, journal=self.journal, strategy=strategy,
        )  # fmt: skip
        self.parts = {part.name: part for part in parts}
        self.app = App(cluster.clock)
        components: list[Component] = [recorder, informers.runner(), *parts]
        for component in components:
            self.app.add(component)
        self._running = asyncio.create_task(self.app.run())

    async def stop(self) -> None:
        self.app.stop()
        await self._running

    async def kill(self) -> None:
        """What a process leaves that is killed: whatever was under way is cut off where it waits."""
        self.app.stop()
        self.app.stop()
        await self._running

    def value(self, name: str, **labels: str) -> float:
        """A sample of a metric; the sum over those that have these labels."""
        found = [
            sample.value
            for family in self.metrics.registry.collect()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        return sum(found)


class Lab:
    """What a test does to the cluster and sees of it."""

    def __init__(
        self, cluster: Cluster, catalog: Catalog, settings: Settings, faults: Faults | None,
        strategy: Strategy = KARPENTER,
    ) -> None:  # fmt: skip
        self.cluster = cluster
        self.client = cluster.client
        self.clock = cluster.clock
        self._catalog = catalog
        self._settings = settings
        self._faults = faults
        self._strategy = strategy
        self._starts = 0
        self.controllers: Controllers | None = None

    @property
    def running(self) -> Controllers:
        assert self.controllers is not None, "Karpenter does not run"
        return self.controllers

    def start(self, client: Client | None = None) -> Controllers:
        """Starts Karpenter, anew perhaps."""
        self._starts += 1
        # The cloud stays the same cloud, whoever asks it.
        seed = f"lab/{self.cluster.seed}"
        self.controllers = Controllers(
            self.cluster, self._catalog, self._settings, self._faults, seed, client or self.client, self._strategy
        )
        return self.controllers

    async def apply(self, *objects: JsonObject) -> None:
        resources: dict[str, Resource] = {
            "Deployment": DEPLOYMENTS, "NodePool": NODE_POOLS, "KWOKNodeClass": KWOK_NODE_CLASSES, "Pod": PODS,
        }  # fmt: skip
        for obj in objects:
            await self.client.create(resources[obj["kind"]], obj)

    async def scale(self, name: str, replicas: int) -> None:
        await self.client.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, namespace="default")

    async def nodes(self) -> list[JsonObject]:
        """Nodes that Karpenter made."""
        found = (await self.client.list_all(NODES)).items
        return [node for node in found if NODEPOOL_LABEL in (node["metadata"].get("labels") or {})]

    async def types(self) -> list[str]:
        """The instance types of the nodes."""
        return sorted(node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in await self.nodes())

    async def claims(self) -> list[JsonObject]:
        return (await self.client.list_all(NODE_CLAIMS)).items

    async def pods(self) -> list[JsonObject]:
        return (await self.client.list_all(PODS)).items

    async def running_pods(self) -> int:
        return sum((pod.get("status") or {}).get("phase") == "Running" for pod in await self.pods())

    async def claim(self, name: str) -> JsonObject:
        return await self.client.get(NODE_CLAIMS, name)

    async def pool(self, name: str = "default") -> JsonObject:
        return await self.client.get(NODE_POOLS, name)

    async def reasons(self, kind: str) -> list[str]:
        """The reasons of Karpenter's events on objects of a kind."""
        events = (await self.client.list_all(EVENTS)).items
        return [one["reason"] for one in events
                if one["involvedObject"]["kind"] == kind and one["source"].get("component") == COMPONENT]  # fmt: skip

    async def until(self, is_so: Callable[[], Awaitable[bool]], within_s: float = 3600.0) -> float:
        """Lets time pass until something is so; how long that took."""
        started_s = self.clock.monotonic()
        while not await is_so():
            assert self.clock.monotonic() - started_s < within_s, f"not so after {within_s} s"
            await self.clock.sleep(1.0)
        return self.clock.monotonic() - started_s

    async def until_running(self, pods: int, within_s: float = 600.0) -> float:
        async def do() -> bool:
            return await self.running_pods() == pods

        return await self.until(do, within_s)

    async def until_nodes(self, count: int, within_s: float = 3600.0) -> float:
        async def are_there() -> bool:
            return len(await self.nodes()) == count and len(await self.claims()) == count

        return await self.until(are_there, within_s)

    async def assert_nothing_leaked(self) -> None:
        """Every Node has its claim and the other way round, and nobody waits for an end that does not come."""
        nodes, claims = await self.nodes(), await self.claims()
        ids = [node["spec"]["providerID"] for node in nodes]
        assert sorted(ids) == sorted(claim["status"]["providerID"] for claim in claims)
        for obj in (*nodes, *claims):
            assert not obj["metadata"].get("deletionTimestamp"), obj["metadata"]["name"]
            assert TERMINATION_FINALIZER in obj["metadata"]["finalizers"], obj["metadata"]["name"]


@asynccontextmanager
async def lab(
    cluster: Cluster, *objects: JsonObject, catalog: Catalog | None = None, settings: Settings | None = None,
    faults: Faults | None = None, delay: str = "", strategy: Strategy = KARPENTER,
) -> AsyncIterator[Lab]:  # fmt: skip
    """Karpenter with a node class and these objects, running until the block ends."""
    made = Lab(cluster, catalog or small_catalog(), settings or Settings(), faults, strategy)
    await install(cluster.clock, cluster.client)
    await made.apply(node_class(delay=delay), *objects)
    made.start()
    try:
        yield made
    finally:
        if made.controllers is not None:
            await made.controllers.stop()
