"""A small API server in memory, behind the ``Transport`` protocol.

It knows resource versions, a history window that watches and old lists fall out of, pages that all show one moment,
bookmarks and streamed initial state: what an informer depends on, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from holokube.base.clock import Clock
from holokube.client.cache import object_key
from holokube.client.transport import JSON, Call, WatchEvent
from holokube.kube.errors import (
    OBJECT_WAS_MODIFIED,
    Expired,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Timeout,
    already_exists,
    conflict,
    not_found,
)
from holokube.kube.selectors import LabelSelector

JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One write: what an object was before and after it."""

    revision: int
    key: str
    before: JsonObject | None
    after: JsonObject | None


class FakeApi:
    """Holds one kind of object."""

    def __init__(
        self, clock: Clock, *, window: int = 50, streams_initial_state: bool = True, bookmark_every_s: float = 30.0
    ) -> None:
        self._clock = clock
        self._window = window
        self._streams_initial_state = streams_initial_state
        self._bookmark_every_s = bookmark_every_s
        self.revision = 1
        self.objects: dict[str, JsonObject] = {}
        self.history: list[Change] = []
        self.calls: list[Call] = []
        self._uids = 0
        self._changed = asyncio.Event()

    # The transport's face

    async def call(self, call: Call) -> JsonObject:
        self.calls.append(call)
        await self._clock.sleep(0.001)
        key = f"{call.namespace}/{call.name}" if call.namespace else call.name
        match call.verb:
            case "get":
                return self._existing(call, key)
            case "list":
                return self._list(call)
            case "create":
                return self.create(call.body, call)
            case "update":
                return self.update(call.body, call)
            case "delete":
                return self.delete(key, call)
        raise MethodNotAllowed(f"the server does not allow {call.verb}")

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self.calls.append(call)
        await self._clock.sleep(0.001)
        query = call.query
        initial = query.get("sendInitialEvents") == "true"
        if initial and not self._streams_initial_state:
            raise Invalid("ListOptions.meta.k8s.io is invalid: sendInitialEvents: Forbidden")
        version = query.get("resourceVersion", "")
        if initial or version in ("", "0"):
            seen = self.revision
            for obj in self._at(call, seen):
                yield WatchEvent("ADDED", obj)
            if initial:
                yield self._bookmark(call, seen, {"k8s.io/initial-events-end": "true"})
        else:
            seen = int(version)
            if seen > self.revision:
                raise Timeout(f"Too large resource version: {seen}, current: {self.revision}")
        ends_at = self._clock.monotonic() + int(query.get("timeoutSeconds", "300"))
        while self._clock.monotonic() < ends_at:
            if seen < self.oldest:
                status = Expired(f"too old resource version: {seen} ({self.oldest})").to_status()
                yield WatchEvent("ERROR", status)
                return
            for change in [change for change in self.history if change.revision > seen]:
                event = self._event(call, change)
                seen = change.revision
                if event is not None:
                    yield event
            if not await self._wait_for_change(min(self._bookmark_every_s, ends_at - self._clock.monotonic())):
                yield self._bookmark(call, seen, {})

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        raise NotFound(f"{method} {path}: the server could not find the requested resource")

    async def close(self) -> None:
        pass

    # Writes, also for tests that change the world behind a client's back

    @property
    def oldest(self) -> int:
        """The lowest version from which a watch can still start."""
        return self.history[0].revision - 1 if self.history else self.revision

    def create(self, obj: JsonObject, call: Call | None = None) -> JsonObject:
        key = object_key(obj)
        if key in self.objects:
            raise already_exists("", call.resource.plural if call else "", obj["metadata"]["name"])
        self._uids += 1
        meta = {**obj["metadata"], "uid": f"uid-{self._uids}"}
        return self._write(key, {**obj, "metadata": meta})

    def update(self, obj: JsonObject, call: Call | None = None) -> JsonObject:
        key = object_key(obj)
        old = self._existing(call, key)
        asked = obj["metadata"].get("resourceVersion")
        if asked and asked != old["metadata"]["resourceVersion"]:
            raise conflict("", call.resource.plural if call else "", key, OBJECT_WAS_MODIFIED)
        return self._write(key, {**obj, "metadata": {**obj["metadata"], "uid": old["metadata"]["uid"]}})

    def delete(self, key: str, call: Call | None = None) -> JsonObject:
        old = self._existing(call, key)
        self._write(key, None)
        return old

    def forget_history(self) -> None:
        """Compaction: every running watch and every older list is too old now."""
        self.revision += 1
        self.history.clear()

    def reset(self) -> None:
        """Another, empty cluster under the same address."""
        self.revision = 1
        self.objects.clear()
        self.history.clear()
        self._wake()

    def _write(self, key: str, obj: JsonObject | None) -> JsonObject:
        self.revision += 1
        before = self.objects.get(key)
        if obj is None:
            del self.objects[key]
        else:
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
            self.objects[key] = obj
        self.history.append(Change(self.revision, key, before, obj))
        del self.history[: -self._window]
        self._wake()
        return obj or {}

    # Reads

    def _existing(self, call: Call | None, key: str) -> JsonObject:
        if key not in self.objects:
            raise not_found("", call.resource.plural if call else "", key)
        return self.objects[key]

    def _list(self, call: Call) -> JsonObject:
        revision, start_after = self.revision, ""
        token = call.query.get("continue", "")
        if token:
            pinned, _, start_after = token.partition(":")
            revision = int(pinned)
            if revision < self.oldest:
                raise Expired("The provided continue parameter is too old")
        items = [obj for obj in self._at(call, revision) if object_key(obj) > start_after]
        limit = int(call.query.get("limit", "0"))
        meta: JsonObject = {"resourceVersion": str(revision)}
        if limit and len(items) > limit:
            meta["remainingItemCount"] = len(items) - limit
            items = items[:limit]
            meta["continue"] = f"{revision}:{object_key(items[-1])}"
        # As upstream, the items of a list do not repeat their kind.
        bare = [{k: v for k, v in obj.items() if k not in ("kind", "apiVersion")} for obj in items]
        return {"kind": f"{call.resource.kind}List", "apiVersion": "v1", "metadata": meta, "items": bare}

    def _at(self, call: Call, revision: int) -> list[JsonObject]:
        state = dict(self.objects)
        for change in reversed(self.history):
            if change.revision <= revision:
                break
            if change.before is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.before
        return [state[key] for key in sorted(state) if self._matches(call, state[key])]

    def _matches(self, call: Call, obj: JsonObject | None) -> bool:
        if obj is None or (call.namespace and obj["metadata"].get("namespace") != call.namespace):
            return False
        selector = LabelSelector.parse(call.query.get("labelSelector", ""))
        return selector.matches(obj["metadata"].get("labels") or {})

    def _event(self, call: Call, change: Change) -> WatchEvent | None:
        was, is_now = self._matches(call, change.before), self._matches(call, change.after)
        if is_now:
            assert change.after is not None
            return WatchEvent("MODIFIED" if was else "ADDED", change.after)
        if was:
            assert change.before is not None
            meta = {**change.before["metadata"], "resourceVersion": str(change.revision)}
            return WatchEvent("DELETED", {**change.before, "metadata": meta})
        return None

    def _bookmark(self, call: Call, revision: int, annotations: Mapping[str, str]) -> WatchEvent:
        meta: JsonObject = {"resourceVersion": str(revision)}
        if annotations:
            meta["annotations"] = dict(annotations)
        return WatchEvent("BOOKMARK", {"kind": call.resource.kind, "apiVersion": "v1", "metadata": meta})

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait_for_change(self, limit_s: float) -> bool:
        try:
            await asyncio.wait_for(self._changed.wait(), limit_s)
        except TimeoutError:
            return False
        return True


def pod(name: str, *, namespace: str = "default", labels: Mapping[str, str] | None = None, **spec: Any) -> JsonObject:
    meta: JsonObject = {"name": name, "namespace": namespace}
    if labels is not None:
        meta["labels"] = dict(labels)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
