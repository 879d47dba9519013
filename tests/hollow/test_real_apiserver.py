"""A small fleet against the real kube-apiserver, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import EVENTS, LEASES, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS
from holokube.hollow.fleet import FleetOptions
from holokube.hollow.profile import named_profile
from holokube.kube.conditions import is_true
from holokube.testing.controlplane import ControlPlane
from tests.builders import pod
from tests.hollow.worlds import fake_node, start_fleet


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await check():  # noqa: ASYNC110 - nothing tells when a server is done
            await asyncio.sleep(0.1)


async def make_namespace(client: Client, name: str) -> None:
    """With the service account that a controller manager would make."""
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, name)


def run(plane: ControlPlane, test: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        access = load_access(str(plane.kubeconfig))
        async with Client(HttpTransport(WallClock(), access)) as client:
            async with asyncio.timeout(60):
                await test(client)

    asyncio.run(main())


def test_fifty_nodes_and_their_pods_live_on_a_real_server(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        running = await start_fleet(WallClock(), client, FleetOptions(label_selector="fleet=fifty"))
        await make_namespace(client, "fifty")
        for number in range(50):
            await client.create(NODES, fake_node(f"fifty-{number}", fleet="fifty"))
        for number in range(100):
            given = pod(f"p{number}", "fifty", node=f"fifty-{number % 50}",
                        automountServiceAccountToken=False)  # fmt: skip
            await client.create(PODS, given)

        async def all_up() -> bool:
            nodes = (await client.list(NODES, label_selector="fleet=fifty")).items
            pods = (await client.list(PODS, "fifty")).items
            return all(is_true(node, "Ready") for node in nodes) and all(is_true(item, "Ready") for item in pods)

        await eventually(all_up)
        await asyncio.sleep(1)
        assert running.transport.calls["patch nodes/status"] == 50
        assert running.transport.calls["patch pods/status"] == 100
        assert running.fleet.pods.stats.refused == running.fleet.pods.stats.errors == 0
        leases = (await client.list(LEASES, "kube-node-lease")).items
        assert len([item for item in leases if item["spec"].get("holderIdentity") == "one"]) == 50
        await client.delete_collection(PODS, "fifty")

        async def all_gone() -> bool:
            return not (await client.list(PODS, "fifty")).items

        await eventually(all_gone)
        await running.end()

    run(real_apiserver, test)


def test_the_kubelet_profile_is_accepted_by_a_real_server(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        options = FleetOptions(label_selector="fleet=real-life", profile=named_profile("kubelet"))
        running = await start_fleet(WallClock(), client, options)
        await make_namespace(client, "life")
        await client.create(NODES, fake_node("life", fleet="real-life"))
        given = pod(
            "p", "life", node="life", automountServiceAccountToken=False,
            initContainers=[{"name": "i", "image": "registry.example/i:1"},
                            {"name": "s", "image": "registry.example/s:1", "restartPolicy": "Always"}],
        )  # fmt: skip
        await client.create(PODS, given)

        async def is_ready() -> bool:
            return is_true(await client.get(PODS, "p", "life"), "Ready")

        await eventually(is_ready)
        sent = running.transport.calls["patch pods/status"]
        await asyncio.sleep(1)
        assert running.transport.calls["patch pods/status"] == sent
        await client.delete(PODS, "p", "life")

        async def is_gone() -> bool:
            return not (await client.list(PODS, "life")).items

        await eventually(is_gone)
        reasons = {event["reason"] for event in (await client.list(EVENTS, "life")).items}
        assert {"Pulled", "Created", "Started", "Killing"} <= reasons
        assert running.fleet.pods.stats.refused == running.fleet.pods.stats.errors == running.fleet.events.lost == 0
        await running.end()

    run(real_apiserver, test)
