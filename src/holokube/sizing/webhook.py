"""The webhook's HTTPS server: reviews in, answers out, nothing asked of anybody on the way."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError
from holokube.base.log import get_logger
from holokube.kube.sizing import node_name_of
from holokube.kube.types import JsonObject
from holokube.runtime.events import WARNING, EventRecorder
from holokube.runtime.stop import StopSignal
from holokube.sizing.known_nodes import KnownNodes
from holokube.sizing.metrics import SizingMetrics
from holokube.sizing.review import MalformedReview, OnError, Verdict, is_about_a_pod, judge, parse_review

PATH: Final = "/mutate"
NODE_WAIT_S: Final = 2.0
_BODY_BYTES_MAX: Final = 16 * 1024 * 1024
"""Far above what an API server accepts for two versions of an object."""
_JSON: Final = {"Content-Type": "application/json"}


class Reviewer:
    """Answers reviews: finds the node, judges, and tells events and metrics."""

    def __init__(
        self,
        clock: Clock,
        nodes: KnownNodes,
        metrics: SizingMetrics,
        recorder: EventRecorder,
        *,
        on_error: OnError = "allow",
        node_wait_s: float = NODE_WAIT_S,
    ) -> None:
        self._clock = clock
        self._nodes = nodes
        self._metrics = metrics
        self._recorder = recorder
        self._on_error = on_error
        self._node_wait_s = node_wait_s

    async def ready(self) -> None:
        """Waits until the nodes are known: before that, every node would be unknown."""
        await self._nodes.synced()

    async def answer(self, body: bytes) -> Verdict:
        """The answer to the body of a call; :class:`MalformedReview` if it is no review."""
        started_s = self._clock.monotonic()
        try:
            request = parse_review(body)
            node: JsonObject | None = None
            if is_about_a_pod(request):
                node = await self._nodes.wait_for(node_name_of(request["object"]), self._node_wait_s)
            verdict = judge(request, node, self._on_error)
        except (AttributeError, KeyError, TypeError) as error:
            # Types deep inside the object are wrong, which an API server would not have let through.
            self._metrics.malformed()
            raise MalformedReview(f"the object of the review is none: {error!r}") from error
        except MalformedReview:
            self._metrics.malformed()
            raise
        self._metrics.answered(verdict, self._clock.monotonic() - started_s)
        if verdict.problem is not None and not request.get("dryRun"):
            self._tell(request, verdict)
        return verdict

    def _tell(self, request: Mapping[str, Any], verdict: Verdict) -> None:
        """An event on the DaemonSet; the pod has no name yet that one could be told about."""
        assert verdict.problem is not None
        for owner in request["object"]["metadata"].get("ownerReferences") or ():
            if owner.get("controller"):
                reference = {
                    "apiVersion": owner.get("apiVersion"), "kind": owner.get("kind"), "name": owner.get("name"),
                    "uid": owner.get("uid"), "namespace": request.get("namespace") or "default",
                }  # fmt: skip
                reason = "NodeSizingDenied" if verdict.outcome == "denied" else "NodeSizingFailed"
                self._recorder.event(reference, WARNING, reason, verdict.problem.text)


class WebhookServer:
    """Serves reviews over TLS; a component of the app.

    ``context`` may be given a new certificate at any time: connections from then on get it, others stay as they are.
    """

    name = "webhook-server"

    def __init__(
        self,
        clock: Clock,
        reviewer: Reviewer,
        context: ssl.SSLContext,
        *,
        host: str = "",
        port: int = 9443,
        drain_s: float = 0.0,
    ) -> None:
        """``drain_s`` is how long requests are still taken after the stop, while the cluster learns of it."""
        self._clock = clock
        self._reviewer = reviewer
        self._context = context
        self._host = host
        self._port = port
        self._drain_s = drain_s
        self.certified = asyncio.Event()
        """To be set when the context has its first certificate; the server listens when the nodes are known too."""
        self.started = StopSignal()
        """Set when it listens."""
        self.registered = asyncio.Event()
        """To be set when API servers know of it."""
        self.port = port
        self._log = get_logger("holokube.sizing.webhook")

    def check(self) -> str | None:
        """For the readiness endpoint."""
        if self.started.is_set():
            return None if self.registered.is_set() else "the webhook is not registered yet"
        return "the nodes are not listed yet" if self.certified.is_set() else "the webhook has no certificate yet"

    async def run(self, stop: StopSignal) -> None:
        if not await stop.finishes_first(asyncio.gather(self.certified.wait(), self._reviewer.ready())):
            return
        server = web.Server(self._handle, request_factory=_request, access_log=None, lingering_time=0.0)
        runner = web.ServerRunner(server, shutdown_timeout=5.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._host or None, self._port, ssl_context=self._context, backlog=1024)
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(
                    f"cannot listen on {self._host}:{self._port} for the webhook: {error.strerror or error}",
                    hint="Choose another address with --listen, or end the program that uses this one.",
                ) from error
            self.port = runner.addresses[0][1]
            self.started.set()
            self._log.info("Webhook listens", port=self.port)
            await stop.wait()
            if self._drain_s > 0:
                await self._clock.sleep(self._drain_s)
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != PATH:
            return web.Response(status=404, text="404 page not found\n")
        if request.method != "POST":
            return web.Response(status=405, text="POST an AdmissionReview\n", headers={"Allow": "POST"})
        if (request.content_length or 0) > _BODY_BYTES_MAX:
            # What is still to come would have to be read before the next request; the connection is not worth it.
            refused = web.Response(status=413, text="the body is too large\n")
            refused.force_close()
            return refused
        try:
            verdict = await self._reviewer.answer(await request.read())
        except MalformedReview as error:
            return web.Response(status=400, text=f"{error.message}\n")
        return web.Response(body=verdict.body, headers=_JSON)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_BODY_BYTES_MAX)
