"""``holokube fleet`` on a real control plane: a sibling dies, the API server dies, and nobody notices.

Whether a node ever turned NotReady or Unknown is read from when its Ready condition last changed: a node that
flapped and came back shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import LEASES, NODES, PODS
from holokube.hollow.leases import NAMESPACE
from holokube.kube.conditions import is_true
from holokube.kube.timeformat import parse_time
from holokube.testing.controlplane import COMPONENTS, ControlPlane
from holokube.testing.processes import ProcessError
from tests.builders import pod
from tests.conftest import run_control_plane
from tests.hollow.worlds import fake_node

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("real_fleet")]

NODES_EACH = 40
OUTAGE_S = 30.0
LEASE_S = 40.0
GRACE_S = 50.0
"""node-monitor-grace-period of kube-controller-manager 1.32 and later."""


@pytest.fixture(scope="module")
def own_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane that may be killed, which those that other tests share may not."""
    yield from run_control_plane(request, tmp_path_factory.mktemp("fleet-cluster"), COMPONENTS)


@contextlib.contextmanager
def fleet_process(plane: ControlPlane, log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "holokube", "fleet", f"--kubeconfig={plane.kubeconfig}", *arguments]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextlib.asynccontextmanager
async def connected(plane: ControlPlane, limit_s: float) -> AsyncIterator[Client]:
    async with asyncio.timeout(limit_s):
        async with Client(HttpTransport(WallClock(), load_access(str(plane.kubeconfig)))) as client:
            yield client


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    while not await check():  # noqa: ASYNC110 - nothing tells when a server is done
        await asyncio.sleep(0.5)


async def ready_since(client: Client, selector: str) -> dict[str, str]:
    """When each Ready node became so."""
    found: dict[str, str] = {}
    for node in (await client.list(NODES, label_selector=selector)).items:
        for condition in (node.get("status") or {}).get("conditions") or ():
            if condition["type"] == "Ready" and condition["status"] == "True":
                found[node["metadata"]["name"]] = condition["lastTransitionTime"]
    return found


async def leases_of(client: Client, prefix: str) -> list[dict[str, Any]]:
    leases = (await client.list(LEASES, NAMESPACE)).items
    return [lease["spec"] for lease in leases if lease["metadata"]["name"].startswith(prefix)]


def oldest_s(leases: list[dict[str, Any]]) -> float:
    return max(WallClock().time() - parse_time(lease["renewTime"]).timestamp() for lease in leases)


async def make_nodes(client: Client, prefix: str, count: int) -> None:
    for number in range(count):
        await client.create(NODES, fake_node(f"{prefix}-{number}", fleet=prefix))

    async def all_ready() -> bool:
        return len(await ready_since(client, f"fleet={prefix}")) == count

    await eventually(all_ready)


def test_a_sibling_takes_over_before_any_node_goes_not_ready(own_cluster: ControlPlane, tmp_path: Path) -> None:
    count = 2 * NODES_EACH

    async def test(first: subprocess.Popen[bytes], second: subprocess.Popen[bytes]) -> None:
        async with connected(own_cluster, 120) as client:
            await make_nodes(client, "pair", count)
            since = await ready_since(client, "fleet=pair")
            holders = [lease["holderIdentity"] for lease in await leases_of(client, "pair-")]
            assert set(holders) == {"first", "second"} and len(holders) == count
            first.kill()
            first.wait()
            ages: list[float] = []

            async def all_taken() -> bool:
                leases = await leases_of(client, "pair-")
                ages.append(oldest_s(leases))
                return all(lease["holderIdentity"] == "second" for lease in leases)

            await eventually(all_taken)
            # Taken when they ran out, and not before; well within what the controller manager waits.
            assert LEASE_S - 3 < max(ages) < GRACE_S - 3
            assert await ready_since(client, "fleet=pair") == since
            assert second.poll() is None
            second.send_signal(signal.SIGTERM)
            assert second.wait(20) == 0
            assert not any(lease.get("holderIdentity") for lease in await leases_of(client, "pair-"))

    selector = "--manage-nodes-with-label-selector=fleet=pair"
    with (
        fleet_process(own_cluster, tmp_path / "first.log", selector, "--shard=0/2", "--identity=first") as first,
        fleet_process(own_cluster, tmp_path / "second.log", selector, "--shard=1/2", "--identity=second") as second,
    ):
        asyncio.run(test(first, second))


def kill_and_restart(plane: ControlPlane, outage_s: float) -> None:
    """kill -9 of the API server; it comes back on the same address with the same etcd."""
    assert plane._processes is not None
    os.kill(plane.pids["kube-apiserver"], signal.SIGKILL)
    with contextlib.suppress(ProcessError):
        plane._processes.wait(5.0)
    plane._processes._events.clear()
    with contextlib.suppress(ProcessError):
        plane._processes.wait(outage_s)
    plane._spawn("kube-apiserver", plane._apiserver_flags())
    plane._await_answer("kube-apiserver", "/readyz")


def test_an_api_server_that_is_away_for_half_a_minute_costs_nothing(own_cluster: ControlPlane, tmp_path: Path) -> None:
    async def before(client: Client) -> tuple[dict[str, str], dict[str, str]]:
        await make_nodes(client, "outage", NODES_EACH)
        for number in range(NODES_EACH):
            await client.create(PODS, pod(f"outage-{number}", "default", node=f"outage-{number}"))

        async def all_up() -> bool:
            return len(await running(client)) == NODES_EACH

        await eventually(all_up)
        return await ready_since(client, "fleet=outage"), await running(client)

    async def running(client: Client) -> dict[str, str]:
        pods = (await client.list(PODS, "default")).items
        found = [item for item in pods if item["metadata"]["name"].startswith("outage-") and is_true(item, "Ready")]
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in found}

    async def after(client: Client, nodes: dict[str, str], pods: dict[str, str]) -> None:
        async def all_fresh() -> bool:
            return oldest_s(await leases_of(client, "outage-")) < 11.0

        await eventually(all_fresh)
        assert await ready_since(client, "fleet=outage") == nodes
        assert await running(client) == pods
        await client.create(PODS, pod("outage-new", "default", node="outage-0"))

        async def is_up() -> bool:
            return "outage-new" in await running(client)

        await eventually(is_up)

    async def connected_to(work: Callable[[Client], Awaitable[Any]]) -> Any:
        async with connected(own_cluster, 60) as client:
            return await work(client)

    with fleet_process(
        own_cluster, tmp_path / "fleet.log", "--manage-nodes-with-label-selector=fleet=outage"
    ) as process:
        nodes, pods = asyncio.run(connected_to(before))
        kill_and_restart(own_cluster, OUTAGE_S)
        asyncio.run(connected_to(lambda client: after(client, nodes, pods)))
        assert process.poll() is None
