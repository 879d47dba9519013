"""Carries out writes with a bounded number of workers, the most urgent first.

Leases come before everything else, and some workers do nothing but leases: however many pod patches hang in a
slow server, a heartbeat never waits behind them.

What keeps leases, nodes and pods hands its writes to a ``Carrier`` and is called back. There are two: the one here
goes through the ordinary client, in process or over HTTP; ``holokube.hollow.wire`` talks to the wire by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, Final, Protocol

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.log import get_logger
from holokube.client.resources import LEASES
from holokube.client.transport import Call, Transport
from holokube.kube.errors import ApiError
from holokube.kube.heartbeats import CONTINUOUS
from holokube.kube.timeformat import format_micro_time
from holokube.kube.types import JsonObject

Job = Callable[[], Awaitable[None]]

LEASE_NAMESPACE = "kube-node-lease"
LEASE_TIMEOUT_S = 10.0


class Urgency(IntEnum):
    """The order of writes."""

    LEASE = 0
    NODE = 1
    POD = 2
    EVENT = 3


_LEASE: Final = Urgency.LEASE
_EVENT: Final = Urgency.EVENT
_JOBS_PER_WORKER: Final = 8
"""For so many jobs that come together one worker more is woken at once; the others wake each other if need be."""


@dataclass(slots=True)
class Renewal:
    """The next state of the lease of a node."""

    node: str
    node_uid: str
    version: str
    """The state it follows; any other makes the server refuse it."""
    holder: str
    duration_s: int
    transitions: int = 0
    at_s: float = 0.0
    """Set by the carrier when it is sent: a lease must not look younger or older than it is."""
    continuous: bool = False
    """Whether it stands for all renewals to come as well."""

    def body(self) -> JsonObject:
        """The Lease; without a version it is one to create, without a holder one that is given back."""
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": self.node_uid}
        meta: dict[str, Any] = {"name": self.node, "namespace": LEASE_NAMESPACE}
        if self.version:
            meta["resourceVersion"] = self.version
        if self.continuous:
            meta["annotations"] = {CONTINUOUS: "true"}
        meta["ownerReferences"] = [owner]
        spec: dict[str, Any] = {"holderIdentity": self.holder} if self.holder else {}
        spec["leaseDurationSeconds"] = self.duration_s
        spec["renewTime"] = format_micro_time(self.at_s)
        if self.transitions:
            spec["leaseTransitions"] = self.transitions
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


Renewed = Callable[[str, HolokubeError | None], None]
"""Called with the new version, or with what went wrong."""
Answered = Callable[[JsonObject, HolokubeError | None], None]
"""Called with the answer, or with what went wrong (and an empty object)."""


class Withheld(HolokubeError):
    """Not sent: while it waited, this process lost the right to write."""

    def __init__(self, call: Call) -> None:
        super().__init__(f"{call}: not sent, the node is no longer ours")


class Carrier(Protocol):
    """Takes writes to the server. Each is answered exactly once, later, unless the carrier is closed before."""

    def renew(self, renewal: Renewal, done: Renewed) -> None:
        """Replaces a lease that is there; goes before everything else."""

    def send(
        self,
        urgency: Urgency,
        call: Call,
        done: Answered,
        allowed: Callable[[], bool] | None = None,
        known: Callable[[], JsonObject] | None = None,
    ) -> bool:
        """Any other write; only events are ever refused, when too many of them wait already.

        ``allowed`` is asked once more when the write's turn has come; if not, it is answered ``Withheld``. ``known`` is
        the object as far as the caller knows it: if the watch was faster, it need not be decoded again.
        """

    async def close(self) -> None:
        """Forgets what is under way."""


class WritePool:
    """Workers and their queues. A job handles its own errors; one that escapes is logged."""

    def __init__(self, *, workers: int = 16, lease_workers: int = 4, events_max: int = 10_000) -> None:
        if workers < 1 or lease_workers < 0:
            raise ValueError(f"a write pool needs at least one worker, not {workers}, and no negative number")
        self._workers = workers
        self._lease_workers = lease_workers
        self._events_max = events_max
        self._queues: tuple[deque[Job], ...] = tuple(deque() for _ in Urgency)
        self._idle: deque[asyncio.Future[None]] = deque()
        self._idle_lease: deque[asyncio.Future[None]] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting = 0
        """How many jobs are queued."""
        self._coming = 0
        """How many workers for all jobs were woken and have not looked around yet."""
        self._active = 0
        self.dropped_events = 0
        self._log = get_logger("holokube.hollow.writes")

    @property
    def queued(self) -> int:
        """How many jobs wait."""
        return self._waiting

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being done."""
        return self._active == 0 and self.queued == 0

    def start(self) -> None:
        for number in range(self._workers + self._lease_workers):
            only_leases = number >= self._workers
            name = f"hollow {'lease ' if only_leases else ''}writer {number}"
            self._tasks.append(asyncio.create_task(self._work(only_leases=only_leases), name=name))

    async def stop(self) -> None:
        """Ends the workers; what is queued is forgotten."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for queue in self._queues:
            queue.clear()
        self._idle.clear()
        self._idle_lease.clear()
        self._active = self._waiting = self._coming = 0

    def submit(self, urgency: Urgency, job: Job) -> bool:
        """Queues a job; only events are ever refused, when too many of them wait already."""
        queue = self._queues[urgency]
        if urgency is _EVENT and len(queue) >= self._events_max:
            self.dropped_events += 1
            return False
        queue.append(job)
        self._waiting += 1
        if urgency is _LEASE and self._wake(self._idle_lease):
            return True
        # Where answers come at once, one worker does all; should it have to wait after all, another is at hand.
        if self._waiting == 1 or self._waiting % _JOBS_PER_WORKER == 2:
            self._coming += self._wake(self._idle)
        return True

    @staticmethod
    def _wake(idle: deque[asyncio.Future[None]]) -> bool:
        while idle:
            # The one that was busy last: what it works with is still at hand for the processor.
            future = idle.pop()
            if not future.done():
                future.set_result(None)
                return True
        return False

    async def _work(self, *, only_leases: bool) -> None:
        idle = self._idle_lease if only_leases else self._idle
        queues = self._queues[:1] if only_leases else self._queues
        loop = asyncio.get_running_loop()
        while True:
            for queue in queues:
                if queue:
                    job = queue.popleft()
                    break
            else:
                future: asyncio.Future[None] = asyncio.Future(loop=loop)
                idle.append(future)
                await future
                if not only_leases:
                    self._coming -= 1
                continue
            self._waiting -= 1
            if self._waiting and not self._coming:
                # One that waits for an answer keeps nobody.
                self._coming += self._wake(self._idle)
            self._active += 1
            try:
                await job()
            except Exception as error:
                self._log.exception("A write failed unexpectedly", exc=error)
            finally:
                self._active -= 1


class ClientCarrier:
    """Writes through a transport with the workers of a pool."""

    def __init__(self, clock: Clock, transport: Transport, pool: WritePool) -> None:
        self._clock = clock
        self._transport = transport
        self._pool = pool

    def renew(self, renewal: Renewal, done: Renewed) -> None:
        self._pool.submit(_LEASE, partial(self._renew, renewal, done))

    def send(
        self,
        urgency: Urgency,
        call: Call,
        done: Answered,
        allowed: Callable[[], bool] | None = None,
        known: Callable[[], JsonObject] | None = None,  # noqa: ARG002 - the client has decoded the answer already
    ) -> bool:
        return self._pool.submit(urgency, partial(self._send, call, done, allowed))

    async def close(self) -> None:
        """The pool belongs to somebody else."""

    async def _renew(self, renewal: Renewal, done: Renewed) -> None:
        renewal.at_s = self._clock.time()
        call = Call("update", LEASES, LEASE_NAMESPACE, renewal.node, body=renewal.body())
        try:
            async with asyncio.timeout(LEASE_TIMEOUT_S):
                answer = await self._transport.call(call)
        except (ApiError, TransportError) as error:
            done("", error)
        except TimeoutError:
            done("", no_answer(f"{call}", LEASE_TIMEOUT_S))
        else:
            done(str(answer["metadata"]["resourceVersion"]), None)

    async def _send(self, call: Call, done: Answered, allowed: Callable[[], bool] | None) -> None:
        if allowed is not None and not allowed():
            done({}, Withheld(call))
            return
        try:
            answer = await self._transport.call(call)
        except (ApiError, TransportError) as error:
            done({}, error)
        else:
            done(answer, None)


def no_answer(what: str, after_s: float) -> TransportError:
    """For a write of which nobody knows whether it happened."""
    return TransportError(
        f"{what}: no answer within {after_s:g} s; the write may have taken effect",
        hint="The server may be overloaded; the write is tried again.",
    )
