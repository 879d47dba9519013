"""The transport to any Kubernetes API server over HTTP/1.1."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from holokube import __version__
from holokube.base.clock import Clock
from holokube.base.connections import Connections
from holokube.base.errors import TransportError
from holokube.base.log import get_logger
from holokube.client.access import ClusterAccess
from holokube.client.auth import Credentials
from holokube.client.http_errors import api_error, quoted, retry_after_s, transport_error
from holokube.client.lines import LineSplitter, LineTooLongError
from holokube.client.proxy import proxy_from_environment
from holokube.client.tls import TlsContexts
from holokube.client.transport import JSON, Call, WatchEvent

MAX_CONNECTIONS = 64
"""Open at a time for everything but watches, which each hold one of their own for minutes."""
CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 75.0
"""More than the minute after which an API server itself gives up on a request."""
WATCH_SILENCE_S = 30.0
"""How long after its announced end a watch may stay silent before it counts as dead."""
MAX_RETRIES = 10
MAX_RETRY_AFTER_S = 60
MAX_EVENT_BYTES = 8 * 1024 * 1024
"""Well over the 1.5 MiB (3 MiB with some set-ups) that etcd lets an object have."""

_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}

_log = get_logger("holokube.client.http")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Request:
    """All that is the same in every attempt to send one request."""

    method: str
    url: URL
    what: str
    timeout: aiohttp.ClientTimeout
    data: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    retries_429: bool = True
    streams: bool = False


class HttpTransport:
    """Carries calls to ``access.server``; connections are kept open and shared."""

    def __init__(
        self,
        clock: Clock,
        access: ClusterAccess,
        *,
        max_connections: int = MAX_CONNECTIONS,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
        max_event_bytes: int = MAX_EVENT_BYTES,
        user_agent: str = f"holokube/{__version__}",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._clock = clock
        self._server = access.server.rstrip("/")
        self._auth = access.authenticator(clock)
        self._tls = TlsContexts(clock, access.tls) if access.is_tls else None
        self._server_name = access.tls.server_name or None
        environ = os.environ if environ is None else environ
        self._proxy = access.proxy_url or proxy_from_environment(self._server, environ) or None
        self._max_connections = max_connections
        self._connect_timeout_s = connect_timeout_s
        self._request_timeout_s = request_timeout_s
        self._max_retries = max_retries
        self._max_event_bytes = max_event_bytes
        self._headers = {"User-Agent": user_agent, "Accept": JSON}
        if access.disable_compression:
            self._headers["Accept-Encoding"] = "identity"
        self._sessions: dict[bool, tuple[aiohttp.ClientSession, Connections]] = {}
        self._closed = False
        self._waiting: set[asyncio.Timeout] = set()

    @property
    def server(self) -> str:
        return self._server

    async def call(self, call: Call) -> dict[str, Any]:
        what = str(call)
        data = _encode(call.body)
        _, body = await self._answer(
            _Request(
                _METHODS[call.verb],
                self._url(call.path, call.query),
                what,
                self._timeout(),
                data=data,
                headers={"Content-Type": call.content_type} if data is not None else {},
                # A refused eviction is an answer, not congestion: whoever drains has to see it.
                retries_429=call.subresource != "eviction",
            )
        )
        answer = _parse(body, what, self._server)
        if not isinstance(answer, dict):
            raise TransportError(
                f"{what}: {self._server} answered with no object: {quoted(body)}", hint=_NOT_AN_API_SERVER
            )
        return answer

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        method = method.upper()
        data = _encode(body)
        headers = {"Accept": f"{JSON}, */*"}
        if data is not None:
            headers["Content-Type"] = content_type
        _, answer = await self._answer(
            _Request(
                method,
                self._url(path, query or {}),
                f"{method} {path}",
                self._timeout(),
                data=data,
                headers=headers,
            )
        )
        try:
            return orjson.loads(answer)
        except orjson.JSONDecodeError:
            return answer.decode("utf-8", "replace")

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        what = str(call)
        asked_s = call.query.get("timeoutSeconds", "")
        timeout = aiohttp.ClientTimeout(
            total=None,
            sock_connect=self._connect_timeout_s,
            sock_read=float(asked_s) + WATCH_SILENCE_S if asked_s else None,
        )
        url = self._url(call.path, {**call.query, "watch": "true"})
        response, _ = await self._answer(_Request("GET", url, what, timeout, streams=True))
        try:
            _probe_when_silent(response)
            lines = LineSplitter(self._max_event_bytes)
            while True:
                try:
                    chunk = await self._unless_closed(response.content.readany())
                    complete = lines.feed(chunk)
                except LineTooLongError as error:
                    raise TransportError(
                        f"{what}: {self._server} sent {error}",
                        hint="Watch with a selector that leaves the object out.",
                    ) from error
                except (aiohttp.ClientError, TimeoutError, OSError) as error:
                    raise transport_error(error, what, self._server) from error
                for line in complete:
                    yield _event(line, what, self._server)
                if not chunk:
                    break
            if lines.rest():
                # A server that is killed cuts its last event anywhere; without its line end it is not whole.
                raise TransportError(
                    f"{what}: the watch was cut in the middle of an event",
                    hint="Watch again from the last version.",
                )
        finally:
            _hang_up(response)

    async def close(self) -> None:
        self._closed = True
        for scope in self._waiting:
            scope.reschedule(self._clock.monotonic())
        while self._sessions:
            _, (session, connections) = self._sessions.popitem()
            await session.close()
            await connections.end()

    async def _answer(self, request: _Request) -> tuple[aiohttp.ClientResponse, bytes]:
        """Sends a request, again where that is safe; the response and its body, unread if it is a stream."""
        attempt = 0
        may_reauthenticate = True
        while True:
            credentials = await self._auth.credentials()
            try:
                response = await self._unless_closed(self._send(request, credentials))
                if request.streams and response.status == 200:
                    return response, b""
                async with response:
                    body = await self._unless_closed(response.read())
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise transport_error(error, request.what, self._server) from error
            if 200 <= response.status < 300:
                return response, body
            # An unauthenticated request was not acted upon, so that even a write may be sent again.
            if response.status == 401 and may_reauthenticate and await self._auth.rejected(credentials):
                may_reauthenticate = False
                continue
            wait_s = retry_after_s(response.headers)
            tired = attempt >= self._max_retries
            if wait_s is None or tired or not _may_retry(request, response.status, wait_s):
                raise self._refusal(response, body, request.what)
            attempt += 1
            _log.debug(
                "server asks to wait", call=request.what, code=response.status, wait_s=wait_s, attempt=attempt
            )
            await self._clock.sleep(wait_s)

    async def _unless_closed(self, work: Awaitable[_T]) -> _T:
        """Waits for ``work``, or until the transport is closed: aiohttp would leave readers waiting for ever."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._waiting.add(scope)
                return await work
        except TimeoutError:
            if self._closed:
                raise self._closed_error() from None
            raise
        finally:
            self._waiting.discard(scope)

    def _closed_error(self) -> TransportError:
        return TransportError(
            f"the transport to {self._server} is closed", hint="Make a new one; this one stays closed."
        )

    async def _send(self, request: _Request, credentials: Credentials) -> aiohttp.ClientResponse:
        headers = CIMultiDict(request.headers)
        headers.extend(credentials.headers)
        context: ssl.SSLContext | bool = self._tls.context(credentials.certificate) if self._tls else True
        return await self._session(request.streams).request(
            request.method,
            request.url,
            data=request.data,
            headers=headers,
            ssl=context,
            server_hostname=self._server_name if self._tls else None,
            proxy=self._proxy,
            timeout=request.timeout,
            # A redirect could carry credentials to somebody else.
            allow_redirects=False,
        )

    def _refusal(self, response: aiohttp.ClientResponse, body: bytes, what: str) -> Exception:
        if response.status >= 400:
            return api_error(response.status, body, response.headers, what)
        location = response.headers.get("Location", "")
        pointing = f", pointing at {location}" if location else ""
        return TransportError(
            f"{what}: {self._server} answered {response.status}{pointing}",
            hint="Redirects are not followed; put the API server's own address into the kubeconfig.",
        )

    def _session(self, streams: bool) -> aiohttp.ClientSession:
        """Sessions are made on first use, because they belong to the event loop that runs then."""
        if self._closed:
            raise self._closed_error()
        if streams not in self._sessions:
            connections = Connections(limit=0 if streams else self._max_connections)
            session = aiohttp.ClientSession(
                connector=connections, headers=self._headers, cookie_jar=aiohttp.DummyCookieJar()
            )
            self._sessions[streams] = session, connections
        return self._sessions[streams][0]

    def _timeout(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=self._request_timeout_s, sock_connect=self._connect_timeout_s)

    def _url(self, path: str, query: Mapping[str, str]) -> URL:
        text = f"{self._server}{path}"
        if query:
            text += ("&" if urlsplit(path).query else "?") + urlencode(query)
        return URL(text, encoded=True)


_NOT_AN_API_SERVER = "Is `server` in the kubeconfig really a Kubernetes API server?"


def _may_retry(request: _Request, code: int, wait_s: int) -> bool:
    """Whether to wait as the server asks and send the request again.

    429 says that nothing was done, so it holds for writes too. After a 5xx with Retry-After a write may have
    been done all the same, by a server behind the one that answered.
    """
    if wait_s > MAX_RETRY_AFTER_S:
        return False
    return request.retries_429 if code == 429 else code >= 500 and request.method in ("GET", "HEAD")


def _encode(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return orjson.dumps(body, default=_plain)


def _plain(value: Any) -> Any:
    """Read-only views of objects are written as what they show."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _parse(body: bytes, what: str, server: str) -> Any:
    if not body:
        return {}
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise TransportError(
            f"{what}: {server} answered with something that is not JSON: {quoted(body)}",
            hint=_NOT_AN_API_SERVER,
        ) from error


def _event(line: bytes, what: str, server: str) -> WatchEvent:
    event = _parse(line, what, server)
    try:
        return WatchEvent(event["type"], event["object"])
    except (KeyError, TypeError) as error:
        raise TransportError(
            f"{what}: {server} sent a line that is no watch event: {quoted(line)}", hint=_NOT_AN_API_SERVER
        ) from error


def _probe_when_silent(response: aiohttp.ClientResponse) -> None:
    """Has the kernel notice a peer that vanished without a word, which a silent watch never would."""
    transport = _transport_of(response)
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Ends an endless body. The farewell of TLS would keep the socket open for as long as the peer likes."""
    transport = _transport_of(response)
    if transport is not None:
        transport.abort()
    response.close()


def _transport_of(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    connection = response.connection
    return connection.transport if connection is not None else None
