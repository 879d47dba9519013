"""One TLS connection whose owner decides when to read.

The streams of asyncio wake the process for every record that comes in. An API server answers each request of a
batch in a record of its own, so that would be a wake-up per lease; reading when it suits is most of what makes this
path cheap.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

READ_BYTES = 64 * 1024
RECORD_BYTES = 16 * 1024
"""The most that a record of TLS holds. What goes through a ``MemoryBIO`` goes in pieces of this size: its buffer grows
with what is put in at once, and never shrinks."""


class Connection:
    """A connected socket that never blocks, with TLS on top if there is a context for it."""

    __slots__ = ("_incoming", "_loop", "_on_readable", "_outgoing", "_socket", "_tls", "_unsent", "_watched")

    def __init__(self, sock: socket.socket, tls: ssl.SSLContext | None, server_name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = None
        if tls is not None:
            self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._unsent = bytearray()
        self._on_readable: Callable[[], None] | None = None
        self._watched = False

    @classmethod
    async def open(
        cls, host: str, port: int, tls: ssl.SSLContext | None, server_name: str, timeout_s: float
    ) -> Connection:
        """Connects, to the first address of the host that answers, and shakes hands."""
        async with asyncio.timeout(timeout_s):
            sock = await _connect(host, port)
            connection = cls(sock, tls, server_name)
            try:
                await connection._shake_hands()
            except BaseException:
                connection.close()
                raise
            return connection

    async def _shake_hands(self) -> None:
        if self._tls is None:
            return
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._loop.sock_sendall(self._socket, self._outgoing.read())
                data = await self._loop.sock_recv(self._socket, RECORD_BYTES)
                if not data:
                    raise ConnectionResetError("the server hung up during the TLS handshake") from None
                self._incoming.write(data)
            else:
                await self._loop.sock_sendall(self._socket, self._outgoing.read())
                return

    def write(self, data: bytes) -> None:
        """Sends now what the kernel takes, and the rest when it can; raises OSError when the other side is gone."""
        if self._tls is not None:
            data = self._encrypt(data)
        self._send(data)

    def _encrypt(self, data: bytes) -> bytes:
        assert self._tls is not None
        parts: list[bytes] = []
        with memoryview(data) as view:
            for start in range(0, len(view), RECORD_BYTES):
                self._tls.write(view[start : start + RECORD_BYTES])
                parts.append(self._outgoing.read())
        return b"".join(parts)

    def _send(self, data: bytes) -> None:
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent < len(data):
            self._unsent += data[sent:]
            self._loop.add_writer(self._socket, self._send_rest)

    def _send_rest(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # Whoever reads next learns that the connection is gone.
            self._unsent.clear()
            self._loop.remove_writer(self._socket)
            return
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def read(self) -> bytes:
        """All that has come in, nothing if nothing has; raises EOFError at the end, and OSError."""
        received: list[bytes] = []
        ended = False
        while True:
            try:
                data = self._socket.recv(READ_BYTES)
            except (BlockingIOError, InterruptedError):
                break
            if not data:
                ended = True
                break
            received.append(data)
            if len(data) < READ_BYTES:
                break
        content = self._decrypt(received) if self._tls is not None else b"".join(received)
        if ended and not content:
            raise EOFError
        return content

    def _decrypt(self, received: list[bytes]) -> bytes:
        parts: list[bytes] = []
        for data in received:
            with memoryview(data) as view:
                for start in range(0, len(view), RECORD_BYTES):
                    self._incoming.write(view[start : start + RECORD_BYTES])
                    if not self._read_records(parts):
                        if not parts:
                            raise EOFError
                        return b"".join(parts)
        if self._outgoing.pending:
            # The other side changed keys and wants an answer.
            self._send(self._outgoing.read())
        return b"".join(parts)

    def _read_records(self, parts: list[bytes]) -> bool:
        """What complete records hold; False at the end of all records."""
        assert self._tls is not None
        while True:
            try:
                part = self._tls.read(RECORD_BYTES)
            except ssl.SSLWantReadError:
                return True
            except ssl.SSLZeroReturnError:
                return False
            if not part:
                return False
            parts.append(part)

    def when_readable(self, callback: Callable[[], None] | None) -> None:
        """Calls back once when something has come in; None takes it back."""
        self._on_readable = callback
        if (callback is not None) != self._watched:
            self._watched = callback is not None
            if self._watched:
                self._loop.add_reader(self._socket, self._readable)
            else:
                self._loop.remove_reader(self._socket)

    def _readable(self) -> None:
        callback = self._on_readable
        self.when_readable(None)
        if callback is not None:
            callback()

    def close(self) -> None:
        """Hangs up, without TLS's farewell, for which nobody waits."""
        if self._socket.fileno() < 0:
            return
        self.when_readable(None)
        self._loop.remove_writer(self._socket)
        self._socket.close()


async def _connect(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    last: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _probe_when_silent(sock)
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            last = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise last


def _probe_when_silent(sock: socket.socket) -> None:
    """Has the kernel notice a peer that vanished without a word."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
