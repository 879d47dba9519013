"""Watches over the wire show what the ordinary ones show."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from holokube.base.errors import TransportError
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.resources import CONFIG_MAPS
from holokube.hollow.wire import Dialer, WireTransport
from holokube.kube.errors import Expired, Forbidden
from tests.hollow.wire.servers import Got, Reply, scripted
from tests.hollow.wire.test_carriers import World, world

LIMIT_S = 20.0


def config_map(name: str, size: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"text": "x" * size}}


async def first(client: Client, count: int, version: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    async with aclosing(client.watch(CONFIG_MAPS, "default", resource_version=version)) as stream:
        async for event in stream:
            if event.type != "BOOKMARK":
                found.append((event.type, event.object))
            if len(found) == count:
                break
    return found


def test_events_are_the_same_as_those_of_the_ordinary_client(tmp_path: Path) -> None:
    async def main() -> None:
        async with world(tmp_path, "wire") as made:
            wire = Client(WireTransport(made.clock, made.dialer, made.http, gather_s=0.01))
            listed = await made.client.list(CONFIG_MAPS, "default")
            # One is much larger than a record of TLS and than a chunk.
            for number, size in enumerate((1, 100_000, 3000)):
                await made.client.create(CONFIG_MAPS, config_map(f"c{number}", size), "default")
            await made.client.delete(CONFIG_MAPS, "c0", "default")
            version = listed.resource_version
            ours, theirs = await first(wire, 4, version), await first(made.client, 4, version)
            assert ours == theirs
            assert [kind for kind, _ in ours] == ["ADDED", "ADDED", "ADDED", "DELETED"]

    asyncio.run(main())


def test_a_refused_watch_is_refused_as_by_the_ordinary_client() -> None:
    def handle(got: Got) -> Reply:
        return Reply(403, b'{"kind":"Status","code":403,"reason":"Forbidden"}')

    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), scripted(handle) as server:
            made = World(server.access, "wire")
            wire = Client(WireTransport(made.clock, made.dialer, made.http))
            with pytest.raises(Forbidden):
                await first(wire, 1, "1")
            await wire.close()

    asyncio.run(main())


def test_a_version_that_is_too_old_is_told_in_the_stream(tmp_path: Path) -> None:
    def handle(got: Got) -> Reply:
        status = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}'
        line = b'{"type":"ERROR","object":%b}\n' % status
        return Reply(body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(line), line), headers={"Transfer-Encoding": "chunked"})

    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), scripted(chunked(handle)) as server:
            made = World(server.access, "wire")
            wire = Client(WireTransport(made.clock, made.dialer, made.http))
            with pytest.raises(Expired):
                await first(wire, 1, "1")
            await wire.close()

    asyncio.run(main())


def chunked(handle: Any) -> Any:
    """Without the length that the scripted server would add."""

    def without_length(got: Got) -> Reply:
        reply = handle(got)
        encoded = Reply.encode

        class Chunked(Reply):
            def encode(self) -> bytes:
                head, _, body = encoded(self).partition(b"\r\n\r\n")
                lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
                return b"\r\n".join(lines) + b"\r\n\r\n" + body

        return Chunked(reply.code, reply.body, reply.headers, last=reply.last)

    return without_length


@pytest.mark.parametrize("cut_at", [30, 8])
def test_a_watch_that_is_cut_off_is_an_error(cut_at: int) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}\n'

    def handle(got: Got) -> Reply:
        return Reply(body=(b"%x\r\n%b\r\n" % (len(line), line))[:-cut_at], last=True,
                     headers={"Transfer-Encoding": "chunked"})  # fmt: skip

    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), scripted(chunked(handle)) as server:
            made = World(server.access, "wire")
            wire = Client(WireTransport(made.clock, made.dialer, made.http, gather_s=0.0))
            with pytest.raises(TransportError, match="cut off"):
                await first(wire, 1, "1")
            await wire.close()

    asyncio.run(main())


def test_an_unreachable_server_is_a_transport_error() -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S):
            async with scripted(lambda got: Reply()) as server:
                access = server.access
            made = World(access, "wire")
            wire = Client(WireTransport(made.clock, Dialer(made.clock, access), HttpTransport(made.clock, access)))
            with pytest.raises(TransportError, match="watch configmaps"):
                await first(wire, 1, "1")
            await wire.close()
            await made.client.close()

    asyncio.run(main())
