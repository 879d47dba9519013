"""Events of all hollow kubelets through one correlator; a real kubelet has one of its own, per node."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.client.client import PatchType
from holokube.client.resources import EVENTS
from holokube.client.transport import Call
from holokube.hollow.writes import Answered, Carrier, Urgency
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.event_correlator import CountingCorrelator
from holokube.runtime.event_occurrence import EventWrite
from holokube.runtime.events import object_reference

_NAMES_MAX = 16


class EventSink:
    """Builds, counts and queues events; they are the first to be dropped when there is too much to do."""

    def __init__(self, clock: Clock, carrier: Carrier, *, identity: str = "") -> None:
        self._clock = clock
        self._carrier = carrier
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
            self._write(write)

    def _write(self, write: EventWrite) -> None:
        if write.patch is None:
            self._create(write, _NAMES_MAX)
            return
        meta = write.event["metadata"]
        call = Call("patch", EVENTS, meta["namespace"], meta["name"], "", {}, write.patch, PatchType.MERGE.value)
        self._send(call, partial(self._patched, write))

    def _patched(self, write: EventWrite, _answer: JsonObject, error: HolokubeError | None) -> None:
        if isinstance(error, NotFound):
            # It has expired on the server: write it anew.
            self._create(write, _NAMES_MAX)
        elif error is not None:
            self.lost += 1

    def _create(self, write: EventWrite, names_left: int) -> None:
        call = Call("create", EVENTS, write.event["metadata"]["namespace"], body=write.event)
        self._send(call, partial(self._created, write, names_left - 1))

    def _created(self, write: EventWrite, names_left: int, _answer: JsonObject, error: HolokubeError | None) -> None:
        if isinstance(error, AlreadyExists) and names_left > 0:
            name = self._new_name(write.event["involvedObject"]["name"])
            write.event = {**write.event, "metadata": {**write.event["metadata"], "name": name}}
            self._correlator.renamed(write.key, write.event)
            self._create(write, names_left)
        elif error is not None:
            # A namespace being deleted refuses events, a restarting server all: neither is worth a second try.
            self.lost += 1

    def _send(self, call: Call, done: Answered) -> None:
        self._carrier.send(Urgency.EVENT, call, done)

    def _new_name(self, object_name: str) -> str:
        now_ns = int(self._clock.time() * 1_000_000) * 1000 + self._offset_ns
        self._last_ns = max(now_ns, self._last_ns + 1)
        return f"{object_name}.{self._last_ns:x}"
