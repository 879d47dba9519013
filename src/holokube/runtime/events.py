"""The event recorder: tells users what happened, without ever getting in the way of who tells it.

``EventRecorder.event`` correlates the event with those before it (``event_correlator``, ``event_series``) and puts what
is left to write into a bounded queue. The recorder runs as a component of its own that writes one after the other, in
order.
Where nobody reads events (``Postponing``) they are only taken down, and correlated later, many at a time.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import EVENTS, EVENTS_V1, Resource
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
from holokube.runtime.event_correlator import CountingCorrelator
from holokube.runtime.event_occurrence import (
    Correlator,
    EventWrite,
    Occurrence,
    PatientCorrelator,
    Reference,
    reference_json,
    reference_of,
)  # fmt: skip
from holokube.runtime.event_series import SeriesCorrelator
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal

NORMAL = "Normal"
WARNING = "Warning"
_TYPES = (NORMAL, WARNING)

MAX_QUEUED = 10_000
MAX_TRIES = 12
RETRY_S = 10.0
FLUSH_DEADLINE_S = 5.0
MAX_TOLD = 500
"""How many events are taken down at most before they are correlated, where nobody reads them."""
# Limits of events.k8s.io/v1, which refuses the whole event over them.
_NOTE_BYTES_MAX = 1024
_WORD_BYTES_MAX = 128
_WORD_SURE = _WORD_BYTES_MAX // 4
"""So many characters are never too many bytes."""
_RENAMES_MAX = 16

_UNTELLABLE = (ValueError, TypeError, AttributeError, KeyError)
"""What goes wrong with an event whose object is none, or of which something cannot be looked up in a dict."""
_WORTH_A_RETRY = (TransportError, InternalError, ServiceUnavailable, Timeout, TooManyRequests)


@runtime_checkable
class Discarding(Protocol):
    """A transport to where nobody reads some of what is written."""

    def discard(self, verb: str, resource: Resource) -> bool:
        """Whether a write need not be sent, as it would succeed and never be looked at; it counts as sent then."""


@runtime_checkable
class Postponing(Discarding, Protocol):
    """One that may be told later, and of many writes at once, what was not sent."""

    def postpones(self, settle: Callable[[], None]) -> bool:
        """Whether it does; then ``settle`` is called before anybody asks how many writes there were."""

    def discards(self, resource: Resource) -> bool:
        """As ``discard``, of a write that is counted later."""

    def count_discarded(self, verb: str, writes: int) -> None:
        """So many writes were not sent."""


_Told = tuple[
    Mapping[str, Any], str, str, str, float, float, str, Mapping[str, Any] | None, Mapping[str, str] | None
]  # fmt: skip
"""An event as it was told: object, type, reason and message, when by the monotonic clock and in Unix seconds, action,
related object and annotations."""


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
        self._dropped: Counter[str] = Counter()
        if metrics is not None:
            self._dropped = metrics.dropped_events(component, self._settle)
        self._max_queued = max_queued
        if correlator is None:
            correlator = SeriesCorrelator(clock) if self._series else CountingCorrelator(
                clock, new_name=lambda event: self._new_name(event["involvedObject"]["name"], self._clock.time())
            )
        self._correlator: Correlator = correlator
        self._queue: deque[EventWrite] = deque()
        self._discards = client.transport if isinstance(client.transport, Discarding) else None
        # Where nobody reads events, all that matters of them is how many there are. They are correlated many at a time
        # then, which takes far less than to come back to it for each, between other things.
        self._told: list[_Told] = []
        self._postpones: Postponing | None = None
        self._patient = correlator if isinstance(correlator, PatientCorrelator) and not self._series else None
        transport = client.transport
        if self._patient is not None and isinstance(transport, Postponing) and transport.postpones(self._settle):
            self._postpones = transport
        self._sleeps_until_s: float | None = None
        self._is_overflowing = False
        self._wake = asyncio.Event()
        # Components of one virtual instant share the time, so names are kept apart by a few nanoseconds.
        self._name_offset_ns = zlib.crc32(f"{component}/{host}".encode()) % 1000
        self._last_name_ns = 0
        self._maker = self._make
        # An owner has much to tell at once, of each of its pods.
        self._last_referred: tuple[Mapping[str, Any] | None, Reference] = (None, ())
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
        postpones = self._postpones
        if (
            postpones is not None
            # If something waits to be written, this has to wait behind it.
            and not self._queue
            and type in _TYPES
            and isinstance(message, str)
            and postpones.discards(self._resource)
        ):
            clock, told = self._clock, self._told
            told.append((obj, type, reason, message, clock.monotonic(), clock.time(), action, related, annotations))
            if len(told) >= MAX_TOLD:
                self._settle()
            return
        # Looked at first: a burst that is far too large should not cost what it would cost to write it.
        if len(self._queue) >= self._max_queued:
            self._dropped["queue_full"] += 1
            # Once per burst: a line for each would bury everything else, and the metric counts them all.
            if not self._is_overflowing:
                self._is_overflowing = True
                self._log.warning("Too many events are queued, some are dropped", queued=len(self._queue))
            return
        try:
            occurrence = self._occurrence(obj, type, reason, message, self._clock.time(), action, related, annotations)
            if postpones is not None:
                self._settle()
            write = self._correlator.consider(occurrence)
        except _UNTELLABLE as error:
            self._log.error("Event not recorded", reason=reason, message=message, error=str(error))
            return
        if len(self._queue) < self._max_queued // 2:
            self._is_overflowing = False
        if write is None:
            if self._series:
                self._wake_for_due()
            else:
                self._dropped["spam"] += 1
            return
        # If nothing waits that would have to be written before, it may turn out that nobody would read this one.
        discards = self._discards
        if (
            discards is not None
            and not self._queue
            and discards.discard("patch" if write.is_patch else "create", self._resource)
        ):
            if self._series:
                self._wake_for_due()
            return
        self._queue.append(write)
        self._wake.set()

    def tell_each(self, told: Sequence[tuple[Mapping[str, Any], str]], type: str, reason: str) -> None:
        """As ``event`` for each object and message, in order."""
        if not self._is_flood(told, type, reason):
            for obj, message in told:
                self.event(obj, type, reason, message)

    def _is_flood(self, told: Sequence[tuple[Mapping[str, Any], str]], type: str, reason: str) -> bool:
        """Whether they are too many for any to be known from before, and nobody reads them; then they are counted."""
        patient, postpones = self._patient, self._postpones
        if (
            postpones is None
            or patient is None
            or len(told) < MAX_TOLD
            or self._queue
            or type not in _TYPES
            or not all(isinstance(message, str) for _, message in told)
            or not postpones.discards(self._resource)
        ):
            return False
        maker, now_s, told_s = self._maker, self._clock.monotonic(), self._clock.time()
        self._settle()
        try:
            flood = [Occurrence(_reference_to(obj), type, reason, message, maker, told_s) for obj, message in told]
            creates = patient.count_flood_at(flood, now_s)
        except _UNTELLABLE:
            # Which of them is wrong is said where each is told by itself.
            return False
        if creates is None:
            return False
        if creates:
            postpones.count_discarded("create", creates)
        if creates < len(flood):
            self._dropped["spam"] += len(flood) - creates
        return True

    def _settle(self) -> None:
        """Correlates what was only taken down, as of when it was told."""
        told, patient, postpones = self._told, self._patient, self._postpones
        if not told or patient is None or postpones is None:
            return
        self._told = []
        spam = patches = creates = 0
        count_at, maker = patient.count_at, self._maker
        last, reference = self._last_referred
        for obj, kind, reason, message, now_s, told_s, action, related, notes in told:
            try:
                if action or related is not None or notes:
                    occurrence = self._occurrence(obj, kind, reason, message, told_s, action, related, notes)
                else:
                    if obj is not last:
                        last, reference = obj, _reference_to(obj)
                    occurrence = Occurrence(reference, kind, reason, message, maker, told_s)
                first = count_at(occurrence, now_s)
            except _UNTELLABLE as error:
                self._log.error("Event not recorded", reason=reason, message=message, error=str(error))
                continue
            if first is None:
                spam += 1
            elif first.count > 1:
                patches += 1
            else:
                creates += 1
        # A cause or a verb that never came up is not told of, not even with a zero.
        if spam:
            self._dropped["spam"] += spam
        if patches:
            postpones.count_discarded("patch", patches)
        if creates:
            postpones.count_discarded("create", creates)

    def _is_discarded(self, write: EventWrite) -> bool:
        if self._discards is None:
            return False
        return self._discards.discard("patch" if write.is_patch else "create", self._resource)

    def _wake_for_due(self) -> None:
        """Has the writer know of what will be due sooner than it knows."""
        due_at_s = self._correlator.due_at_s()
        if due_at_s is not None and (self._sleeps_until_s is None or due_at_s < self._sleeps_until_s):
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
            self._dropped["gave_up"] += len(self._queue)
            self._log.warning("Events were lost at the stop: no answer in time", lost=len(self._queue))
            self._queue.clear()

    async def _write_all(self, stop: StopSignal) -> None:
        while True:
            while self._queue:
                await self._write(self._queue.popleft(), stop)
            for write in self._correlator.due(final=stop.is_set()):
                await self._write(write, stop)
            if self._queue:
                continue
            if stop.is_set():
                self._settle()
                return
            self._wake.clear()
            self._sleeps_until_s = self._correlator.due_at_s()
            try:
                async with asyncio.timeout_at(self._sleeps_until_s):
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
                self._dropped["rejected"] += 1
                self._log.warning("The server refused an event", event=_describe(write), error=str(error))
                return
            if tries >= MAX_TRIES or stop.is_set():
                self._dropped["gave_up"] += 1
                self._log.error("An event could not be written", event=_describe(write), error=str(error))
                return
            # The first wait is random, so that not all clients come at once to a server that is back.
            await stop.sleep(RETRY_S * self._rng.random() if tries == 1 else RETRY_S)

    async def _try_write(self, write: EventWrite, *, may_exist: bool) -> HolokubeError | None:
        """One try. An earlier one without an answer may have succeeded: then it is us who has the name."""
        if self._is_discarded(write):
            return None
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
            "metadata": {**write.event["metadata"], "name": self._new_name(involved["name"], self._clock.time())},
        }
        self._settle()
        self._correlator.renamed(write.key, write.event)

    def _occurrence(
        self,
        obj: Mapping[str, Any],
        type: str,
        reason: str,
        message: str,
        told_s: float,
        action: str,
        related: Mapping[str, Any] | None,
        annotations: Mapping[str, str] | None,
    ) -> Occurrence:
        if type not in _TYPES:
            raise ValueError(f"the type of an event is {NORMAL} or {WARNING}, not {type!r}")
        if not isinstance(message, str):
            # The event itself is made later, where nobody could be told.
            raise TypeError(f"the message of an event is a text, not {message!r}")
        last, reference = self._last_referred
        if obj is not last:
            reference = _reference_to(obj)
            self._last_referred = obj, reference
        occurrence = Occurrence(reference, type, reason, message, self._maker, told_s)
        if annotations:
            occurrence.annotations = dict(annotations)
        if related is not None:
            occurrence.related = reference_of(object_reference(related))
        if self._series:
            occurrence.action = action or reason
            if len(reason) > _WORD_SURE or len(action) > _WORD_SURE:
                occurrence.reason = _cut(reason, _WORD_BYTES_MAX)
                occurrence.action = _cut(action or reason, _WORD_BYTES_MAX)
        elif action:
            occurrence.action = action
        return occurrence

    def _make(self, occurrence: Occurrence) -> JsonObject:
        involved = reference_json(occurrence.reference)
        meta: JsonObject = {
            "name": self._new_name(involved["name"], occurrence.told_s),
            "namespace": involved.get("namespace") or "default",
        }
        if occurrence.annotations is not None:
            meta["annotations"] = occurrence.annotations
        if self._series:
            event: JsonObject = {
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": meta,
                "eventTime": format_micro_time(occurrence.told_s),
                "reportingController": self._component,
                "reportingInstance": _cut(
                    f"{self._component}-{self._host}" if self._host else self._component, _WORD_BYTES_MAX
                ),
                "action": occurrence.action,
                "reason": occurrence.reason,
                "regarding": involved,
                "note": _cut(occurrence.message, _NOTE_BYTES_MAX),
                "type": occurrence.type,
            }  # fmt: skip
        else:
            stamp = format_time(occurrence.told_s)
            source = {"component": self._component}
            if self._host:
                source["host"] = self._host
            event = {
                "apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": involved,
                "reason": occurrence.reason, "message": occurrence.message, "source": source,
                "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1, "type": occurrence.type,
                "reportingComponent": self._component, "reportingInstance": self._host,
            }  # fmt: skip
            if occurrence.action:
                event["action"] = occurrence.action
        if occurrence.related is not None:
            event["related"] = reference_json(occurrence.related)
        return event

    def _new_name(self, object_name: str, at_s: float) -> str:
        """``<object>.<hex of the time in nanoseconds>``, never the same twice from one recorder."""
        now_ns = int(at_s * 1_000_000) * 1000 + self._name_offset_ns
        self._last_name_ns = max(now_ns, self._last_name_ns + 1)
        name = f"{object_name}.{self._last_name_ns:x}"
        # Some kinds allow names that an Event may not have (RBAC has colons); upstream takes a UUID then too.
        return name if not is_dns1123_subdomain(name) else self._rng.uid()


def _reference_to(obj: Mapping[str, Any]) -> Reference:
    """What tells an object, or a reference to one, from others."""
    try:
        # All that come from a server have these.
        meta, kind, api_version = obj["metadata"], obj["kind"], obj["apiVersion"]
        name, uid, version = meta["name"], meta["uid"], meta["resourceVersion"]
    except (KeyError, TypeError):
        return reference_of(object_reference(obj))
    if not (kind and name and api_version):
        # This tells which of them is missing.
        object_reference(obj)
    return (kind, meta.get("namespace") or None, name, uid or None, api_version, version or None, None)


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
    if 4 * len(text) <= bytes_max:
        return text
    raw = text.encode()
    return text if len(raw) <= bytes_max else raw[:bytes_max].decode(errors="ignore")


def _describe(write: EventWrite) -> str:
    event = write.event
    return f"{event['metadata']['namespace']}/{event['metadata']['name']} ({event['reason']})"
