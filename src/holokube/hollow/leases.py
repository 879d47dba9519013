"""Node leases: who speaks for a node, and the heartbeat that keeps it alive.

A lease is renewed every 10 s, stretched by up to 4 % so that a fleet does not beat in step. Renewals are written
without reading: the version comes from the answer to the last write, and only a conflict costs one read. A lease
that another process holds is looked at when it would expire, and taken then.

A lease that is ours goes the short way: when its time has come the renewal is handed to the carrier, together with
all others of the same half second. Whatever is not a plain renewal (the first write, a conflict, a lease of
somebody else) takes the long way through the client.

On virtual time leases may be ``continuous`` (``kube.heartbeats``): written once when a node is taken, and once more
when its heartbeat ends.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import LEASES
from holokube.client.transport import Call
from holokube.hollow.wheel import Timer, WheelDriver
from holokube.hollow.writes import LEASE_NAMESPACE as NAMESPACE
from holokube.hollow.writes import LEASE_TIMEOUT_S, Carrier, ClientCarrier, Renewal, Urgency, WritePool
from holokube.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

JITTER = 0.04
RETRY_BASE_S = 0.2
RETRY_MAX_S = 7.0
LOOK_AGAIN_MIN_S = 1.0
RELEASE_WAIT_S = 2.0
RELEASE_LOOK_S = 0.05
SLOT_S = 0.5
"""Renewals fall due in steps of this size, so that many leave, and are answered, at once."""


@dataclass(slots=True)
class LeaseRecord:
    """What is known of the lease of one node."""

    node: str
    node_uid: str
    version: str = ""
    """resourceVersion of the last answer; empty when there is no lease as far as we know."""
    holder: str = ""
    renewed_s: float = 0.0
    duration_s: float = 0.0
    transitions: int = 0
    held: bool = False
    failures: int = 0
    timer: Timer[Callable[[], None]] | None = None
    busy: bool = False
    lapsed: bool = False
    """Whether the heartbeat has ended."""


@dataclass(slots=True)
class LeaseStats:
    """Counters since the start."""

    renewals: int = 0
    reads: int = 0
    conflicts: int = 0
    errors: int = 0
    taken_over: int = 0
    worst_age_s: float = 0.0
    """The longest time between two renewals of a lease that we held."""


class LeaseKeeper:
    """The leases of all nodes of a fleet."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        pool: WritePool,
        wheel: WheelDriver[Callable[[], None]],
        *,
        identity: str,
        rng: Rng,
        duration_s: int = 40,
        on_gained: Callable[[str], None],
        on_lost: Callable[[str], None],
        carrier: Carrier | None = None,
        continuous: bool = False,
    ) -> None:
        """``continuous``: one write stands for all renewals, which is for clusters without any other fleet."""
        if duration_s < 4:
            raise ValueError(f"a lease needs at least 4 s to be renewed in time, not {duration_s}")
        self._clock = clock
        self._client = client
        self._pool = pool
        self._carrier: Carrier = carrier or ClientCarrier(clock, client.transport, pool)
        self._wheel = wheel
        self._identity = identity
        self._rng = rng
        self._duration_s = duration_s
        self._every_s = duration_s / 4
        self._continuous = continuous
        self._on_gained = on_gained
        self._on_lost = on_lost
        # One bound method for all timers, instead of one for each.
        self._when_due = self._due
        self._records: dict[str, LeaseRecord] = {}
        self._listed: dict[str, JsonObject] = {}
        self._releasing = False
        self.stats = LeaseStats()

    def __len__(self) -> int:
        return len(self._records)

    async def read_all(self, *, only: str = "") -> None:
        """One list at the start instead of one read per node: who holds what already; ``only`` of one node, if told."""
        chosen = f"metadata.name={only}" if only else ""
        listed = await self._client.list_all(LEASES, NAMESPACE, field_selector=chosen)
        self._listed = {lease["metadata"]["name"]: lease for lease in listed.items}

    def forget_listed(self) -> None:
        """All nodes have been seen: leases of others need no memory."""
        self._listed.clear()

    def owns(self, node: str) -> bool:
        """Whether we may speak for a node: we hold its lease, and it has not expired meanwhile."""
        record = self._records.get(node)
        if record is None or not record.held:
            return False
        return self._continuous or self._clock.time() < record.renewed_s + record.duration_s

    def held(self) -> list[str]:
        """The nodes whose leases are ours."""
        return [name for name, record in self._records.items() if record.held]

    def add(self, node: str, node_uid: str, *, after_s: float = 0.0) -> None:
        """Begins to care for the lease of a node; ``after_s`` leaves others the first try."""
        known = self._records.get(node)
        if known is not None and known.node_uid == node_uid:
            return
        if known is not None:
            self.remove(node)
        record = LeaseRecord(node, node_uid)
        self._records[node] = record
        lease = self._listed.pop(node, None)
        if lease is not None:
            self._learn(record, lease)
            if not self._may_take(record):
                self._schedule(record, self._until_expiry_s(record))
                return
        if after_s > 0:
            self._schedule(record, after_s)
        else:
            self._due(record)

    def remove(self, node: str) -> None:
        """Forgets a node; its Lease goes with it, by owner reference."""
        record = self._records.pop(node, None)
        self._listed.pop(node, None)
        if record is not None:
            self._wheel.cancel(record.timer)
            record.held, record.timer = False, None

    def lapse(self, node: str) -> None:
        """A node falls silent: its lease is renewed no more, and runs out."""
        record = self._records.get(node)
        self.remove(node)
        if record is not None and self._continuous:
            record.lapsed = True
            # One that is being written at this moment is ended with the answer.
            if record.version:
                self._end(record)

    def _end(self, record: LeaseRecord) -> None:
        renewal = self._renewal(record)
        renewal.continuous = False
        beats = (self._clock.time() - record.renewed_s) // self._every_s
        renewal.at_s = record.renewed_s + beats * self._every_s
        call = Call("update", LEASES, NAMESPACE, record.node, body=renewal.body())
        self._carrier.send(Urgency.LEASE, call, self._lapsed)

    def _lapsed(self, _answer: JsonObject, error: HolokubeError | None) -> None:
        """A lease that went with its node, or that somebody else writes by now, needs no end."""
        if error is not None and not isinstance(error, NotFound | Conflict):
            self.stats.errors += 1

    async def release_all(self) -> None:
        """Gives all leases back, so that others need not wait for their end; there are none for continuous ones."""
        self._releasing = True
        if self._continuous:
            self._records.clear()
            return
        for record in self._records.values():
            self._wheel.cancel(record.timer)
            record.timer = None
        # A renewal under way changes the version that giving back has to name.
        deadline_s = self._clock.monotonic() + RELEASE_WAIT_S
        while any(record.busy for record in self._records.values()) and self._clock.monotonic() < deadline_s:
            await self._clock.sleep(RELEASE_LOOK_S)
        held = [record for record in self._records.values() if record.held]
        self._records.clear()
        for start in range(0, len(held), 32):
            await asyncio.gather(*(self._release(record) for record in held[start : start + 32]))

    async def _release(self, record: LeaseRecord) -> None:
        record.held = False
        renewal = self._renewal(record)
        renewal.holder, renewal.at_s = "", record.renewed_s
        try:
            await self._client.update(LEASES, renewal.body(), NAMESPACE)
        except (ApiError, TransportError):
            # It expires by itself.
            self.stats.errors += 1

    def _schedule(self, record: LeaseRecord, delay_s: float) -> None:
        if self._releasing:
            return
        self._wheel.cancel(record.timer)
        at_s = self._clock.monotonic() + max(0.0, delay_s)
        # Renewals go to the nearest slot, which leaves their mean interval as it is; nothing else may come early.
        slots = round(at_s / SLOT_S) if record.held and not record.failures else math.ceil(at_s / SLOT_S)
        record.timer = self._wheel.at(slots * SLOT_S, partial(self._when_due, record))

    def _due(self, record: LeaseRecord) -> None:
        record.timer = None
        if record.busy or self._releasing:
            return
        record.busy = True
        renewal = self._renewal(record)
        if record.held and record.version:
            self._carrier.renew(renewal, partial(self._renewed, record, renewal))
        elif not record.version:
            renewal.at_s = self._clock.time()
            call = Call("create", LEASES, NAMESPACE, body=renewal.body())
            self._carrier.send(Urgency.LEASE, call, partial(self._created, record, renewal))
        else:
            self._pool.submit(Urgency.LEASE, lambda: self._tend(record))

    def _renewed(self, record: LeaseRecord, renewal: Renewal, version: str, error: HolokubeError | None) -> None:
        """The answer to a plain renewal."""
        if self._records.get(record.node) is not record:
            record.busy = False
        elif error is None:
            record.busy = False
            record.failures = 0
            self._written(record, renewal, version)
        elif isinstance(error, Conflict):
            # Somebody else wrote it, or the answer to an earlier renewal was lost: one read tells.
            self.stats.conflicts += 1
            self._pool.submit(Urgency.LEASE, lambda: self._tend(record, look=True))
        elif isinstance(error, NotFound):
            # Somebody deleted it.
            record.version, record.busy = "", False
            self._due(record)
        else:
            record.busy = False
            self._failed(record, error)

    def _created(
        self, record: LeaseRecord, renewal: Renewal, answer: JsonObject, error: HolokubeError | None
    ) -> None:
        """The answer to a first write."""
        if isinstance(error, AlreadyExists) and self._records.get(record.node) is record:
            self._pool.submit(Urgency.LEASE, lambda: self._tend(record, look=True))
            return
        record.busy = False
        if self._records.get(record.node) is not record:
            if error is None and record.lapsed:
                record.version = str(answer["metadata"]["resourceVersion"])
                record.renewed_s = renewal.at_s
                self._end(record)
            return
        if error is None:
            record.failures = 0
            self._written(record, renewal, str(answer["metadata"]["resourceVersion"]))
        else:
            # NotFound means that the namespace is not there yet.
            self._failed(record, error)

    def _failed(self, record: LeaseRecord, error: BaseException) -> None:
        self.stats.errors += 1
        record.failures += 1
        delay_s = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(record.failures - 1, 10))
        asked_s = error.retry_after_s if isinstance(error, ApiError) else None
        self._schedule(record, max(delay_s * (1 + JITTER * self._rng.random()), float(asked_s or 0)))

    async def _tend(self, record: LeaseRecord, *, look: bool = False) -> None:
        try:
            if self._records.get(record.node) is not record:
                return
            async with asyncio.timeout(LEASE_TIMEOUT_S):
                await (self._look(record) if look else self._write_or_look(record))
            record.failures = 0
        except (ApiError, TransportError, TimeoutError) as error:
            self._failed(record, error)
        finally:
            record.busy = False

    async def _write_or_look(self, record: LeaseRecord) -> None:
        """A lease of somebody else: it is taken if it has run out as far as we know."""
        if self._may_take(record):
            try:
                await self._write(record, create=False)
                return
            except Conflict:
                self.stats.conflicts += 1
            except NotFound:
                record.version = ""
        await self._look(record)

    async def _look(self, record: LeaseRecord) -> None:
        """One read, and the write that follows from it."""
        self.stats.reads += 1
        try:
            lease = await self._client.get(LEASES, record.node, NAMESPACE)
        except NotFound:
            record.version = ""
            await self._write(record, create=True)
            return
        self._learn(record, lease)
        if self._may_take(record):
            await self._write(record, create=False)
            return
        if record.held:
            record.held = False
            self._on_lost(record.node)
        self._schedule(record, self._until_expiry_s(record))

    async def _write(self, record: LeaseRecord, *, create: bool) -> None:
        renewal = self._renewal(record)
        renewal.at_s = self._clock.time()
        if create:
            renewal.version = ""
            answer = await self._client.create(LEASES, renewal.body(), NAMESPACE)
        else:
            renewal.transitions += record.holder not in ("", self._identity)
            answer = await self._client.update(LEASES, renewal.body(), NAMESPACE)
        if self._records.get(record.node) is record:
            self._written(record, renewal, str(answer["metadata"]["resourceVersion"]))

    def _written(self, record: LeaseRecord, renewal: Renewal, version: str) -> None:
        """The lease is ours for another while."""
        sent_s, now_s = renewal.at_s, self._clock.time()
        # A lease that ran out while the server was away counts as gained anew: writes were held back meanwhile.
        was_held = record.held and sent_s < record.renewed_s + record.duration_s
        if record.held:
            self.stats.worst_age_s = max(self.stats.worst_age_s, now_s - record.renewed_s)
        self.stats.renewals += 1
        self.stats.taken_over += record.holder not in ("", self._identity)
        record.version, record.transitions = version, renewal.transitions
        record.holder, record.held = self._identity, True
        record.renewed_s, record.duration_s = sent_s, float(self._duration_s)
        # Counted from when it was sent, so that a slow server does not stretch the interval.
        stretch = 1 + JITTER * self._rng.random() if was_held else 0.5 + 0.5 * self._rng.random()
        if not self._continuous:
            self._schedule(record, self._every_s * stretch - (now_s - sent_s))
        if not was_held:
            self._on_gained(record.node)

    def _renewal(self, record: LeaseRecord) -> Renewal:
        return Renewal(
            record.node, record.node_uid, record.version, self._identity, self._duration_s, record.transitions,
            continuous=self._continuous,
        )  # fmt: skip

    @staticmethod
    def _learn(record: LeaseRecord, lease: JsonObject) -> None:
        spec = lease.get("spec") or {}
        record.version = str(lease["metadata"]["resourceVersion"])
        record.holder = str(spec.get("holderIdentity") or "")
        record.renewed_s = parse_time(spec["renewTime"]).timestamp() if spec.get("renewTime") else 0.0
        record.duration_s = float(spec.get("leaseDurationSeconds") or 0)
        record.transitions = int(spec.get("leaseTransitions") or 0)

    def _may_take(self, record: LeaseRecord) -> bool:
        if record.holder in ("", self._identity):
            return True
        return self._clock.time() >= record.renewed_s + record.duration_s

    def _until_expiry_s(self, record: LeaseRecord) -> float:
        left_s = record.renewed_s + record.duration_s - self._clock.time()
        return max(LOOK_AGAIN_MIN_S, left_s)
