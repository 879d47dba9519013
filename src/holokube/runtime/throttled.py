"""A transport that sends no more requests than it was told to, as client-go's QPS and burst do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from holokube.base.clock import Clock
from holokube.client.transport import JSON, Call, Transport, WatchEvent, close_stream
from holokube.runtime.ratelimit import TokenBucket


class ThrottledTransport:
    """Wraps ``inner``: requests wait in line for their turn; the events of a watch do not."""

    def __init__(self, clock: Clock, inner: Transport, *, per_s: float, burst: int) -> None:
        self._clock = clock
        self._inner = inner
        self._bucket = TokenBucket(clock, per_s=per_s, burst=burst)

    async def call(self, call: Call) -> dict[str, Any]:
        await self._turn()
        return await self._inner.call(call)

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        await self._turn()
        stream = self._inner.watch(call)
        try:
            async for event in stream:
                yield event
        finally:
            await close_stream(stream)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        await self._turn()
        return await self._inner.request(method, path, query=query, body=body, content_type=content_type)

    async def close(self) -> None:
        await self._inner.close()

    async def _turn(self) -> None:
        wait_s = self._bucket.reserve_s()
        if wait_s > 0:
            await self._clock.sleep(wait_s)
