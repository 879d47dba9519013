"""A cluster with everything that a real one has, in process and on virtual time, and the autoscaler on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from holokube.client.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, NODES, PODS
from holokube.cluster_autoscaler.cloud.kwok.provider import build
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.loop.autoscaler import Autoscaler
from holokube.cluster_autoscaler.loop.event_correlation import event_recorder
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.types import JsonObject
from holokube.runtime.app import App
from holokube.runtime.informers import InformerSet
from holokube.testing import Cluster
from tests.builders import deployment

GROUP = "cluster-autoscaler.kwok.nodegroup/"


def template(group: str, cpu: str = "4", memory: str = "16Gi", **annotations: str) -> JsonObject:
    """The node that a kwok group is made from; annotations are those of the group."""
    marks = {GROUP + "name": group, **{GROUP + key.replace("_", "-"): text for key, text in annotations.items()}}
    resources = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": f"template-{group}", "annotations": marks},
        "spec": {}, "status": {"capacity": resources, "allocatable": resources},
    }  # fmt: skip


def workload(name: str, replicas: int, cpu: str = "900m", **spec: Any) -> JsonObject:
    """A Deployment of pods with a request."""
    made = deployment(name, replicas=replicas, app=name)
    pod = made["spec"]["template"]["spec"]
    pod["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    pod.update(spec)
    return made


class Lab:
    """What a test does to the cluster and sees of it."""

    def __init__(
        self, cluster: Cluster, options: AutoscalerOptions, make: Callable[[InformerSet], Any], *,
        clean_up: bool, turn_s_per_pod: float = 0.0,
    ) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.clock = cluster.clock
        self.turns: list[TurnReport] = []
        self.provider: CloudProvider | None = None
        informers = InformerSet(cluster.clock, cluster.client, cluster.rng.fork("informers"))
        recorder = event_recorder(cluster.clock, cluster.client, options, cluster.rng.fork("events"))

        async def made() -> CloudProvider:
            self.provider = await make(informers)
            return self.provider

        self.autoscaler = Autoscaler(
            cluster.clock, cluster.client, informers, recorder, cluster.rng.fork("autoscaler"), made, options,
            clean_up=clean_up, on_turn=self.turns.append, turn_s_per_pod=turn_s_per_pod)
        self.app = App(cluster.clock)
        self.app.add(recorder)
        self.app.add(informers.runner())

    async def nodes(self) -> list[JsonObject]:
        return (await self.client.list_all(NODES)).items

    async def names(self) -> set[str]:
        return {node["metadata"]["name"] for node in await self.nodes()}

    async def running(self) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in (await self.client.list_all(PODS)).items)

    async def scale(self, name: str, replicas: int) -> None:
        await self.client.patch(DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, namespace="default")

    async def apply(self, *objects: JsonObject) -> None:
        for found in objects:
            await self.client.create(DEPLOYMENTS, found, "default")

    async def reasons(self, kind: str = "ConfigMap") -> list[str]:
        """The reasons of the autoscaler's events on objects of a kind, in the order they were told."""
        events = (await self.client.list_all(EVENTS)).items
        ours = [one for one in events if one["source"].get("component") == "cluster-autoscaler"]
        return [one["reason"] for one in sorted(ours, key=lambda one: int(one["metadata"]["resourceVersion"]))
                if one["involvedObject"]["kind"] == kind]

    async def status(self) -> str:
        found = await self.client.get(CONFIG_MAPS, "cluster-autoscaler-status", "kube-system")
        return str(found["data"]["status"])

    async def until(self, is_so: Callable[[], Any], within_s: float = 3600.0) -> None:
        """Let time pass, a second at a time, until something is so."""
        deadline_s = self.clock.monotonic() + within_s
        while not await is_so():
            assert self.clock.monotonic() < deadline_s, f"not so after {within_s} s"
            await self.clock.sleep(1.0)

    async def until_nodes(self, count: int, within_s: float = 3600.0) -> None:
        async def are_there() -> bool:
            return len(await self.nodes()) == count

        await self.until(are_there, within_s)


@asynccontextmanager
async def lab(
    cluster: Cluster, templates: Sequence[JsonObject], options: AutoscalerOptions | None = None,
    *, loop: bool = True, clean_up: bool = False, turn_s_per_pod: float = 0.0,
) -> AsyncIterator[Lab]:
    """The autoscaler with kwok groups, running until the block ends; then it is stopped as by a signal.

    Without ``loop``, informers and events run, and the loop itself is left to an election.
    """

    async def make(informers: InformerSet) -> CloudProvider:
        return await build(cluster.clock, cluster.client, informers, cluster.rng.fork("kwok"), environ={},
                           templates=templates)

    made = Lab(cluster, options or AutoscalerOptions(), make, clean_up=clean_up, turn_s_per_pod=turn_s_per_pod)
    if loop:
        made.app.add(made.autoscaler, essential=True)
    running = asyncio.create_task(made.app.run())
    try:
        yield made
    finally:
        made.app.stop()
        await running
