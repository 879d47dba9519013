"""The kubelet endpoint behind a real kube-apiserver: kubectl logs, over two programs that are not ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NODES, PODS
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.server import EndpointOptions, KubeletEndpoint
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.hollow.profile import FAST, NodeProfile, Profile
from holokube.kube.conditions import is_true
from holokube.runtime.app import App
from holokube.runtime.informers import InformerSet
from holokube.testing.controlplane import ControlPlane
from holokube.testing.kubectl import Kubectl
from tests.builders import pod
from tests.hollow.test_real_apiserver import eventually, make_namespace
from tests.hollow.worlds import fake_node

NAMESPACE = "kubelet-logs"


@asynccontextmanager
async def running_fleet(client: Client) -> AsyncIterator[None]:
    """Two nodes with addresses of their own on the loopback network, one endpoint for both."""
    clock = WallClock()
    informers = InformerSet(clock, client, Rng(1))
    nodes, pods = informers.get(NODES), informers.get(PODS)
    view_of_all = KubeletView(clock, nodes, pods, name="before-the-fleet")
    endpoint = KubeletEndpoint(KubeletApi(view_of_all), EndpointOptions(host="127.0.0.0/8", port=0))
    port = await endpoint.start()
    profile = Profile("fast", FAST, NodeProfile(kubelet_port=port))
    options = FleetOptions(label_selector="fleet=logs", profile=profile)
    fleet = Fleet(clock, client, options, rng=Rng(2), identity="logs", nodes=nodes, pods=pods)
    app = App(clock)
    for component in (informers.runner(), fleet):
        app.add(component)
    task = asyncio.create_task(app.run())
    try:
        yield
    finally:
        app.stop()
        await task
        await endpoint.stop()


def test_kubectl_logs_through_a_real_kube_apiserver(
    real_apiserver: ControlPlane, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, real_apiserver.kubeconfig, tmp_path)

    async def test(client: Client) -> None:
        await make_namespace(client, NAMESPACE)
        async with running_fleet(client):
            for number in range(2):
                node = fake_node(f"logs-{number}", fleet="logs")
                # Without a Hostname, which an API server would prefer, and which nobody here could resolve.
                node["status"] = {"addresses": [{"type": "InternalIP", "address": f"127.77.0.{number + 1}"}]}
                await client.create(NODES, node)
                given = pod(f"p{number}", NAMESPACE, node=f"logs-{number}", automountServiceAccountToken=False)
                given["metadata"]["annotations"] = {"holokube.dev/log-every": "1s"}
                await client.create(PODS, given)

            async def all_up() -> bool:
                return all(is_true(item, "Ready") for item in (await client.list(PODS, NAMESPACE)).items)

            await eventually(all_up)
            for number in range(2):
                text = await asyncio.to_thread(kubectl, "logs", f"p{number}", "-n", NAMESPACE, "--limit-bytes=2000")
                assert text.startswith(
                    f"hollow container c (registry.example/app:1) started on node logs-{number}, restart 0\n"
                )
            refused = await asyncio.to_thread(kubectl.run, "exec", "p0", "-n", NAMESPACE, "--", "ls")
            assert refused.returncode != 0
            assert "hollow pods have no processes: exec is not possible" in refused.stderr

    async def main() -> None:
        access = load_access(str(real_apiserver.kubeconfig))
        async with Client(HttpTransport(WallClock(), access)) as client, asyncio.timeout(60):
            await test(client)

    asyncio.run(main())
