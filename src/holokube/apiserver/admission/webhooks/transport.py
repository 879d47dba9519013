"""Calls webhooks over HTTPS.

Sessions belong to an event loop and are made when first needed. On virtual time connections are closed after
each call, because an idle socket would slow down every jump of the clock.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import orjson

from holokube.apiserver.admission.webhooks.outcomes import TransportFailed
from holokube.apiserver.admission.webhooks.services import ServiceError, ServiceResolver, resolve
from holokube.apiserver.kinds.base import Lookup
from holokube.base.connections import Connections
from holokube.base.loop import VirtualTimeLoop
from holokube.kube.quoting import go_quote
from holokube.kube.types import JsonObject

_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}
_DEFAULT_PORT: Final = 443
_CONTEXTS_MAX: Final = 200
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21, 27})
_EXPIRED: Final = frozenset({9, 10})
# What Go's client makes of answers that are not a Status of their own.
_WORDS: Final[Mapping[int, str]] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    415: "the body of the request was in an unknown format",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing "
    "the request",
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send a review: the URL as the user knows it, and the address behind it."""

    shown: str
    url: str
    host_header: str
    server_name: str | None


class Transport:
    """HTTPS to webhooks, with the certificate authorities that their configurations bring."""

    def __init__(self, lookup: Lookup, service_resolver: Callable[[], ServiceResolver | None]) -> None:
        self._lookup = lookup
        self._service_resolver = service_resolver
        self._sessions: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, Connections]] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, client: JsonObject, body: bytes, timeout_s: int) -> bytes:
        """Send a review to the server of a ``clientConfig``; the body of its answer."""
        target = self._target(client, timeout_s)
        try:
            context = self._context(client.get("caBundle") or "")
            # A DNS name, an address and a TLS handshake are all part of what may take too long.
            async with asyncio.timeout(timeout_s):
                return await self._send(target, body, context)
        except TimeoutError:
            raise TransportFailed(f'Post "{target.shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise TransportFailed(f'Post "{target.shown}": {_in_words(problem, target)}') from None

    async def _send(self, target: Target, body: bytes, context: ssl.SSLContext) -> bytes:
        session = await self._session_here()
        async with session.post(
            target.url,
            data=body,
            headers={**_HEADERS, "Host": target.host_header},
            ssl=context,
            server_hostname=target.server_name,
        ) as response:
            answer = await response.read()
            if not 200 <= response.status <= 206:
                raise TransportFailed(_refusal(response.status, answer))
            return answer

    def _target(self, client: JsonObject, timeout_s: int) -> Target:
        query = f"timeout={timeout_s}s"
        service = client.get("service")
        if service is not None:
            port = service.get("port") or _DEFAULT_PORT
            name = f"{service.get('name', '')}.{service.get('namespace', '')}.svc"
            path = "/" + (service.get("path") or "").lstrip("/")
            shown = f"https://{name}:{port}{path}?{query}"
            try:
                host, real_port = resolve(
                    self._lookup,
                    self._service_resolver(),
                    service.get("namespace", ""),
                    service.get("name", ""),
                    port,
                )
            except ServiceError as problem:
                raise TransportFailed(f'Post "{shown}": {problem}') from None
            return Target(
                shown, f"https://{_bracketed(host)}:{real_port}{path}?{query}", f"{name}:{port}", name
            )
        url = client.get("url") or ""
        parts = urlsplit(url)
        if not parts.scheme or not parts.netloc:
            raise TransportFailed(
                f"Unparsable URL: {url}" if url else "webhook configuration must have either service or URL"
            )
        shown = f"{parts.scheme}://{parts.netloc}{parts.path or '/'}?{query}"
        return Target(shown, shown, parts.netloc, None)

    def _context(self, bundle: str) -> ssl.SSLContext:
        """A TLS context that trusts the bundle, or without one the authorities of the system."""
        found = self._contexts.get(bundle)
        if found is None:
            try:
                pem = base64.b64decode(bundle, validate=True).decode("ascii") if bundle else None
                found = ssl.create_default_context(cadata=pem)
            except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as problem:
                raise TransportFailed(f"unable to load root certificates: {problem}") from None
            if len(self._contexts) >= _CONTEXTS_MAX:
                self._contexts.clear()
            self._contexts[bundle] = found
        return found

    async def _session_here(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        held = self._sessions.get(loop)
        session = held[0] if held else None
        if session is None or session.closed:
            await self._drop(lambda other: other.is_closed())
            connections = Connections(limit=0, force_close=isinstance(loop, VirtualTimeLoop))
            # The time limit is the webhook's own, see above.
            session = aiohttp.ClientSession(connector=connections, timeout=aiohttp.ClientTimeout())
            self._sessions[loop] = session, connections
        return session

    async def _drop(self, unwanted: Callable[[asyncio.AbstractEventLoop], bool]) -> None:
        """Close the sessions of some loops, which must be this one or have ended."""
        for loop in [loop for loop in self._sessions if unwanted(loop)]:
            session, connections = self._sessions.pop(loop)
            await session.close()
            if not loop.is_closed():
                await connections.end()

    async def close(self) -> None:
        """Close the connections of this loop, and of loops that have ended."""
        here = asyncio.get_running_loop()
        await self._drop(lambda loop: loop is here or loop.is_closed())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _refusal(code: int, body: bytes) -> str:
    """An HTTP error in the words of Go's client."""
    text = body.decode(errors="replace").strip()
    try:
        status: Any = orjson.loads(body)
    except ValueError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("message"):
        return str(status["message"])
    if code in _WORDS:
        return _WORDS[code]
    if code >= 500:
        said = go_quote(text or "unknown")
        return f"an error on the server ({said}) has prevented the request from succeeding"
    if code == 403:
        return text or "unknown"
    return f"the server responded with the status code {code} but did not return more information"


def _in_words(problem: Exception, target: Target) -> str:
    """A failure to connect in the words of Go's client, as far as it is one of the usual ones."""
    cause: BaseException = problem
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        cause = problem.certificate_error
    elif isinstance(problem, aiohttp.ClientConnectorError):
        cause = problem.os_error
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code in _UNKNOWN_AUTHORITY:
            why = "certificate signed by unknown authority"
        elif cause.verify_code in _EXPIRED:
            why = "certificate has expired or is not yet valid"
        else:
            why = cause.verify_message
        return f"tls: failed to verify certificate: x509: {why}"
    if isinstance(problem, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {problem.host}: no such host"
    if isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {urlsplit(target.url).netloc}: connect: connection refused"
    if isinstance(problem, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "EOF"
    return str(problem) or type(problem).__name__
