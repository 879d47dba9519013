"""One behaviour, two carriers: through the client and over the wire, on the embedded server with TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from holokube.apiserver.server import EmbeddedServer
from holokube.base.clock import WallClock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.access import ClusterAccess
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import LEASES, NAMESPACES, NODES, PODS
from holokube.client.transport import Call
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.leases import NAMESPACE
from holokube.hollow.profile import named_profile
from holokube.hollow.wire import Dialer, Echoes, Slimmer, WireCarrier, WireTransport
from holokube.hollow.writes import Carrier, ClientCarrier, Renewal, Urgency, WritePool
from holokube.kube.conditions import is_true
from holokube.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from holokube.runtime.stop import StopSignal
from tests.builders import pod
from tests.hollow.worlds import fake_node

LIMIT_S = 30.0
BOTH = pytest.mark.parametrize("kind", ["client", "wire"])


class World:
    """An embedded server, a client to look with, and a carrier to write with."""

    def __init__(self, access: ClusterAccess, kind: str) -> None:
        self.clock = WallClock()
        self.access = access
        self.kind = kind
        self.http = HttpTransport(self.clock, access)
        self.client = Client(self.http)
        self.pool = WritePool(workers=2, lease_workers=1)
        self.dialer = Dialer(self.clock, access)
        self.echoes = Echoes(Slimmer())
        self.carrier: Carrier = (
            WireCarrier(self.clock, self.dialer, gather_s=0.01, lease_gather_s=0.01, echoes=self.echoes)
            if kind == "wire"
            else ClientCarrier(self.clock, self.http, self.pool)
        )

    async def renew(self, renewal: Renewal) -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.carrier.renew(renewal, lambda version, error: _settle(answer, version, error))
        return await answer

    async def send(self, call: Call) -> dict[str, Any]:
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.carrier.send(Urgency.POD, call, lambda found, error: _settle(answer, found, error))
        return await answer

    def fleet(self, options: FleetOptions) -> Fleet:
        if self.kind == "client":
            return Fleet(self.clock, self.client, options, rng=Rng(1), identity="me")
        client = Client(WireTransport(self.clock, self.dialer, self.http, gather_s=0.01, echoes=self.echoes))
        return Fleet(
            self.clock, client, options, rng=Rng(1), identity="me", carrier=self.carrier, keep=self.echoes.keep
        )


def _settle(answer: asyncio.Future[Any], value: Any, error: HolokubeError | None) -> None:
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(value)


@asynccontextmanager
async def world(folder: Path, kind: str) -> AsyncIterator[World]:
    async with asyncio.timeout(LIMIT_S), EmbeddedServer(WallClock(), Rng("wire")) as server:
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(server.endpoint.kubeconfig()))
        made = World(load_access(str(path)), kind)
        made.pool.start()
        try:
            for name in ("kube-node-lease", "default"):
                try:
                    await made.client.create(NAMESPACES, {"metadata": {"name": name}})
                except AlreadyExists:
                    continue
            yield made
        finally:
            await made.carrier.close()
            await made.pool.stop()
            await made.client.close()


def run(folder: Path, kind: str, test: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with world(folder, kind) as made:
            await test(made)

    asyncio.run(main())


async def a_lease(world: World) -> Renewal:
    node = await world.client.create(NODES, fake_node("n"))
    renewal = Renewal("n", node["metadata"]["uid"], "", "me", 40)
    renewal.at_s = world.clock.time()
    made = await world.client.create(LEASES, renewal.body(), NAMESPACE)
    renewal.version = made["metadata"]["resourceVersion"]
    return renewal


@BOTH
def test_a_renewal_moves_the_time_and_brings_the_version_of_the_next(tmp_path: Path, kind: str) -> None:
    async def test(world: World) -> None:
        renewal = await a_lease(world)
        for _ in range(3):
            before = await world.client.get(LEASES, "n", NAMESPACE)
            renewal.version = await world.renew(renewal)
            after = await world.client.get(LEASES, "n", NAMESPACE)
            assert after["metadata"]["resourceVersion"] == renewal.version
            assert after["spec"]["renewTime"] > before["spec"]["renewTime"]
            assert after["spec"]["holderIdentity"] == "me"
            assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]

    run(tmp_path, kind, test)


@BOTH
def test_a_renewal_of_an_old_state_is_a_conflict(tmp_path: Path, kind: str) -> None:
    async def test(world: World) -> None:
        renewal = await a_lease(world)
        await world.client.patch(LEASES, "n", {"metadata": {"labels": {"a": "b"}}}, namespace=NAMESPACE)
        with pytest.raises(Conflict):
            await world.renew(renewal)

    run(tmp_path, kind, test)


@BOTH
def test_a_status_patch_brings_the_whole_object(tmp_path: Path, kind: str) -> None:
    async def test(world: World) -> None:
        await world.client.create(NODES, fake_node("n"))
        made = await world.client.create(PODS, pod("p", "default", node="n"))
        patch = {"metadata": {"uid": made["metadata"]["uid"]}, "status": {"phase": "Running"}}
        call = Call("patch", PODS, "default", "p", "status", {}, patch, "application/strategic-merge-patch+json")
        answer = await world.send(call)
        assert answer == await world.client.get(PODS, "p", "default")
        patch["metadata"]["uid"] = "another"
        with pytest.raises(Invalid, match="immutable"):
            await world.send(call)

    run(tmp_path, kind, test)


@BOTH
def test_a_delete_of_another_pod_is_refused(tmp_path: Path, kind: str) -> None:
    async def test(world: World) -> None:
        made = await world.client.create(PODS, pod("p", "default", node="n"))

        def delete(uid: str) -> Call:
            return Call("delete", PODS, "default", "p", body={"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

        with pytest.raises(Conflict):
            await world.send(delete("another"))
        await world.send(delete(made["metadata"]["uid"]))
        with pytest.raises(NotFound):
            await world.send(delete(made["metadata"]["uid"]))

    run(tmp_path, kind, test)


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    while not await check():  # noqa: ASYNC110 - nothing tells when a server is done
        await asyncio.sleep(0.05)


@BOTH
@pytest.mark.parametrize("profile", ["fast", "kubelet"])
def test_a_fleet_brings_nodes_and_pods_to_life_and_to_their_end(tmp_path: Path, kind: str, profile: str) -> None:
    async def test(world: World) -> None:
        chosen = named_profile("fast" if profile == "fast" else "kubelet")
        fleet = world.fleet(FleetOptions(manage_all_nodes=True, profile=chosen))
        stop = StopSignal()
        running = asyncio.create_task(fleet.run(stop))
        for number in range(5):
            await world.client.create(NODES, fake_node(f"n{number}"))
        for number in range(10):
            await world.client.create(PODS, pod(f"p{number}", "default", node=f"n{number % 5}"))

        async def all_up() -> bool:
            nodes, pods = (await world.client.list(NODES)).items, (await world.client.list(PODS)).items
            return all(is_true(item, "Ready") for item in (*nodes, *pods))

        await eventually(all_up)
        for number in range(10):
            await world.client.delete(PODS, f"p{number}", "default", grace_s=1)

        async def all_gone() -> bool:
            return not (await world.client.list(PODS)).items

        await eventually(all_gone)
        assert fleet.nodes.patches == 5
        if profile == "fast":
            assert fleet.pods.stats.patches == 10
        assert fleet.pods.stats.refused == fleet.pods.stats.errors == fleet.nodes.errors == fleet.events.lost == 0
        stop.set("test")
        await running
        leases = (await world.client.list(LEASES, NAMESPACE)).items
        assert len(leases) == 5 and not any(lease["spec"].get("holderIdentity") for lease in leases)

    run(tmp_path, kind, test)
