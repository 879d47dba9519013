"""The wire against the real kube-apiserver: everything it writes is accepted."""

from __future__ import annotations

import asyncio

import pytest

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.cli.fleet_run import make_fleet
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import EVENTS, LEASES, NODES, PODS
from holokube.hollow.fleet import FleetOptions
from holokube.hollow.leases import NAMESPACE
from holokube.hollow.profile import named_profile
from holokube.kube.conditions import is_true
from holokube.runtime.stop import StopSignal
from holokube.testing.controlplane import ControlPlane
from tests.builders import pod
from tests.hollow.test_real_apiserver import eventually, make_namespace
from tests.hollow.worlds import fake_node

COUNT = 20


@pytest.mark.parametrize("profile", ["fast", "kubelet"])
def test_a_fleet_on_the_wire_is_never_refused_by_a_real_server(real_apiserver: ControlPlane, profile: str) -> None:
    space = f"wire-{profile}"

    async def main() -> None:
        clock = WallClock()
        access = load_access(str(real_apiserver.kubeconfig))
        http = HttpTransport(clock, access)
        chosen = named_profile("fast" if profile == "fast" else "kubelet")
        options = FleetOptions(label_selector=f"fleet={space}", profile=chosen, lease_duration_s=4)
        async with asyncio.timeout(60), Client(http) as client:
            fleet = make_fleet(clock, access, http, options, rng=Rng(1), identity=space)
            stop = StopSignal()
            running = asyncio.create_task(fleet.run(stop))
            await make_namespace(client, space)
            for number in range(COUNT):
                await client.create(NODES, fake_node(f"{space}-{number}", fleet=space))
                given = pod(f"p{number}", space, node=f"{space}-{number}", automountServiceAccountToken=False)
                await client.create(PODS, given)

            async def all_up() -> bool:
                nodes = (await client.list(NODES, label_selector=f"fleet={space}")).items
                return all(is_true(item, "Ready") for item in (*nodes, *(await client.list(PODS, space)).items))

            await eventually(all_up)
            assert fleet.leases is not None
            renewals = fleet.leases.stats.renewals

            async def all_renewed() -> bool:
                assert fleet.leases is not None
                return fleet.leases.stats.renewals >= renewals + 2 * COUNT

            await eventually(all_renewed)
            await client.delete_collection(PODS, space)

            async def all_gone() -> bool:
                return not (await client.list(PODS, space)).items

            await eventually(all_gone)
            assert fleet.nodes.patches == COUNT
            if profile == "fast":
                assert fleet.pods.stats.patches == COUNT
            else:
                reasons = {event["reason"] for event in (await client.list(EVENTS, space)).items}
                assert {"Created", "Started", "Killing"} <= reasons
            stats = fleet.leases.stats
            assert (stats.errors, stats.conflicts, stats.reads) == (0, 0, 0)
            assert fleet.pods.stats.refused == fleet.pods.stats.errors == fleet.nodes.errors == fleet.events.lost == 0
            stop.set("test")
            await running
            listed = (await client.list(LEASES, NAMESPACE)).items
            ours = [lease for lease in listed if lease["metadata"]["name"].startswith(space)]
            assert len(ours) == COUNT and not any(lease["spec"].get("holderIdentity") for lease in ours)

    asyncio.run(main())
