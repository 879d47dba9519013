"""Writes EndpointSlices, and remembers what it wrote until the cache shows it."""

from __future__ import annotations

from holokube.client.cache import Lister
from holokube.client.client import Client
from holokube.client.resources import ENDPOINT_SLICES
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.workloads.endpoint_decisions import SliceChanges


class SliceWrites:
    """The slices of each key of an index of a lister, as they are after our own writes."""

    def __init__(self, client: Client, slices: Lister, index: str) -> None:
        self._client = client
        self._slices = slices
        self._index = index
        self._written: dict[str, dict[str, JsonObject]] = {}
        self._deleted: dict[str, dict[str, str]] = {}

    def forget(self, key: str) -> None:
        self._written.pop(key, None)
        self._deleted.pop(key, None)

    def present(self, key: str) -> list[JsonObject]:
        """The slices as the cache knows them, with our own writes that it has not seen yet."""
        cached = {s["metadata"]["name"]: s for s in self._slices.by_index(self._index, key)}
        written, deleted = self._written.get(key, {}), self._deleted.get(key, {})
        for name, obj in list(written.items()):
            seen = cached.get(name)
            if seen is not None and _version(seen) >= _version(obj):
                del written[name]
            else:
                cached[name] = obj
        for name, uid in list(deleted.items()):
            seen = cached.get(name)
            if seen is None or seen["metadata"]["uid"] != uid:
                del deleted[name]
            else:
                del cached[name]
        return [s for s in cached.values() if not s["metadata"].get("deletionTimestamp")]

    async def carry_out(self, key: str, changes: SliceChanges) -> None:
        written = self._written.setdefault(key, {})
        for endpoint_slice in changes.create:
            made = await self._client.create(ENDPOINT_SLICES, endpoint_slice)
            written[made["metadata"]["name"]] = made
        for endpoint_slice in changes.update:
            name = endpoint_slice["metadata"]["name"]
            try:
                written[name] = await self._client.update(ENDPOINT_SLICES, endpoint_slice)
            except NotFound:
                # Deleted behind our back: the cache, and the next look, will show it.
                written.pop(name, None)
                raise
        for endpoint_slice in changes.delete:
            meta = endpoint_slice["metadata"]
            written.pop(meta["name"], None)
            try:
                await self._client.delete(ENDPOINT_SLICES, meta["name"], meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue
            self._deleted.setdefault(key, {})[meta["name"]] = meta["uid"]


def _version(obj: JsonObject) -> int:
    text = str(obj["metadata"].get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0
