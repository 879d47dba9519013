"""A server that answers as it is told, one request after the other on each connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from holokube.client.access import ClusterAccess


@dataclass
class Got:
    """One request as it came in."""

    connection: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What to answer; ``cut`` hangs up instead, ``last`` afterwards."""

    code: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    last: bool = False
    hang: bool = False

    def encode(self) -> bytes:
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        if self.last:
            headers["Connection"] = "close"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.code} X\r\n{lines}\r\n".encode() + self.body


class ScriptedServer:
    """Hands each request to ``handle``."""

    def __init__(self, handle: Callable[[Got], Reply]) -> None:
        self._handle = handle
        self.got: list[Got] = []
        self.connections = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def access(self) -> ClusterAccess:
        return ClusterAccess(server=f"http://127.0.0.1:{self.port}/prefix")

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = first.split()
                got = Got(number, method, path, headers, body)
                self.got.append(got)
                reply = self._handle(got)
                if reply.hang:
                    await asyncio.Event().wait()
                if reply.cut:
                    return
                writer.write(reply.encode())
                await writer.drain()
                if reply.last:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()


@asynccontextmanager
async def scripted(handle: Callable[[Got], Reply]) -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer(handle)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
