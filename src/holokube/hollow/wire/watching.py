"""Watches over the wire; everything else goes through the transport it is built on.

An API server flushes every event by itself. Read as they come, thousands of events are thousands of wake-ups; here
the first one starts a short wait, and all that have come by its end are read together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson

from holokube.base.clock import Clock
from holokube.base.errors import TransportError
from holokube.client.http_errors import quoted, transport_error
from holokube.client.lines import LineSplitter, LineTooLongError
from holokube.client.transport import JSON, Call, Transport, WatchEvent
from holokube.hollow.wire.answers import ChunkDecoder, WireError, is_chunked, read_head
from holokube.hollow.wire.connection import Connection
from holokube.hollow.wire.dialer import Dialer
from holokube.hollow.wire.echoes import Echoes
from holokube.hollow.wire.slim import decode_slim

GATHER_S = 0.1
WATCH_SILENCE_S = 30.0
"""How long after its announced end a watch may stay silent before it counts as dead."""
ANSWER_TIMEOUT_S = 30.0
MAX_EVENT_BYTES = 8 * 1024 * 1024
_MODIFIED = b'{"type":"MODIFIED"'


class WireTransport:
    """A transport whose watches are cheap."""

    def __init__(
        self, clock: Clock, dialer: Dialer, inner: Transport, *, gather_s: float = GATHER_S,
        echoes: Echoes | None = None,
    ) -> None:
        self._clock = clock
        self._dialer = dialer
        self._inner = inner
        self._gather_s = gather_s
        self._echoes = echoes
        self._open: set[Connection] = set()
        self._closed = False

    async def call(self, call: Call) -> dict[str, Any]:
        return await self._inner.call(call)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        return await self._inner.request(method, path, query=query, body=body, content_type=content_type)

    async def close(self) -> None:
        self._closed = True
        for connection in self._open:
            connection.close()
        await self._inner.close()

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        what = str(call)
        try:
            stream = await self._start(call)
        except (OSError, TimeoutError, EOFError, WireError) as error:
            raise transport_error(error, what, self._dialer.server) from error
        if stream is None:
            # Refused: the ordinary client knows what to do about every way to be refused.
            async for event in self._inner.watch(call):
                yield event
            return
        try:
            async for lines in stream.read(what):
                for line in lines:
                    yield self._event(line, what)
        finally:
            self._open.discard(stream.connection)
            stream.connection.close()

    def _event(self, line: bytes, what: str) -> WatchEvent:
        if self._echoes is not None and line.startswith(_MODIFIED):
            echo = self._echoes.take(line)
            if echo is not None:
                return WatchEvent("MODIFIED", echo)
        return _event(line, what, self._dialer.server)

    async def _start(self, call: Call) -> _Stream | None:
        """Sends the request and reads the head of the answer; None if it is not 200."""
        if not self._dialer.is_fresh:
            await self._dialer.refresh()
        connection = await self._dialer.dial()
        self._open.add(connection)
        stream = _Stream(self._clock, connection, self._gather_s, self._silence_s(call), self._dialer.server)
        try:
            query = urlencode({**call.query, "watch": "true"})
            line = b"GET %b%b?%b HTTP/1.1\r\n" % (self._dialer.path_prefix, call.path.encode(), query.encode())
            connection.write(line + self._dialer.head + b"\r\n")
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                code = await stream.read_head()
        except BaseException:
            self._open.discard(connection)
            connection.close()
            raise
        if code == 200:
            return stream
        self._open.discard(connection)
        connection.close()
        return None

    @staticmethod
    def _silence_s(call: Call) -> float | None:
        asked_s = call.query.get("timeoutSeconds", "")
        return float(asked_s) + WATCH_SILENCE_S if asked_s else None


class _Stream:
    """The endless answer to a watch."""

    def __init__(
        self, clock: Clock, connection: Connection, gather_s: float, silence_s: float | None, server: str
    ) -> None:
        self._clock = clock
        self.connection = connection
        self._gather_s = gather_s
        self._silence_s = silence_s
        self._server = server
        self._begin = b""
        self._chunks: ChunkDecoder | None = None

    async def read_head(self) -> int:
        buffer = b""
        while True:
            begun = read_head(buffer, 0) if buffer else None
            if begun is not None:
                code, head, start = begun
                if code >= 200:
                    self._chunks = ChunkDecoder() if is_chunked(head) else None
                    self._begin = buffer[start:]
                    return code
                buffer = buffer[start:]
                continue
            await self._readable()
            buffer += self.connection.read()

    async def read(self, what: str) -> AsyncIterator[list[bytes]]:
        """The lines, in batches, until the server ends them in good order."""
        lines = LineSplitter(MAX_EVENT_BYTES)
        data = self._begin
        try:
            while True:
                content = self._chunks.feed(data) if self._chunks is not None else data
                complete = lines.feed(content) if content else []
                if complete:
                    yield complete
                if self._chunks is not None and self._chunks.is_complete:
                    break
                async with asyncio.timeout(self._silence_s):
                    await self._readable()
                if self._gather_s:
                    await asyncio.sleep(self._gather_s)
                try:
                    data = self.connection.read()
                except EOFError:
                    if self._chunks is not None:
                        raise TransportError(
                            f"{what}: the watch was cut off", hint="Watch again from the last version."
                        ) from None
                    break
        except LineTooLongError as error:
            raise TransportError(
                f"{what}: {self._server} sent {error}", hint="Watch with a selector that leaves the object out."
            ) from error
        except (OSError, TimeoutError, WireError) as error:
            raise transport_error(error, what, self._server) from error
        if lines.rest():
            raise TransportError(
                f"{what}: the watch was cut in the middle of an event", hint="Watch again from the last version."
            )

    async def _readable(self) -> None:
        """Waits until something has come in."""
        arrived = asyncio.get_running_loop().create_future()
        self.connection.when_readable(lambda: None if arrived.done() else arrived.set_result(None))
        try:
            await arrived
        finally:
            self.connection.when_readable(None)


def _event(line: bytes, what: str, server: str) -> WatchEvent:
    try:
        event = decode_slim(line)
        return WatchEvent(event["type"], event["object"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise TransportError(
            f"{what}: {server} sent a line that is no watch event: {quoted(line)}",
            hint="Is `server` in the kubeconfig really a Kubernetes API server?",
        ) from error
