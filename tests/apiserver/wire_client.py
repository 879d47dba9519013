"""A client that sends whatever bytes it is told to, and a server on a thread of its own to send them to."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from holokube.apiserver.http.connections import Limits
from holokube.apiserver.server import EmbeddedServer, Endpoint
from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.store.store import Store


@dataclass(frozen=True)
class Served:
    """A running server."""

    server: EmbeddedServer
    endpoint: Endpoint
    loop: asyncio.AbstractEventLoop

    @property
    def port(self) -> int:
        return int(self.endpoint.url.rpartition(":")[2])

    def authorization(self) -> tuple[bytes, bytes]:
        return b"Authorization", b"Bearer " + self.endpoint.token.encode()

    def connect(self, *, timeout_s: float = 20.0, receive_buffer_bytes: int = 0) -> ssl.SSLSocket:
        """A TLS connection."""
        context = ssl.create_default_context(cadata=self.endpoint.ca_pem.decode())
        plain = socket.socket()
        if receive_buffer_bytes:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        plain.settimeout(timeout_s)
        plain.connect(("127.0.0.1", self.port))
        return context.wrap_socket(plain, server_hostname="127.0.0.1")


@contextmanager
def serving(limits: Limits | None = None, store: Store | None = None) -> Iterator[Served]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="fuzzed-apiserver", daemon=True)
    thread.start()
    server = EmbeddedServer(WallClock(), Rng("fuzz"), store=store, limits=limits or Limits())
    endpoint = asyncio.run_coroutine_threadsafe(server.start(), loop).result(timeout=30)
    try:
        yield Served(server, endpoint, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=30)
        loop.close()


@dataclass(frozen=True)
class Answer:
    code: int
    headers: dict[bytes, bytes]
    body: bytes


class WireClient:
    """One connection, reopened when the server closes it. Nothing that is sent is checked."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._socket: ssl.SSLSocket | None = None
        self._pending = b""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._pending = b""

    def send(self, data: bytes) -> None:
        if self._socket is None:
            self._socket = self._served.connect()
        try:
            self._socket.sendall(data)
        except OSError:
            # Closed behind our back after the last answer; an answer to this request may still be there.
            return

    def request(
        self, method: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]] = (), body: bytes = b""
    ) -> Answer | None:
        """The answer, or None if the server closed the connection without one."""
        lines = [method + b" " + target + b" HTTP/1.1", b"Host: localhost"]
        lines += [name + b": " + value for name, value in (self._served.authorization(), *headers)]
        if body:
            lines.append(b"Content-Length: %d" % len(body))
        self.send(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        try:
            return self.answer()
        except (ConnectionError, EOFError, ssl.SSLError):
            self.close()
            return None

    def answer(self) -> Answer:
        """Read one answer off the connection."""
        head = self._until(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        code = int(first.split(b" ")[1])
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        if headers.get(b"transfer-encoding") == b"chunked":
            body = b"".join(iter(self._chunk, b""))
        elif b"content-length" in headers:
            body = self._exactly(int(headers[b"content-length"]))
        else:
            body = b""
        if headers.get(b"connection", b"").lower() == b"close" or first.startswith(b"HTTP/1.0"):
            self.close()
        return Answer(code, headers, body)

    def _chunk(self) -> bytes:
        size = int(self._until(b"\r\n"), 16)
        return self._exactly(size + 2)[:-2]

    def _receive(self) -> None:
        if self._socket is None:
            raise EOFError
        data = self._socket.recv(65536)
        if not data:
            raise EOFError
        self._pending += data

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._pending:
            self._receive()
        found, _, self._pending = self._pending.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._pending) < size:
            self._receive()
        found, self._pending = self._pending[:size], self._pending[size:]
        return found
