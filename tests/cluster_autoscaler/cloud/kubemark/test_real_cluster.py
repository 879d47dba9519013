"""The kubemark provider on a real control plane, with a `holokube fleet` process in the place of each container.

One cluster is both the external and the kubemark cluster, as upstream allows. Its one machine is hollow, so the test
starts what the containers of the hollow-node pods would be, with exactly their arguments.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client, PatchType
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NAMESPACES, NODES, PODS, REPLICATION_CONTROLLERS
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import GROUP_LABEL
from holokube.cluster_autoscaler.cloud.kubemark.node_spec import NodeSpec
from holokube.cluster_autoscaler.cloud.kubemark.provider import KubemarkProvider, build
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.kube.conditions import is_true
from holokube.kube.errors import AlreadyExists
from holokube.kube.node_flags import expand
from holokube.kube.types import JsonObject
from holokube.runtime.stop import StopSignal
from holokube.testing.controlplane import ControlPlane
from tests.cluster_autoscaler.cloud.kubemark.worlds import TEMPLATE

GROUP = "km-real"
HOST = "km-real-host"
TIMEOUT_S = 60.0


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not await check():  # noqa: ASYNC110 - nothing tells when a server is done
            await asyncio.sleep(0.05)


class Containers:
    """Runs the container of each Running hollow-node pod as a process, and ends it with the pod."""

    def __init__(self, client: Client, kubeconfig: Path, log: Path) -> None:
        self._client = client
        self._kubeconfig = kubeconfig
        self._log = log
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: list[subprocess.Popen[bytes]] = []

    async def look(self) -> None:
        pods = (await self._client.list(PODS, "kubemark", label_selector=f"{GROUP_LABEL}={GROUP}")).items
        wanted = {pod["metadata"]["name"]: pod for pod in pods if pod["status"]["phase"] == "Running"}
        for name in self._running.keys() - wanted.keys():
            self._ended.append(self._running.pop(name))
            self._ended[-1].terminate()
        for name in wanted.keys() - self._running.keys():
            (container,) = wanted[name]["spec"]["containers"]
            self._running[name] = self._start(name, container["args"])

    def _start(self, name: str, given: list[str]) -> subprocess.Popen[bytes]:
        *arguments, last = (expand(argument, {"NODE_NAME": name, "NODE_GROUP": GROUP}) for argument in given)
        assert last.startswith("--kubeconfig=")
        command = [sys.executable, "-m", "holokube", *arguments, f"--kubeconfig={self._kubeconfig}"]
        with self._log.open("ab") as stream:
            return subprocess.Popen(command, stdout=stream, stderr=stream)

    def stop(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in (*self._running.values(), *self._ended):
            assert process.wait(TIMEOUT_S) == 0


@asynccontextmanager
async def host(client: Client) -> AsyncIterator[None]:
    """A machine of the external cluster."""
    options = FleetOptions(label_selector=f"kubernetes.io/hostname={HOST}")
    fleet, stop = Fleet(WallClock(), client, options, rng=Rng(1), identity="km-real"), StopSignal()
    running = asyncio.create_task(fleet.run(stop))
    try:
        await fleet.register([HOST])
        yield
    finally:
        stop.set()
        await running


async def started(client: Client) -> KubemarkProvider:
    # In one cluster with its own nodes, hollow-node pods must keep to the machine below.
    template = TEMPLATE.read_text().replace(
        "      automountServiceAccountToken", f"      nodeSelector: {{kubernetes.io/hostname: {HOST}}}\n"
        "      automountServiceAccountToken", 1,
    )  # fmt: skip
    return await build(
        WallClock(), client, client, None, Rng("km-real"), nodes=[NodeSpec(1, 3, GROUP)], template_manifest=template
    )


async def ours(client: Client) -> dict[str, JsonObject]:
    listed = (await client.list(NODES, label_selector=f"{GROUP_LABEL}={GROUP}")).items
    return {node["metadata"]["name"]: node for node in listed}


async def tidy(client: Client) -> None:
    controllers = (await client.list(REPLICATION_CONTROLLERS, "kubemark")).items
    for controller in controllers:
        await client.delete(REPLICATION_CONTROLLERS, controller["metadata"]["name"], "kubemark")
    for name in [*(await ours(client)), HOST, "km-real-stranger"]:
        await client.delete(NODES, name)
    for pod in (await client.list(PODS, "kubemark")).items:
        await client.delete(PODS, pod["metadata"]["name"], "kubemark", grace_s=0)


async def lives_through_it(client: Client, containers: Containers) -> None:
    async def ready(count: int) -> bool:
        await containers.look()
        nodes = await ours(client)
        return len(nodes) == count and all(is_true(node, "Ready") for node in nodes.values())

    async def one_pod_is_left() -> bool:
        await containers.look()
        return len((await client.list(PODS, "kubemark")).items) == 1

    async with await started(client) as provider:
        (group,) = provider.node_groups()
        assert await group.target_size() == 1, "the minimum is created at the start"
        await group.increase_size(1)
        assert await group.target_size() == 2
        await eventually(lambda: ready(2))
        nodes = await ours(client)
        ids = sorted(instance.id for instance in await group.nodes())
        assert ids == sorted(node["spec"]["providerID"] for node in nodes.values())
        template = (await group.template_node_info()).node
        for node in nodes.values():
            assert node["status"]["allocatable"] == template["status"]["allocatable"]
            assert node["metadata"]["labels"].keys() == template["metadata"]["labels"].keys()
    # Another process goes on where this one was.
    async with await started(client) as provider:
        (group,) = provider.node_groups()
        assert await group.target_size() == len(await group.nodes()) == 2
        doomed, kept = sorted(nodes)
        await group.delete_nodes([nodes[doomed]])
        assert await group.target_size() == 1
        await eventually(one_pod_is_left)
        assert doomed in await ours(client), "its node stays until it is known to be silent"
        # What the node controller writes after fifty seconds.
        silent = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}
        for name in (doomed, "km-real-stranger"):
            await client.patch_status(NODES, name, silent, type=PatchType.STRATEGIC)
        await eventually(lambda: ready(1))
        assert [*await ours(client)] == [kept]
        assert len((await client.list(REPLICATION_CONTROLLERS, "kubemark")).items) == 1
        await client.get(NODES, "km-real-stranger")


def test_nodes_come_and_go_and_a_restart_loses_nothing(real_cluster: ControlPlane, tmp_path: Path) -> None:
    async def main() -> None:
        async with Client(HttpTransport(WallClock(), load_access(str(real_cluster.kubeconfig)))) as client:
            try:
                await client.create(NAMESPACES, {"metadata": {"name": "kubemark"}})
            except AlreadyExists:
                await tidy(client)
            stranger = {
                "metadata": {"name": "km-real-stranger", "labels": {GROUP_LABEL: GROUP + "-not"}},
                "spec": {"providerID": "gce://km-real-stranger", "unschedulable": True},
            }
            await client.create(NODES, stranger)
            containers = Containers(client, real_cluster.kubeconfig, tmp_path / "fleet.log")
            async with host(client):
                try:
                    await lives_through_it(client, containers)
                finally:
                    containers.stop()
                    await tidy(client)

    asyncio.run(main())
