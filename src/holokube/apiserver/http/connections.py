"""Cuts off clients that dawdle: over the head of a request, over its body, or over reading the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may take of the server; the defaults suit every honest one."""

    head_within_s: float = 20.0
    """From connecting to the end of a first head, and from an answer to the end of the next head."""
    body_within_s: float = 60.0
    body_max_bytes: int = 3 * 1024 * 1024
    line_max_bytes: int = 64 * 1024
    header_max_bytes: int = 32 * 1024
    idle_s: float = 120.0
    """How long a connection is kept between two requests."""
    unread_s: float = 30.0
    """How long a client may read nothing of an answer, or of a watch, while there is something to read."""


DEFAULT_LIMITS = Limits()

# aiohttp logs every malformed request with a traceback. Who sends one is told in the answer; the handler logs its own
# errors.
_protocol_log = logging.getLogger(f"{__name__}.protocol")
_protocol_log.addHandler(logging.NullHandler())
_protocol_log.propagate = False


class GuardedServer(web.Server):
    """A server whose connections are held to ``Limits``."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(
            handler,
            access_log=None,
            logger=_protocol_log,
            keepalive_timeout=limits.idle_s,
            max_line_size=limits.line_max_bytes,
            max_field_size=limits.header_max_bytes,
            lingering_time=min(limits.body_within_s, 5.0),
            handler_cancellation=True,
        )
        self.limits = limits
        self.open_transports: set[asyncio.Transport] = set()

    async def shutdown(self, timeout: float | None = None) -> None:
        """End all requests, then all connections, whether the clients say goodbye or not."""
        await super().shutdown(timeout)
        # Closing over TLS waits for the client's own farewell, which may never come.
        for transport in tuple(self.open_transports):
            transport.abort()
        await asyncio.sleep(0)

    def __call__(self) -> RequestHandler:
        handler = GuardedRequestHandler(self, loop=asyncio.get_running_loop(), **self._kwargs)
        handler.server = self
        return handler


class GuardedRequestHandler(RequestHandler):
    """aiohttp's protocol with time limits on heads and on reading."""

    __slots__ = ("_guarded", "_head_guard", "_read_guard", "_unread_bytes", "certificate", "server")

    server: GuardedServer
    certificate: Mapping[str, Any] | None
    """What the client showed in the handshake; None as long as nobody has looked."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._guarded = transport
        self.certificate = None
        self.server.open_transports.add(transport)  # type: ignore[arg-type]  # a stream's transport, by construction
        self._read_guard: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        loop = asyncio.get_running_loop()
        self._head_guard: asyncio.TimerHandle | None = loop.call_later(self.server.limits.head_within_s, self._cut_off)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        guard = self._head_guard
        if self._messages or self._current_request is not None:
            if guard is not None:
                guard.cancel()
                self._head_guard = None
        elif guard is None:
            # Some bytes of a next request, but not its whole head.
            loop = asyncio.get_running_loop()
            self._head_guard = loop.call_later(self.server.limits.head_within_s, self._cut_off)

    def connection_lost(self, exc: BaseException | None) -> None:
        for guard in (self._head_guard, self._read_guard):
            if guard is not None:
                guard.cancel()
        self.server.open_transports.discard(self._guarded)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_bytes = self._buffered_bytes()
        self._watch_reading()

    def resume_writing(self) -> None:
        if self._read_guard is not None:
            self._read_guard.cancel()
            self._read_guard = None
        super().resume_writing()

    def _watch_reading(self) -> None:
        loop = asyncio.get_running_loop()
        self._read_guard = loop.call_later(self.server.limits.unread_s, self._check_reading)

    def _check_reading(self) -> None:
        """A slow reader is fine as long as it reads."""
        unread_bytes = self._buffered_bytes()
        if unread_bytes < self._unread_bytes:
            self._unread_bytes = unread_bytes
            self._watch_reading()
        elif self.transport is not None:
            self.transport.abort()

    def _buffered_bytes(self) -> int:
        transport: Any = self.transport
        return 0 if transport is None else int(transport.get_write_buffer_size())

    def _cut_off(self) -> None:
        if self.transport is not None:
            self.transport.abort()
