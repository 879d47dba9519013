"""Node leases: who speaks for a node, and the heartbeat that keeps it alive.

A lease is renewed every 10 s, stretched by up to 4 % so that a fleet does not beat in step. Renewals are written
without reading: the version comes from the answer to the last write, and only a conflict costs one read. A lease
that another process holds is looked at when it would expire, and taken then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holokube.base.clock import Clock
from holokube.base.errors import TransportError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import LEASES
from holokube.hollow.wheel import Timer, WheelDriver
from holokube.hollow.writes import Urgency, WritePool
from holokube.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from holokube.kube.timeformat import format_micro_time, parse_time
from holokube.kube.types import JsonObject

NAMESPACE = "kube-node-lease"
JITTER = 0.04
RETRY_BASE_S = 0.2
RETRY_MAX_S = 7.0
CALL_TIMEOUT_S = 10.0
LOOK_AGAIN_MIN_S = 1.0


@dataclass(slots=True)
class LeaseRecord:
    """What is known of the lease of one node."""

    node: str
    node_uid: str
    version: str = ""
    """resourceVersion of the last answer; empty when there is no lease as far as we know."""
    uid: str = ""
    holder: str = ""
    renewed_s: float = 0.0
    duration_s: float = 0.0
    transitions: int = 0
    held: bool = False
    failures: int = 0
    timer: Timer[Callable[[], None]] | None = None
    busy: bool = False


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
    ) -> None:
        if duration_s < 4:
            raise ValueError(f"a lease needs at least 4 s to be renewed in time, not {duration_s}")
        self._clock = clock
        self._client = client
        self._pool = pool
        self._wheel = wheel
        self._identity = identity
        self._rng = rng
        self._duration_s = duration_s
        self._every_s = duration_s / 4
        self._on_gained = on_gained
        self._on_lost = on_lost
        self._records: dict[str, LeaseRecord] = {}
        self._listed: dict[str, JsonObject] = {}
        self.stats = LeaseStats()

    def __len__(self) -> int:
        return len(self._records)

    async def read_all(self) -> None:
        """One list at the start instead of one read per node: who holds what already."""
        listed = await self._client.list_all(LEASES, NAMESPACE)
        self._listed = {lease["metadata"]["name"]: lease for lease in listed.items}

    def forget_listed(self) -> None:
        """All nodes have been seen: leases of others need no memory."""
        self._listed.clear()

    def owns(self, node: str) -> bool:
        """Whether we may speak for a node: we hold its lease, and it has not expired meanwhile."""
        record = self._records.get(node)
        return record is not None and record.held and self._clock.time() < record.renewed_s + record.duration_s

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

    async def release_all(self) -> None:
        """Gives all leases back, so that others need not wait for their end."""
        held = [record for record in self._records.values() if record.held]
        for node in [*self._records]:
            record = self._records.pop(node)
            self._wheel.cancel(record.timer)
        for start in range(0, len(held), 32):
            await asyncio.gather(*(self._release(record) for record in held[start : start + 32]))

    async def _release(self, record: LeaseRecord) -> None:
        record.held = False
        body = self._body(record)
        del body["spec"]["holderIdentity"]
        try:
            await self._client.update(LEASES, body, NAMESPACE)
        except (ApiError, TransportError):
            # It expires by itself.
            self.stats.errors += 1

    def _schedule(self, record: LeaseRecord, delay_s: float) -> None:
        self._wheel.cancel(record.timer)
        record.timer = self._wheel.after(delay_s, lambda: self._due(record))

    def _due(self, record: LeaseRecord) -> None:
        record.timer = None
        if not record.busy:
            record.busy = True
            self._pool.submit(Urgency.LEASE, lambda: self._tend(record))

    async def _tend(self, record: LeaseRecord) -> None:
        try:
            if self._records.get(record.node) is not record:
                return
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await self._write_or_look(record)
            record.failures = 0
        except (ApiError, TransportError, TimeoutError):
            self.stats.errors += 1
            record.failures += 1
            delay_s = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(record.failures - 1, 10))
            self._schedule(record, delay_s * (1 + JITTER * self._rng.random()))
        finally:
            record.busy = False

    async def _write_or_look(self, record: LeaseRecord) -> None:
        try:
            if not record.version:
                await self._write(record, create=True)
                return
            if self._may_take(record):
                await self._write(record, create=False)
                return
        except (Conflict, AlreadyExists):
            self.stats.conflicts += 1
        except NotFound:
            # Somebody deleted the lease, or its namespace is not there yet; the latter comes here again.
            if record.version:
                record.version = ""
                await self._write(record, create=True)
                return
            raise
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
        sent_s = self._clock.time()
        takes = not create and record.holder != self._identity
        if takes and record.holder:
            record.transitions += 1
        body = self._body(record, sent_s)
        if create:
            del body["metadata"]["resourceVersion"]
            answer = await self._client.create(LEASES, body, NAMESPACE)
        else:
            answer = await self._client.update(LEASES, body, NAMESPACE)
        if self._records.get(record.node) is not record:
            return
        # A lease that ran out while the server was away counts as gained anew: writes were held back meanwhile.
        was_held = record.held and sent_s < record.renewed_s + record.duration_s
        if record.held:
            self.stats.worst_age_s = max(self.stats.worst_age_s, self._clock.time() - record.renewed_s)
        self.stats.renewals += 1
        self.stats.taken_over += takes and bool(record.holder)
        record.version = str(answer["metadata"]["resourceVersion"])
        record.holder, record.held = self._identity, True
        record.renewed_s, record.duration_s = sent_s, float(self._duration_s)
        # Counted from when it was sent, so that a slow server does not stretch the interval.
        stretch = 1 + JITTER * self._rng.random() if was_held else 0.5 + 0.5 * self._rng.random()
        self._schedule(record, self._every_s * stretch - (self._clock.time() - sent_s))
        if not was_held:
            self._on_gained(record.node)

    def _body(self, record: LeaseRecord, now_s: float | None = None) -> JsonObject:
        renewed_s = record.renewed_s if now_s is None else now_s
        owner = {"apiVersion": "v1", "kind": "Node", "name": record.node, "uid": record.node_uid}
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration_s,
            "renewTime": format_micro_time(renewed_s),
        }
        if record.transitions:
            spec["leaseTransitions"] = record.transitions
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": record.node,
                "namespace": NAMESPACE,
                "resourceVersion": record.version,
                "ownerReferences": [owner],
            },
            "spec": spec,
        }

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
