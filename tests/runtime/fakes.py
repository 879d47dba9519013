"""An API server in a dict, for tests of the runtime alone: versions, conflicts, watches, slow answers."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.client.transport import Call, WatchEvent
from holokube.kube.errors import Conflict, already_exists, conflict, not_found

Object = dict[str, Any]


class FakeTransport:
    """Keeps objects by resource and key. ``latency_s`` gives each call a way there and a way back."""

    def __init__(self, clock: VirtualClock, latency_s: Callable[[], float] = lambda: 0.0) -> None:
        self.clock = clock
        self.latency_s = latency_s
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.version = 0
        self.calls: list[tuple[float, Call]] = []
        self.counts: Counter[str] = Counter()
        self.fail: Callable[[Call], Exception | None] = lambda call: None
        self.history: list[tuple[int, str, WatchEvent]] = []
        self.changed = asyncio.Event()
        self.late_writes: set[asyncio.Task[Object]] = set()

    async def call(self, call: Call) -> Object:
        self.calls.append((self.clock.monotonic(), call))
        self.counts[call.verb] += 1
        error = self.fail(call)
        if error is not None:
            raise error
        way_there_s, way_back_s = self.latency_s(), self.latency_s()
        if not way_there_s and not way_back_s:
            return self.do(call)
        # The request is on its way even when the caller no longer waits for the answer.
        task = asyncio.create_task(self._travel(call, way_there_s, way_back_s))
        self.late_writes.add(task)
        task.add_done_callback(self._arrived)
        return await asyncio.shield(task)

    def _arrived(self, task: asyncio.Task[Object]) -> None:
        self.late_writes.discard(task)
        if not task.cancelled():
            task.exception()

    async def _travel(self, call: Call, way_there_s: float, way_back_s: float) -> Object:
        await self.clock.sleep(way_there_s)
        try:
            return self.do(call)
        finally:
            await self.clock.sleep(way_back_s)

    def do(self, call: Call) -> Object:
        resource = call.resource
        name = call.name or ((call.body or {}).get("metadata") or {}).get("name", "")
        key = (resource.qualified_name, call.namespace, name)
        if call.verb == "list":
            items = [o for k, o in self.objects.items() if k[0] == key[0] and call.namespace in ("", k[1])]
            return {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        present = self.objects.get(key)
        if call.verb == "create":
            if present is not None:
                raise already_exists(resource.group, resource.plural, key[2])
            meta = {"uid": f"uid-{self.version}", "namespace": call.namespace, **call.body["metadata"]}
            return self._store(key, {**call.body, "metadata": meta}, "ADDED")
        if present is None:
            raise not_found(resource.group, resource.plural, call.name)
        if call.verb == "get":
            return present
        if call.verb == "update":
            sent = call.body["metadata"].get("resourceVersion")
            if sent and sent != present["metadata"]["resourceVersion"]:
                raise conflict(resource.group, resource.plural, call.name, "the object has been modified")
            return self._store(key, call.body, "MODIFIED")
        if call.verb == "patch":
            return self._store(key, {**present, **call.body}, "MODIFIED")
        assert call.verb == "delete", call.verb
        self.version += 1
        del self.objects[key]
        meta = {**present["metadata"], "resourceVersion": str(self.version)}
        self._tell("DELETED", key[0], {**present, "metadata": meta})
        return {"kind": "Status", "status": "Success"}

    def _store(self, key: tuple[str, str, str], obj: Object, type: str) -> Object:
        self.version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self.objects[key] = stored
        self._tell(type, key[0], stored)
        return stored

    def _tell(self, type: str, resource: str, obj: Object) -> None:
        self.history.append((self.version, resource, WatchEvent(type, obj)))
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        after = int(call.query["resourceVersion"])
        position = bisect_right(self.history, after, key=lambda entry: entry[0])
        while True:
            while position < len(self.history):
                _, resource, event = self.history[position]
                position += 1
                if resource == call.resource.qualified_name:
                    yield event
            await self.changed.wait()

    async def request(self, *_args: Any, **_kwargs: Any) -> Any:
        raise Conflict("not in this fake")

    async def close(self) -> None:
        for task in list(self.late_writes):
            task.cancel()
