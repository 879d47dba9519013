"""Events of all hollow kubelets through one correlator; a real kubelet has one of its own, per node."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from holokube.base.clock import Clock
from holokube.base.errors import TransportError
from holokube.client.client import Client
from holokube.client.resources import EVENTS
from holokube.hollow.writes import Urgency, WritePool
from holokube.kube.errors import AlreadyExists, ApiError, NotFound
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.event_correlator import CountingCorrelator, EventWrite
from holokube.runtime.events import object_reference

_NAMES_MAX = 16


class EventSink:
    """Builds, counts and queues events; they are the first to be dropped when there is too much to do."""

    def __init__(self, clock: Clock, client: Client, pool: WritePool, *, identity: str = "") -> None:
        self._clock = clock
        self._client = client
        self._pool = pool
        self._correlator = CountingCorrelator(
            clock, new_name=lambda event: self._new_name(event["involvedObject"]["name"])
        )
        # Two fleets on one virtual clock share the nanosecond, so names are kept apart by who made them.
        self._offset_ns = zlib.crc32(identity.encode()) % 1000
        self._last_ns = 0
        self.lost = 0

    def emit(
        self, obj: Mapping[str, Any], node: str, type: str, reason: str, message: str, *, field_path: str = ""
    ) -> None:
        """Tells what happened to an object, as the kubelet of a node."""
        involved = object_reference(obj)
        if field_path:
            involved["fieldPath"] = field_path
        stamp = format_time(self._clock.time())
        event: JsonObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": self._new_name(involved["name"]),
                "namespace": involved.get("namespace") or "default",
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": node},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "type": type,
            "reportingComponent": "kubelet",
            "reportingInstance": node,
        }
        write = self._correlator.correlate(event)
        if write is not None:
            self._pool.submit(Urgency.EVENT, lambda: self._write(write))

    async def _write(self, write: EventWrite) -> None:
        meta = write.event["metadata"]
        try:
            if write.patch is not None:
                try:
                    await self._client.patch(EVENTS, meta["name"], write.patch, namespace=meta["namespace"])
                    return
                except NotFound:
                    # It has expired on the server: write it anew.
                    pass
            for _ in range(_NAMES_MAX):
                try:
                    await self._client.create(EVENTS, write.event, write.event["metadata"]["namespace"])
                    return
                except AlreadyExists:
                    name = self._new_name(write.event["involvedObject"]["name"])
                    write.event = {**write.event, "metadata": {**write.event["metadata"], "name": name}}
                    self._correlator.renamed(write.key, write.event)
            self.lost += 1
        except (ApiError, TransportError):
            # A namespace being deleted refuses events, a restarting server all: neither is worth a second try.
            self.lost += 1

    def _new_name(self, object_name: str) -> str:
        now_ns = int(self._clock.time() * 1_000_000) * 1000 + self._offset_ns
        self._last_ns = max(now_ns, self._last_ns + 1)
        return f"{object_name}.{self._last_ns:x}"
