"""The kubelet endpoint over HTTPS, on real sockets."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from holokube.base.clock import WallClock
from holokube.base.errors import ConfigError, UsageError
from holokube.base.rng import Rng
from holokube.client.resources import NODES, PODS
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.server import EndpointOptions, KubeletEndpoint
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.kube import pki
from holokube.kube.timeformat import format_time
from holokube.runtime.informers import InformerSet
from holokube.testing import Cluster
from tests.builders import node, pod

Ask = Callable[..., Awaitable[tuple[int, str]]]


def with_endpoint(
    options: EndpointOptions, test: Callable[[Ask, KubeletEndpoint], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> None:
    """Two nodes, at 127.0.0.1 and 127.0.0.2, and a running pod on the first."""
    with Cluster("wall") as cluster:

        async def main() -> None:
            client = cluster.client
            informers = InformerSet(cluster.clock, client, Rng(1))
            nodes, pods = informers.get(NODES), informers.get(PODS)
            view = KubeletView(cluster.clock, nodes, pods)
            for number in (1, 2):
                made = node(f"n{number}")
                made["status"] = {"addresses": [{"type": "InternalIP", "address": f"127.0.0.{number}"}]}
                await client.create(NODES, made)
            created = await client.create(PODS, pod(node="n1"))
            started = format_time(cluster.clock.time() - 100)
            state = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
                     "state": {"running": {"startedAt": started}}}  # fmt: skip
            await client.update_status(
                PODS, {**created, "status": {"phase": "Running", "containerStatuses": [state]}}
            )
            for informer in (nodes, pods):
                informer.start()
                await informer.synced()
            endpoint = KubeletEndpoint(KubeletApi(view), options)
            port = await endpoint.start()
            connector = aiohttp.TCPConnector(ssl=tls or False, force_close=True)
            try:
                async with aiohttp.ClientSession(connector=connector) as session:

                    async def ask(path: str, host: str = "127.0.0.1", method: str = "GET") -> tuple[int, str]:
                        async with session.request(method, f"https://{host}:{port}{path}") as response:
                            return response.status, await response.text()

                    await test(ask, endpoint)
            finally:
                await endpoint.stop()
                for informer in (nodes, pods):
                    await informer.stop()

        cluster.run(main)


def test_one_endpoint_answers_for_all_its_nodes() -> None:
    async def test(ask: Ask, _endpoint: KubeletEndpoint) -> None:
        assert await ask("/healthz") == (200, "ok")
        status, text = await ask("/nodes/n1/stats/summary")
        assert status == 200 and '"nodeName": "n1"' in text and '"name": "p"' in text
        status, text = await ask("/nodes/n2/metrics/resource")
        assert status == 200 and "node_cpu_usage_seconds_total" in text and "container_cpu" not in text
        status, text = await ask("/containerLogs/default/p/c?tailLines=1")
        assert status == 200 and text.startswith("up 60s")
        # At the address of a node, the kubelet of that node answers.
        status, text = await ask("/pods")
        assert status == 200 and '"name":"p"' in text

    with_endpoint(EndpointOptions(port=0), test)


def test_on_the_loopback_network_each_node_has_its_own_address() -> None:
    async def test(ask: Ask, _endpoint: KubeletEndpoint) -> None:
        assert '"nodeName": "n1"' in (await ask("/stats/summary", "127.0.0.1"))[1]
        assert '"nodeName": "n2"' in (await ask("/stats/summary", "127.0.0.2"))[1]
        status, text = await ask("/stats/summary", "127.0.0.3")
        assert status == 404 and "which node?" in text

    with_endpoint(EndpointOptions(host="127.0.0.0/8", port=0), test)


def test_streams_into_containers_and_writes_are_refused() -> None:
    async def test(ask: Ask, _endpoint: KubeletEndpoint) -> None:
        for path in ("exec/default/p/c?command=ls", "attach/default/p/c", "portForward/default/p", "run/default/p/c"):
            status, text = await ask(f"/{path}", method="POST")
            assert status == 501 and text.startswith("hollow pods have no processes")
        status, text = await ask("/nodes/n1/pods", method="POST")
        assert status == 405 and "only answers questions" in text
        assert (await ask("/nodes/n9/pods"))[0] == 404
        assert (await ask("/containerLogs/default/p/c?tailLines=-1"))[0] == 422

    with_endpoint(EndpointOptions(port=0), test)


def test_with_an_authority_only_its_clients_are_let_in(tmp_path: Path) -> None:
    now = WallClock().now()
    trusted, other = pki.Authority.create("trusted", now), pki.Authority.create("other", now)
    (tmp_path / "ca.pem").write_bytes(trusted.cert_pem)

    def context(authority: pki.Authority) -> ssl.SSLContext:
        pair = authority.issue_client("kube-apiserver")
        (tmp_path / "cert.pem").write_bytes(pair.cert_pem)
        (tmp_path / "key.pem").write_bytes(pair.key_pem)
        made = ssl.create_default_context()
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        made.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        return made

    options = EndpointOptions(port=0, client_ca_file=tmp_path / "ca.pem")

    async def let_in(ask: Ask, _endpoint: KubeletEndpoint) -> None:
        assert (await ask("/nodes/n1/healthz"))[0] == 200

    async def shut_out(ask: Ask, _endpoint: KubeletEndpoint) -> None:
        with pytest.raises(aiohttp.ClientError):
            await ask("/nodes/n1/healthz")

    with_endpoint(options, let_in, context(trusted))
    with_endpoint(options, shut_out, context(other))
    with_endpoint(options, shut_out)


def test_bad_options_are_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="would be open to everybody"):
        EndpointOptions(host="0.0.0.0")
    with pytest.raises(UsageError, match="go together"):
        EndpointOptions(cert_file=tmp_path / "cert.pem")

    async def taken(_ask: Ask, endpoint: KubeletEndpoint) -> None:
        with pytest.raises(ConfigError, match=f"cannot listen on port {endpoint.port}"):
            await KubeletEndpoint(endpoint._api, EndpointOptions(port=endpoint.port)).start()
        missing = EndpointOptions(port=0, client_ca_file=tmp_path / "none.pem")
        with pytest.raises(ConfigError, match="cannot be read"):
            await KubeletEndpoint(endpoint._api, missing).start()

    with_endpoint(EndpointOptions(port=0), taken)
