"""Nodes that are left behind: taken away when they are silent and their machines gone, and not a moment earlier."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holokube.base.rng import Rng
from holokube.client.client import Client, PatchType
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.informer import Informer
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import GROUP_LABEL
from holokube.cluster_autoscaler.cloud.kubemark.node_reaper import NodeReaper
from holokube.testing import Cluster
from tests.builders import node


class Scene:
    """A reaper and the machines that it believes in."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.faulty = FaultyTransport(cluster.clock, cluster.client.transport, Rng(1), Faults())
        self.machines: set[str] = set()
        self.on_question: Callable[[str], Awaitable[None]] | None = None
        self.informer = Informer(cluster.clock, cluster.client, NODES)
        self.reaper = NodeReaper(cluster.clock, Client(self.faulty), self.informer, {"g"}, self.has_machine)

    async def has_machine(self, name: str) -> bool:
        if self.on_question is not None:
            await self.on_question(name)
        return name in self.machines

    async def add(self, name: str, ready: str = "True") -> None:
        made = node(name, **{GROUP_LABEL: "g"})
        await self.client.create(NODES, {**made, "spec": {"providerID": f"kubemark://{name}"}})
        await self.report(name, ready)

    async def report(self, name: str, ready: str) -> None:
        status = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
        await self.client.patch_status(NODES, name, status, type=PatchType.STRATEGIC)
        await self.cluster.clock.sleep(0.1)

    async def names(self) -> list[str]:
        return [found["metadata"]["name"] for found in (await self.client.list(NODES)).items]


def on_stage(body: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene(cluster)
        scene.informer.start()
        scene.reaper.start()
        try:
            await body(scene)
        finally:
            await scene.reaper.stop()
            await scene.informer.stop()

    with Cluster() as cluster:
        cluster.run(main())


def test_a_silent_node_goes_when_its_machine_is_gone() -> None:
    async def body(scene: Scene) -> None:
        scene.machines = {"alive"}
        for name in ("alive", "gone"):
            await scene.add(name)
        assert await scene.names() == ["alive", "gone"]
        for name in ("alive", "gone"):
            await scene.report(name, "Unknown")
        assert await scene.names() == ["alive"]

    on_stage(body)


def test_a_silent_node_goes_as_soon_as_somebody_says_that_its_machine_went() -> None:
    async def body(scene: Scene) -> None:
        scene.machines = {"n"}
        await scene.add("n", "Unknown")
        assert await scene.names() == ["n"]
        scene.machines.clear()
        await scene.cluster.clock.sleep(60.0)
        assert await scene.names() == ["n"], "nobody looked"
        scene.reaper.look("n")
        await scene.cluster.clock.sleep(0.1)
        assert await scene.names() == []

    on_stage(body)


def test_a_node_that_comes_back_at_the_last_moment_stays() -> None:
    async def body(scene: Scene) -> None:
        async def comes_back(name: str) -> None:
            scene.on_question = None
            await scene.report(name, "True")

        scene.on_question = comes_back
        await scene.add("n", "Unknown")
        await scene.cluster.clock.sleep(60.0)
        assert await scene.names() == ["n"]

    on_stage(body)


def test_what_the_server_refuses_is_tried_again() -> None:
    async def body(scene: Scene) -> None:
        scene.faulty.faults = Faults(internal_error=1.0)
        for name in ("a", "b"):
            await scene.add(name, "Unknown")
        await scene.cluster.clock.sleep(10.0)
        assert await scene.names() == ["a", "b"]
        assert scene.faulty.injected["internal_error"] >= 4
        scene.faulty.faults = Faults()
        await scene.cluster.clock.sleep(60.0)
        assert await scene.names() == []

    on_stage(body)


def test_a_node_without_the_label_goes_if_it_was_removed_on_purpose() -> None:
    async def body(scene: Scene) -> None:
        for name in ("removed", "other"):
            await scene.client.create(NODES, {**node(name), "spec": {"providerID": f"kubemark://{name}"}})
        scene.reaper.removed(["removed"])
        for name in ("removed", "other"):
            await scene.report(name, "Unknown")
        assert await scene.names() == ["other"]

    on_stage(body)
