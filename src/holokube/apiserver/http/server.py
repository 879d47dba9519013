"""Receives requests, finds out what they mean, asks the registry, sends the answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from aiohttp import HttpVersion11, web

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.discovery import Discovery
from holokube.apiserver.http import compression, encoding, openapi_protobuf
from holokube.apiserver.http.auth import ANONYMOUS, Authenticator
from holokube.apiserver.http.connections import DEFAULT_LIMITS, GuardedRequestHandler, GuardedServer, Limits
from holokube.apiserver.http.health import health_answer
from holokube.apiserver.http.metrics import RequestMetrics
from holokube.apiserver.http.negotiation import Format, negotiate
from holokube.apiserver.http.resource_handler import ResourceHandler
from holokube.apiserver.http.wire import Answer, Request, read_request
from holokube.apiserver.openapi import OpenApi
from holokube.apiserver.registry import Registry
from holokube.base.clock import Clock
from holokube.base.errors import StoreReadOnly
from holokube.base.log import get_logger
from holokube.kube.errors import (
    ApiError,
    InternalError,
    MethodNotAllowed,
    NotFound,
    ServiceUnavailable,
    Unauthorized,
)

log = get_logger(__name__)

_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_GZIP_FROM_BYTES = 128 * 1024
_NOT_FOUND_TEXT = b"404 page not found\n"


class ApiHandler:
    """The whole HTTP surface; knows nothing of sockets and certificates."""

    def __init__(
        self, clock: Clock, registry: Registry, authenticator: Authenticator, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._clock = clock
        self.limits = limits
        self._rng = registry.rng.fork("audit")
        self._registry = registry
        self._authenticator = authenticator
        self.metrics = RequestMetrics(registry)
        self._discovery = Discovery(registry)
        self._openapi = OpenApi(registry)
        self._openapi_protobuf = ("", b"")
        self._resources = ResourceHandler(clock, registry, authenticator, self.metrics)

    async def __call__(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; whatever goes wrong becomes a Status."""
        started_s = self._clock.monotonic()
        request: Request | None = None
        try:
            request = await read_request(raw, self._caller(raw), self.limits)
            answer = await self._route(request)
        except ApiError as problem:
            answer = Answer.status(problem, _error_format(raw))
            answer.warnings = request.warnings if request is not None else []
        except StoreReadOnly as problem:
            answer = Answer.status(ServiceUnavailable(f"{problem} {problem.hint}".strip(), retry_after_s=5))
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:
            log.exception("a request failed", method=raw.method, path=raw.path_qs[:500])
            answer = Answer.status(InternalError("Internal error occurred: see the server's log"))
        self.metrics.observe(raw.method, request, answer.code, self._clock.monotonic() - started_s)
        if answer.stream is not None:
            return answer.stream
        return await self._respond(raw, answer)

    def _caller(self, raw: web.BaseRequest) -> Caller:
        certificate = None
        authorization = raw.headers.get("Authorization", "")
        if not authorization:
            certificate = _peer_certificate(raw)
        agent = raw.headers.get("User-Agent", "")
        return self._authenticator.caller(authorization, certificate, agent, self._clock.now())

    async def _route(self, request: Request) -> Answer:
        path = request.path
        if request.caller.name == ANONYMOUS.name and path.split("/?")[0].rstrip("/") not in _OPEN_PATHS:
            self._refuse_anonymous(path)
        if path.startswith(("/api/", "/apis/")):
            found = self._discovery.answer(path, _format(request, discovery=True)) if _reads(request) else None
            if found is not None:
                return Answer.of(found, _format(request, discovery=True))
            if not self._discovery.knows(path):
                return Answer(404, _NOT_FOUND_TEXT, "text/plain; charset=utf-8")
            return await self._resources.handle(request)
        handler = self._plain_routes().get(path.rstrip("/") or "/")
        if handler is not None or path.startswith(("/openapi/v3", "/healthz/", "/livez/", "/readyz/")):
            if not _reads(request):
                raise MethodNotAllowed(
                    "the server does not allow this method on the requested resource", details={}
                )
            return await (handler or self._prefixed)(request)
        return Answer(404, _NOT_FOUND_TEXT, "text/plain; charset=utf-8")

    @staticmethod
    def _refuse_anonymous(path: str) -> None:
        if not path.startswith(tuple(f"{p}/" for p in _OPEN_PATHS)):
            raise Unauthorized("Unauthorized")

    def _plain_routes(self) -> Mapping[str, Callable[[Request], Awaitable[Answer]]]:
        return {
            "/": self._index,
            "/api": self._discover,
            "/apis": self._discover,
            "/version": self._version,
            "/healthz": self._health,
            "/livez": self._health,
            "/readyz": self._health,
            "/metrics": self._metrics,
            "/openapi/v2": self._openapi_v2,
            "/openapi/v3": self._openapi_v3,
        }

    async def _prefixed(self, request: Request) -> Answer:
        return await (self._openapi_v3(request) if request.path.startswith("/openapi") else self._health(request))

    async def _index(self, _request: Request) -> Answer:
        return Answer.of({"paths": self._discovery.paths()}, Format())

    async def _discover(self, request: Request) -> Answer:
        chosen = _format(request, discovery=True)
        found = self._discovery.answer(request.path, chosen)
        if found is None:
            raise NotFound("the server could not find the requested resource", details={})
        answer = Answer.of(found, chosen)
        if chosen.discovery_v2:
            version = chosen.discovery_v2_version
            answer.content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        answer.headers["Vary"] = "Accept"
        return answer

    async def _version(self, _request: Request) -> Answer:
        return Answer.of(self._discovery.version(), Format(pretty=True))

    async def _health(self, request: Request) -> Answer:
        return health_answer(request)

    async def _metrics(self, _request: Request) -> Answer:
        body, content_type = self.metrics.render()
        return Answer(200, body, content_type)

    async def _openapi_v2(self, request: Request) -> Answer:
        body = self._openapi.v2()
        accepted = {part.partition(";")[0].strip() for part in request.headers.get("Accept", "").split(",")}
        if accepted & openapi_protobuf.MEDIA_TYPES and "application/json" not in accepted:
            if self._openapi_protobuf[0] != body.etag:
                self._openapi_protobuf = (body.etag, openapi_protobuf.encode(body.raw))
            answer = Answer(200, self._openapi_protobuf[1], openapi_protobuf.CONTENT_TYPE)
        else:
            answer = Answer(200, body.raw, "application/json")
        answer.headers["Etag"] = f'"{body.etag}"'
        return answer

    async def _openapi_v3(self, request: Request) -> Answer:
        document = request.path.removeprefix("/openapi/v3").strip("/")
        if not document:
            return Answer.of(self._openapi.index(), Format())
        body = self._openapi.document(document)
        if body is None:
            return Answer(404, b"", "text/plain; charset=utf-8")
        answer = Answer(200, body.raw, "application/json")
        answer.headers["Etag"] = f'"{body.etag}"'
        return answer

    async def _respond(self, raw: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        headers = {
            "Content-Type": answer.content_type,
            "Cache-Control": "no-cache, private",
            "Audit-Id": raw.headers.get("Audit-ID") or self._rng.uid(),
            **answer.headers,
        }
        body, pieces = answer.body, answer.pieces
        length = len(body) if pieces is None else pieces.length
        if pieces is None and length > encoding.PIECE_BYTES and raw.method != "HEAD":
            pieces = encoding.Pieces.of(body)
        if length >= _GZIP_FROM_BYTES and "gzip" in raw.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            headers["Vary"] = "Accept-Encoding"
            if pieces is not None:
                return await _send(raw, compression.gzip_pieces(pieces), answer.code, headers)
            body = await asyncio.get_running_loop().run_in_executor(None, compression.gzip, body)
        elif pieces is not None:
            return await _send(raw, _each(pieces), answer.code, headers, length=length)
        response = web.Response(body=body, status=answer.code, headers=headers)
        for warning in answer.warnings:
            response.headers.add("Warning", warning_header(warning))
        return response


def _peer_certificate(raw: web.BaseRequest) -> Mapping[str, Any] | None:
    """The client's certificate; reading it out of OpenSSL costs as much as a small request, so once is enough."""
    protocol = raw.protocol
    if not isinstance(protocol, GuardedRequestHandler):
        return None
    if protocol.certificate is None:
        tls: ssl.SSLObject | None = raw.get_extra_info("ssl_object")
        protocol.certificate = (tls.getpeercert() or {}) if tls is not None else {}
    return protocol.certificate


async def _send(
    raw: web.BaseRequest,
    pieces: AsyncIterator[bytes],
    code: int,
    headers: dict[str, str],
    *,
    length: int | None = None,
) -> web.StreamResponse:
    """Send a long answer no faster than it is read: at once, it would all wait in memory for a slow client."""
    response = web.StreamResponse(status=code, headers=headers)
    if length is not None:
        response.content_length = length
    elif raw.version >= HttpVersion11:
        response.enable_chunked_encoding()
    else:
        response.force_close()
    await response.prepare(raw)
    async for piece in pieces:
        await response.write(piece)
    await response.write_eof()
    return response


async def _each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def warning_header(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{"".join(c if c.isprintable() else " " for c in escaped)}"'


def _error_format(raw: web.BaseRequest) -> Format:
    """Errors follow the Accept header as far as it can be followed."""
    try:
        return Format(yaml=negotiate(raw.headers.get("Accept", "")).yaml)
    except ApiError:
        return Format()


def _reads(request: Request) -> bool:
    return request.method in ("GET", "HEAD")


def _format(request: Request, *, discovery: bool = False) -> Format:
    return negotiate(request.headers.get("Accept", ""), discovery=discovery)


async def serve(
    handler: ApiHandler, host: str, port: int, tls: ssl.SSLContext
) -> tuple[web.ServerRunner, str, int]:
    """Listen; returns the runner (to be cleaned up), and the address that was bound."""
    server = GuardedServer(handler, handler.limits)
    runner = web.ServerRunner(server, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=tls, backlog=1024, reuse_address=True)
    await site.start()
    bound: Any = runner.addresses[0]
    return runner, bound[0], bound[1]
