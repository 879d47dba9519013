"""The event recorder: tells users what happened, without ever getting in the way of who tells it.

``EventRecorder.event`` only puts the event into a bounded queue. The recorder runs as a component of its own
that correlates the events (``event_correlator``) and writes them one after the other, in order.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import EVENTS, EVENTS_V1
from holokube.kube.errors import (
    AlreadyExists,
    ApiError,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)  # fmt: skip
from holokube.kube.names import is_dns1123_subdomain
from holokube.kube.timeformat import format_micro_time, format_time
from holokube.kube.types import JsonObject
from holokube.runtime.event_correlator import (
    Correlator,
    CountingCorrelator,
    EventWrite,
    SeriesCorrelator,
)  # fmt: skip
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal

NORMAL = "Normal"
WARNING = "Warning"

MAX_QUEUED = 10_000
MAX_TRIES = 12
RETRY_S = 10.0
FLUSH_DEADLINE_S = 5.0
# Limits of events.k8s.io/v1, which refuses the whole event over them.
_NOTE_BYTES_MAX = 1024
_WORD_BYTES_MAX = 128
_RENAMES_MAX = 16

_WORTH_A_RETRY = (TransportError, InternalError, ServiceUnavailable, Timeout, TooManyRequests)


class EventRecorder:
    """Records events of one component; run it as a component of the app."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        component: str,
        *,
        rng: Rng,
        host: str = "",
        api: Literal["v1", "events.k8s.io/v1"] = "v1",
        metrics: Metrics | None = None,
        max_queued: int = MAX_QUEUED,
        correlator: Correlator | None = None,
    ) -> None:
        self.name = f"events-{component}"
        self._clock = clock
        self._client = client
        self._component = component
        self._host = host
        self._rng = rng
        self._series = api != "v1"
        self._resource = EVENTS_V1 if self._series else EVENTS
        self._metrics = metrics
        self._max_queued = max_queued
        if correlator is None:
            correlator = SeriesCorrelator(clock) if self._series else CountingCorrelator(
                clock, new_name=lambda event: self._new_name(event["involvedObject"]["name"])
            )
        self._correlator: Correlator = correlator
        self._queue: deque[JsonObject] = deque()
        self._is_overflowing = False
        self._wake = asyncio.Event()
        # Components of one virtual instant share the time, so names are kept apart by a few nanoseconds.
        self._name_offset_ns = zlib.crc32(f"{component}/{host}".encode()) % 1000
        self._last_name_ns = 0
        self._log = get_logger("holokube.runtime.events").bind(component=component)

    @property
    def queued(self) -> int:
        """How many events wait to be written."""
        return len(self._queue)

    def event(
        self,
        obj: Mapping[str, Any],
        type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: Mapping[str, Any] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Something happened to ``obj``, an object or a reference to one. Never blocks, never raises."""
        # Looked at first: a burst that is far too large should not cost what it would cost to write it.
        if len(self._queue) >= self._max_queued:
            self._dropped("queue_full")
            # Once per burst: a line for each would bury everything else, and the metric counts them all.
            if not self._is_overflowing:
                self._is_overflowing = True
                self._log.warning("Too many events are queued, some are dropped", queued=len(self._queue))
            return
        try:
            event = self._make(obj, type, reason, message, action, related, annotations)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            self._log.error("Event not recorded", reason=reason, message=message, error=str(error))
            return
        if len(self._queue) < self._max_queued // 2:
            self._is_overflowing = False
        self._queue.append(event)
        self._wake.set()

    async def run(self, stop: StopSignal) -> None:
        """Writes events until the stop, then those still queued, for at most five seconds."""
        try:
            async with asyncio.timeout(None) as scope:

                def begin_flush() -> None:
                    scope.reschedule(self._clock.monotonic() + FLUSH_DEADLINE_S)
                    self._wake.set()

                stop.add_callback(begin_flush)
                try:
                    await self._write_all(stop)
                finally:
                    stop.remove_callback(begin_flush)
        except TimeoutError:
            for _ in self._queue:
                self._dropped("gave_up")
            self._log.warning("Events were lost at the stop: no answer in time", lost=len(self._queue))
            self._queue.clear()

    async def _write_all(self, stop: StopSignal) -> None:
        while True:
            while self._queue:
                write = self._correlator.correlate(self._queue.popleft())
                if write is not None:
                    await self._write(write, stop)
                elif not self._series:
                    self._dropped("spam")
            for write in self._correlator.due(final=stop.is_set()):
                await self._write(write, stop)
            if self._queue:
                continue
            if stop.is_set():
                return
            self._wake.clear()
            try:
                async with asyncio.timeout_at(self._correlator.due_at_s()):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _write(self, write: EventWrite, stop: StopSignal) -> None:
        """Writes one event; gives up when the server refuses it, or after twelve tries without an answer."""
        tries = 0
        while True:
            error = await self._try_write(write, may_exist=tries > 0)
            if error is None:
                return
            tries += 1
            if not isinstance(error, _WORTH_A_RETRY):
                self._dropped("rejected")
                self._log.warning("The server refused an event", event=_describe(write), error=str(error))
                return
            if tries >= MAX_TRIES or stop.is_set():
                self._dropped("gave_up")
                self._log.error("An event could not be written", event=_describe(write), error=str(error))
                return
            # The first wait is random, so that not all clients come at once to a server that is back.
            await stop.sleep(RETRY_S * self._rng.random() if tries == 1 else RETRY_S)

    async def _try_write(self, write: EventWrite, *, may_exist: bool) -> HolokubeError | None:
        """One try. An earlier one without an answer may have succeeded: then it is us who has the name."""
        space = write.event["metadata"]["namespace"]
        try:
            if write.patch is not None:
                try:
                    await self._client.patch(
                        self._resource, write.event["metadata"]["name"], write.patch, namespace=space
                    )
                    return None
                except NotFound:
                    # It has expired on the server, which keeps events for an hour: write it anew.
                    pass
            for _ in range(_RENAMES_MAX):
                try:
                    await self._client.create(self._resource, write.event, space)
                    return None
                except AlreadyExists:
                    if may_exist:
                        return None
                    self._rename(write)
            return AlreadyExists(f"no free name found for event {_describe(write)}")
        except (ApiError, TransportError) as error:
            return error

    def _rename(self, write: EventWrite) -> None:
        """Another recorder was here at the same nanosecond, which virtual time makes likely."""
        involved = write.event.get("regarding") or write.event["involvedObject"]
        write.event = {
            **write.event,
            "metadata": {**write.event["metadata"], "name": self._new_name(involved["name"])},
        }
        self._correlator.renamed(write.key, write.event)

    def _make(
        self,
        obj: Mapping[str, Any],
        type: str,
        reason: str,
        message: str,
        action: str,
        related: Mapping[str, Any] | None,
        annotations: Mapping[str, str] | None,
    ) -> JsonObject:
        if type not in (NORMAL, WARNING):
            raise ValueError(f"the type of an event is {NORMAL} or {WARNING}, not {type!r}")
        involved = object_reference(obj)
        meta: JsonObject = {
            "name": self._new_name(involved["name"]),
            "namespace": involved.get("namespace") or "default",
        }
        if annotations:
            meta["annotations"] = dict(annotations)
        if self._series:
            event: JsonObject = {
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": meta,
                "eventTime": format_micro_time(self._clock.now()),
                "reportingController": self._component,
                "reportingInstance": _cut(
                    f"{self._component}-{self._host}" if self._host else self._component, _WORD_BYTES_MAX
                ),
                "action": _cut(action or reason, _WORD_BYTES_MAX),
                "reason": _cut(reason, _WORD_BYTES_MAX),
                "regarding": involved,
                "note": _cut(message, _NOTE_BYTES_MAX),
                "type": type,
            }  # fmt: skip
            if related is not None:
                event["related"] = object_reference(related)
            return event
        stamp = format_time(self._clock.time())
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        event = {
            "apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": involved,
            "reason": reason, "message": message, "source": source,
            "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1, "type": type,
            "reportingComponent": self._component, "reportingInstance": self._host,
        }  # fmt: skip
        if action:
            event["action"] = action
        if related is not None:
            event["related"] = object_reference(related)
        return event

    def _new_name(self, object_name: str) -> str:
        """``<object>.<hex of the time in nanoseconds>``, never the same twice from one recorder."""
        now_ns = int(self._clock.time() * 1_000_000) * 1000 + self._name_offset_ns
        self._last_name_ns = max(now_ns, self._last_name_ns + 1)
        name = f"{object_name}.{self._last_name_ns:x}"
        # Some kinds allow names that an Event may not have (RBAC has colons); upstream takes a UUID then too.
        return name if not is_dns1123_subdomain(name) else self._rng.uid()

    def _dropped(self, cause: str) -> None:
        if self._metrics is not None:
            self._metrics.event_dropped(self._component, cause)


def object_reference(obj: Mapping[str, Any]) -> JsonObject:
    """The ObjectReference to an object; a reference is returned as it is."""
    meta = obj.get("metadata")
    if meta is None:
        if not obj.get("kind") or not obj.get("name"):
            raise ValueError(f"a reference needs kind and name, got {dict(obj)!r}")
        return dict(obj)
    if not obj.get("kind") or not obj.get("apiVersion"):
        raise ValueError(f"the object {meta.get('name')!r} has no kind or no apiVersion to refer to it by")
    if not meta.get("name"):
        raise ValueError(f"the {obj['kind']} has no name to refer to it by")
    reference: JsonObject = {"kind": obj["kind"]}
    if meta.get("namespace"):
        reference["namespace"] = meta["namespace"]
    reference["name"] = meta["name"]
    if meta.get("uid"):
        reference["uid"] = meta["uid"]
    reference["apiVersion"] = obj["apiVersion"]
    if meta.get("resourceVersion"):
        reference["resourceVersion"] = meta["resourceVersion"]
    return reference


def _cut(text: str, bytes_max: int) -> str:
    raw = text.encode()
    return text if len(raw) <= bytes_max else raw[:bytes_max].decode(errors="ignore")


def _describe(write: EventWrite) -> str:
    event = write.event
    return f"{event['metadata']['namespace']}/{event['metadata']['name']} ({event['reason']})"
