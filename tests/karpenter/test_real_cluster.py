"""Karpenter on a real control plane: a pool is applied, pods wait, nodes come, pods run; pods go, and so do nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from holokube.base.clock import Clock, WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.karpenter.api.install import install
from holokube.karpenter.api.labels import DO_NOT_DISRUPT, KWOK_NODE_LABEL, NODEPOOL_LABEL
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.app import COMPONENT, build
from holokube.karpenter.settings import Settings
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.controlplane import ControlPlane
from tests.karpenter.lab import node_class, node_pool, small_catalog, workload

POOL = "real"
PODS_WANTED = 200
LIMIT_S = 90.0

pytestmark = [pytest.mark.slow]


@asynccontextmanager
async def karpenter(clock: Clock, client: Client, seed: str) -> AsyncIterator[App]:
    """The controllers, and a hollow fleet for the nodes that they make; cut off, not stopped, at the end."""
    rng = Rng(seed)
    informers = InformerSet(clock, client, rng.fork("informers"))
    recorder = EventRecorder(clock, client, COMPONENT, rng=rng.fork("events"))
    # The cloud is the same for every run of the controllers.
    parts = build(
        clock, client, informers, recorder, Rng("cloud"), Settings(batch_max_duration_s=3.0), small_catalog(),
        installs_definitions=False,
    )  # fmt: skip
    app = App(clock)
    components: list[Component] = [recorder, informers.runner(), *parts]
    for component in components:
        app.add(component)
    running = asyncio.create_task(app.run())
    try:
        yield app
    finally:
        app.stop()
        app.stop()
        await running


@asynccontextmanager
async def hollow_fleet(clock: Clock, client: Client) -> AsyncIterator[None]:
    options = FleetOptions(annotation_selector=f"{KWOK_NODE_LABEL}=fake")
    app = App(clock)
    app.add(Fleet(clock, client, options, rng=Rng("fleet"), identity="karpenter-test"))
    running = asyncio.create_task(app.run())
    try:
        yield
    finally:
        app.stop()
        await running


def ours(made: JsonObject) -> JsonObject:
    """Pods that go to nodes of this pool alone: the cluster may have others."""
    made["spec"]["template"]["spec"].update(nodeSelector={NODEPOOL_LABEL: POOL}, terminationGracePeriodSeconds=1)
    return made


async def until(clock: Clock, what: str, is_so: Callable[[], Awaitable[bool]]) -> None:
    deadline_s = clock.monotonic() + LIMIT_S
    while not await is_so():
        assert clock.monotonic() < deadline_s, f"waited in vain until {what}"
        await clock.sleep(0.25)


async def clean_up(client: Client) -> None:
    for name in ("web", "kept", "guarded"):
        for resource in (DEPLOYMENTS, POD_DISRUPTION_BUDGETS):
            try:
                await client.delete(resource, name, "default")
            except NotFound:
                continue


async def scenario(plane: ControlPlane) -> None:
    clock = WallClock()
    async with Client(HttpTransport(clock, load_access(str(plane.kubeconfig)))) as client:
        selector = f"{NODEPOOL_LABEL}={POOL}"

        async def nodes() -> int:
            return len((await client.list(NODES, label_selector=selector)).items)

        async def running(app: str) -> list[JsonObject]:
            found = (await client.list(PODS, "default", label_selector=f"app={app}")).items
            return [pod for pod in found if pod["status"].get("phase") == "Running"]

        async def all_run() -> bool:
            return len(await running("web")) == PODS_WANTED

        async def only_the_kept_are_left() -> bool:
            claims = (await client.list(NODE_CLAIMS, label_selector=selector)).items
            return 1 <= await nodes() <= 2 and len(claims) == await nodes()

        async def all_are_gone() -> bool:
            return await nodes() == 0 and not (await client.list(NODE_CLAIMS, label_selector=selector)).items

        await install(clock, client)
        await client.create(KWOK_NODE_CLASSES, node_class(POOL))
        pool = node_pool(POOL, disruption={"consolidateAfter": "1s"})
        pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = POOL
        await client.create(NODE_POOLS, pool)
        kept = ours(workload("kept", 1, cpu="100m"))
        kept["spec"]["template"]["metadata"]["annotations"] = {DO_NOT_DISRUPT: "true"}
        guard = {"metadata": {"name": "guarded"}, "spec": {
            "maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}}}  # fmt: skip
        await client.create(POD_DISRUPTION_BUDGETS, guard, "default")
        async with hollow_fleet(clock, client):
            async with karpenter(clock, client, "first"):
                for made in (workload("web", PODS_WANTED), kept, workload("guarded", 1, cpu="100m")):
                    await client.create(DEPLOYMENTS, ours(made), "default")
                await until(clock, "all pods run", all_run)
                held = {pod["metadata"]["uid"] for app in ("kept", "guarded") for pod in await running(app)}
                assert len(held) == 2
                await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}}, namespace="default")
                await clock.sleep(5)
            # It was cut off in the middle of its work; another one takes over.
            async with karpenter(clock, client, "second"):
                await until(clock, "all nodes but those with held pods are gone", only_the_kept_are_left)
                assert {pod["metadata"]["uid"] for app in ("kept", "guarded") for pod in await running(app)} == held
                await clean_up(client)
                # The claims are the pool's, and are deleted with it; each takes its node along.
                await client.delete(NODE_POOLS, POOL)
                await until(clock, "all nodes are gone", all_are_gone)
                await client.delete(KWOK_NODE_CLASSES, POOL)


def test_nodes_come_with_pods_and_go_with_them_while_held_pods_keep_theirs(real_cluster: ControlPlane) -> None:
    asyncio.run(scenario(real_cluster))
