"""Connections that end with their client, whatever the peer says."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.tracing import Trace


class Connections(aiohttp.TCPConnector):
    """Connections to a server, kept open and shared.

    aiohttp forgets a connection that a call was given up on, or that the server asked to close, as soon as it has said
    goodbye to it. Over TLS the socket then stays open until the peer answers; a loop that ends before would leave it.
    """

    def __init__(self, *, limit: int, force_close: bool = False) -> None:
        super().__init__(limit=limit, force_close=force_close)
        self._open: set[asyncio.Transport] = set()

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        protocol = await super()._create_connection(req, traces, timeout)
        transport, closed = protocol.transport, protocol.closed
        if transport is not None and closed is not None:
            self._open.add(transport)

            def forget(done: asyncio.Future[None]) -> None:
                self._open.discard(transport)
                if not done.cancelled():
                    done.exception()  # Whoever used the connection was told; nobody else has to hear of it.

            closed.add_done_callback(forget)
        return protocol

    async def end(self) -> None:
        """Close all of them, without a word to those that do not answer."""
        await self.close()
        for transport in [*self._open]:
            transport.abort()
        # Sockets are closed by callbacks of the loop, which may be about to end.
        for _ in range(2):
            await asyncio.sleep(0)
