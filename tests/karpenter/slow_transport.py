"""A transport that takes its time: whoever is killed meanwhile has written something, or not, and never learns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.transport import Call, Transport, WatchEvent
from holokube.kube.types import JsonObject

LONGEST_S = 1.5


class SlowTransport:
    """Waits before and after every call; watches come as they are."""

    def __init__(self, clock: Clock, inner: Transport, rng: Rng) -> None:
        self._clock = clock
        self._inner = inner
        self._rng = rng

    async def call(self, call: Call) -> JsonObject:
        await self._clock.sleep(self._rng.uniform(0, LONGEST_S))
        answer = await self._inner.call(call)
        await self._clock.sleep(self._rng.uniform(0, LONGEST_S))
        return answer

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self._inner.watch(call)

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None,
        content_type: str = "application/json",
    ) -> Any:  # fmt: skip
        return await self._inner.request(method, path, query=query, body=body, content_type=content_type)

    async def close(self) -> None:
        """The cluster closes what is behind it."""
