"""The webhook over TLS: answers, refusals, events, metrics, and certificates that change under its feet."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NODES
from holokube.kube.pki import Authority
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal
from holokube.sizing.certificate_keeper import CertificateUser, new_context
from holokube.sizing.known_nodes import KnownNodes, keep_sizes
from holokube.sizing.metrics import SizingMetrics
from holokube.sizing.review import OnError
from holokube.sizing.webhook import Reviewer, WebhookServer
from holokube.testing import Cluster
from tests.kube.sizing.pods import container, daemon
from tests.sizing.reviews import body_of, operations
from tests.sizing.worlds import make_nodes

CLOCK = WallClock()


class CountingTransport(InProcessTransport):
    """Counts the calls that are made."""

    calls = 0

    async def call(self, call: Any) -> JsonObject:
        self.calls += 1
        return await super().call(call)


@dataclass
class World:
    """A webhook that listens, and how to call it."""

    server: WebhookServer
    user: CertificateUser
    authority: Authority
    metrics: Metrics
    recorder: EventRecorder
    transport: CountingTransport
    session: aiohttp.ClientSession

    async def post(self, body: bytes, *, path: str = "/mutate", method: str = "POST") -> tuple[int, Any]:
        url = f"https://127.0.0.1:{self.server.port}{path}"
        context = ssl.create_default_context(cadata=self.authority.cert_pem.decode())
        async with self.session.request(method, url, data=io.BytesIO(body), ssl=context) as answer:
            text = await answer.text()
            return answer.status, json.loads(text)["response"] if answer.status == 200 else text

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"holokube_node_sizing_{name}", labels) or 0.0


@asynccontextmanager
async def webhook(cluster: Cluster, on_error: OnError) -> AsyncIterator[World]:
    transport = CountingTransport(cluster.registry)
    client, metrics, stop = Client(transport), Metrics(), StopSignal()
    await make_nodes(client, n="10", big="100")
    informer = Informer(CLOCK, client, NODES, transform=keep_sizes)
    informer.start()
    sizing_metrics = SizingMetrics(metrics)
    recorder = EventRecorder(CLOCK, client, "node-sizing", rng=Rng(0))
    reviewer = Reviewer(
        CLOCK, KnownNodes(informer), sizing_metrics, recorder, on_error=on_error, node_wait_s=0.01
    )
    context = new_context()
    server = WebhookServer(CLOCK, reviewer, context, host="127.0.0.1", port=0)
    user = CertificateUser(context, server, sizing_metrics)
    authority = Authority.create("first", CLOCK.now())
    running = asyncio.create_task(server.run(stop))
    assert await user.listens(authority.issue_server((), ("127.0.0.1",)), stop)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            yield World(server, user, authority, metrics, recorder, transport, session)
    finally:
        stop.set()
        await running
        await informer.stop()


def with_webhook(test: Callable[[World], Awaitable[None]], *, on_error: OnError = "allow") -> None:
    with Cluster("wall") as cluster:

        async def main() -> None:
            async with webhook(cluster, on_error) as world:
                await test(world)

        cluster.run(main())


def agent(node: str = "n", **annotations: str) -> JsonObject:
    return daemon(container("c", {"cpu": "1"}), node=node, **(annotations or {"request_cpu_fraction": "0.2"}))


def test_pods_are_sized_by_the_node_they_are_meant_for() -> None:
    async def test(world: World) -> None:
        for node, wanted in (("n", "2"), ("big", "20")):
            status, response = await world.post(body_of(agent(node)))
            assert status == 200 and response["allowed"]
            assert operations(response)[0]["value"] == wanted
        assert world.count("admissions_total", outcome="sized") == 2
        assert world.count("admission_duration_seconds_count") == 2

    with_webhook(test)


def test_no_call_is_made_on_the_way() -> None:
    async def test(world: World) -> None:
        before = world.transport.calls
        for _ in range(20):
            await world.post(body_of(agent()))
            await world.post(body_of(agent("ghost")))
            await world.post(body_of(agent(request_cpu_fraction="x")))
        assert world.transport.calls == before

    with_webhook(test)


def test_trouble_is_a_warning_an_event_on_the_daemon_set_and_a_metric() -> None:
    async def test(world: World) -> None:
        status, response = await world.post(body_of(agent(request_cpu_fraction="10%")))
        assert status == 200 and response["allowed"] and "request-cpu-fraction" in response["warnings"][0]
        (write,) = world.recorder._queue
        event = write.event
        assert event["involvedObject"] == {
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u-1", "namespace": "default",
        }  # fmt: skip
        assert event["type"] == "Warning" and event["reason"] == "NodeSizingFailed"
        assert "request-cpu-fraction" in event["message"]
        assert world.count("problems_total", reason="BadFraction") == 1
        assert world.count("admissions_total", outcome="failed") == 1

    with_webhook(test)


def test_an_unknown_node_admits_the_pod_with_a_warning() -> None:
    async def test(world: World) -> None:
        _, response = await world.post(body_of(agent("ghost")))
        assert response["allowed"] and 'node "ghost"' in response["warnings"][0]
        assert world.count("problems_total", reason="UnknownNode") == 1

    with_webhook(test)


def test_on_error_deny_refuses_and_tells_so() -> None:
    async def test(world: World) -> None:
        _, response = await world.post(body_of(agent(request_cpu_fraction="10%")))
        assert response["allowed"] is False and "request-cpu-fraction" in response["status"]["message"]
        assert world.recorder._queue[0].event["reason"] == "NodeSizingDenied"
        assert world.count("admissions_total", outcome="denied") == 1

    with_webhook(test, on_error="deny")


def test_a_dry_run_is_answered_and_leaves_nothing_behind() -> None:
    async def test(world: World) -> None:
        _, sized = await world.post(body_of(agent(), dry_run=True))
        _, bad = await world.post(body_of(agent(request_cpu_fraction="10%"), dry_run=True))
        assert operations(sized) and bad["warnings"] and not world.recorder.queued

    with_webhook(test)


def test_malformed_reviews_are_bad_requests() -> None:
    async def test(world: World) -> None:
        strange = agent()
        strange["spec"]["containers"] = [7]
        for body in (b"", b"{", b"{}", b'{"kind": "AdmissionReview"}', body_of(strange)):
            status, text = await world.post(body)
            assert status == 400 and text
        assert world.count("malformed_reviews_total") == 5
        assert (await world.post(b"", path="/other"))[0] == 404
        assert (await world.post(b"", method="GET"))[0] == 405
        assert (await world.post(body_of(agent())))[0] == 200

    with_webhook(test)


def test_a_body_larger_than_any_review_is_refused_before_it_is_read() -> None:
    async def test(world: World) -> None:
        context = ssl.create_default_context(cadata=world.authority.cert_pem.decode())
        reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port, ssl=context)
        writer.write(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
        async with asyncio.timeout(10):
            assert b"413" in await reader.readline()
        writer.close()

    with_webhook(test)


def test_large_reviews_are_answered() -> None:
    async def test(world: World) -> None:
        large = agent()
        large["metadata"]["annotations"]["padding"] = "x" * 2_500_000
        status, response = await world.post(body_of(large))
        assert status == 200 and operations(response)

    with_webhook(test)


def test_a_new_certificate_is_taken_up_without_a_failed_request() -> None:
    """Old connections stay, new ones see the new certificate, and nobody is turned away in between."""

    async def test(world: World) -> None:
        failures = 0
        answered = 0
        done = asyncio.Event()

        async def call() -> None:
            nonlocal answered, failures
            while not done.is_set():
                try:
                    status, _ = await world.post(body_of(agent()))
                    answered += status == 200
                except aiohttp.ClientError:
                    failures += 1

        callers = [asyncio.create_task(call()) for _ in range(3)]
        for _ in range(10):
            before = answered
            world.user.use(world.authority.issue_server((), ("127.0.0.1",)))
            async with asyncio.timeout(20):
                while answered < before + 5:
                    await world.post(body_of(agent()))
        done.set()
        await asyncio.gather(*callers)
        assert failures == 0 and answered >= 50
        assert world.count("certificate_loads_total") == 11

    with_webhook(test)


def test_callers_who_do_not_trust_the_authority_are_not_served() -> None:
    async def test(world: World) -> None:
        world.authority = Authority.create("somebody else", CLOCK.now())
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await world.post(body_of(agent()))

    with_webhook(test)
