"""Leader election on a coordination.k8s.io/v1 Lease, as client-go does it, a little stricter.

A candidate takes the lease over when it has seen no change of it for the lease's duration, measured on its
own clock: time stamps in the lease are for people. The leader renews every two seconds and stops leading when
ten seconds have passed since it *sent* the last renewal that succeeded. Upstream counts from the answer; a
slow answer can then make it lead past the point where another may take over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import LEASES
from holokube.kube.errors import NotFound
from holokube.kube.timeformat import format_micro_time
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, EventRecorder
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal

LEASE_DURATION_S = 15.0
RENEW_DEADLINE_S = 10.0
RETRY_PERIOD_S = 2.0
JITTER_FACTOR = 1.2


@dataclass(frozen=True, slots=True)
class ElectionTimes:
    """How long a lease is good for, how long a leader tries to renew it, and how often everybody looks."""

    lease_duration_s: float = LEASE_DURATION_S
    renew_deadline_s: float = RENEW_DEADLINE_S
    retry_period_s: float = RETRY_PERIOD_S

    def __post_init__(self) -> None:
        if self.lease_duration_s < 1:
            raise ValueError(f"lease duration must be 1 s or more, got {self.lease_duration_s} s")
        if self.retry_period_s <= 0:
            raise ValueError(f"retry period must be over zero, got {self.retry_period_s} s")
        if self.lease_duration_s <= self.renew_deadline_s:
            raise ValueError(
                f"lease duration ({self.lease_duration_s} s) must be longer than renew deadline "
                f"({self.renew_deadline_s} s), or two could lead at once"
            )
        if self.renew_deadline_s <= JITTER_FACTOR * self.retry_period_s:
            raise ValueError(
                f"renew deadline ({self.renew_deadline_s} s) must be longer than {JITTER_FACTOR} times the "
                f"retry period ({self.retry_period_s} s), or one failed renewal would end the leadership"
            )


class LeaderElector:
    """Campaigns for a lease and runs ``lead`` while holding it; a component of the app.

    ``lead`` is given a stop signal for a graceful end; the lease is still renewed until it has returned, and
    released afterwards. When the lease is lost, ``lead`` is cancelled and the campaign starts again. When
    ``lead`` returns or fails by itself, so does ``run``.
    """

    def __init__(
        self,
        clock: Clock,
        client: Client,
        *,
        lease_name: str,
        namespace: str,
        identity: str,
        lead: Callable[[StopSignal], Awaitable[None]],
        rng: Rng,
        times: ElectionTimes | None = None,
        release_on_stop: bool = True,
        on_new_leader: Callable[[str], None] | None = None,
        labels: Mapping[str, str] | None = None,
        recorder: EventRecorder | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        if not identity:
            raise ValueError(f"leader election on {namespace}/{lease_name}: the identity is empty")
        self.name = f"leader-election-{lease_name}"
        self.identity = identity
        self._clock = clock
        self._client = client
        self._lease_name = lease_name
        self._namespace = namespace
        self._lead = lead
        self._rng = rng
        self._times = times if times is not None else ElectionTimes()
        self._release_on_stop = release_on_stop
        self._on_new_leader = on_new_leader
        self._labels = dict(labels or {})
        self._recorder = recorder
        self._metrics = metrics
        self._lease: JsonObject | None = None
        self._observed_spec: JsonObject = {}
        self._observed_s = 0.0
        self._renewed_s = 0.0
        self._leading = False
        self._reported_leader = ""
        self._log = get_logger("holokube.runtime.leader").bind(
            lease=f"{namespace}/{lease_name}", identity=identity
        )
        if metrics is not None:
            metrics.leader(lease_name, leading=False)

    @property
    def is_leader(self) -> bool:
        """Whether ``lead`` may act now."""
        return self._leading

    @property
    def leader(self) -> str:
        """Who holds the lease, as last seen; empty when nobody, or nothing was seen yet."""
        return str(self._observed_spec.get("holderIdentity") or "")

    def check(self) -> str | None:
        """For the health endpoint: a leader past its lease should have stopped long ago."""
        overdue_s = self._clock.monotonic() - self._renewed_s - self._times.lease_duration_s
        if self._leading and overdue_s > 0:
            return f"failed election to renew leadership on lease {self._lease_name}"
        return None

    async def run(self, stop: StopSignal) -> None:
        """Campaigns, leads, campaigns again, until the stop."""
        while not stop.is_set():
            self._log.info("Trying to acquire the lease")
            if not await self._acquire(stop):
                return
            if await self._lead_once(stop):
                return

    async def _acquire(self, stop: StopSignal) -> bool:
        """Looks at the lease again and again; True when it is ours, False at the stop."""
        while not stop.is_set():
            acquired = False
            try:
                async with asyncio.timeout(self._times.renew_deadline_s):
                    acquired = await self._try_acquire_or_renew()
            except TimeoutError:
                self._log.warning("No answer about the lease")
            self._report_leader()
            if acquired:
                return True
            await stop.sleep(self._campaign_pause_s())
        return False

    def _campaign_pause_s(self) -> float:
        """The jittered retry period, cut short to look again just when the lease is going to expire."""
        pause_s = self._times.retry_period_s * (1.0 + JITTER_FACTOR * self._rng.random())
        left_s = self._expires_s() - self._clock.monotonic()
        return min(pause_s, left_s) if self.leader and left_s > 0 else pause_s

    async def _lead_once(self, stop: StopSignal) -> bool:
        """Runs ``lead`` and renews beside it; True when that is the end, False when the lease was lost."""
        self._set_leading(leading=True)
        lead_stop = StopSignal()

        def pass_on() -> None:
            lead_stop.set(stop.reason)

        stop.add_callback(pass_on)
        task = asyncio.ensure_future(self._lead(lead_stop))
        try:
            held = await self._hold(task)
        finally:
            stop.remove_callback(pass_on)
            self._set_leading(leading=False)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if not held:
            self._log.warning("The lease is lost")
            if not task.cancelled() and task.exception() is not None:
                self._log.exception("The leader's work failed while it was cancelled", exc=task.exception())
            return False
        if self._release_on_stop:
            await self._release()
        await task
        return True

    async def _hold(self, task: asyncio.Future[None]) -> bool:
        """Renews until ``lead`` is through, True, or the lease is lost, False."""
        while True:
            # A slow answer may have left less time than the retry period.
            await asyncio.wait([task], timeout=min(self._times.retry_period_s, self._left_s()))
            if task.done():
                return True
            renewal = asyncio.ensure_future(self._renew())
            both: list[asyncio.Future[Any]] = [renewal, task]
            try:
                await asyncio.wait(both, timeout=self._left_s(), return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    return True
                if not renewal.done() or not renewal.result():
                    return False
            finally:
                if not renewal.done():
                    renewal.cancel()
                    await asyncio.wait([renewal])

    def _left_s(self) -> float:
        """For how long we may lead without another renewal."""
        return max(0.0, self._renewed_s + self._times.renew_deadline_s - self._clock.monotonic())

    async def _renew(self) -> bool:
        """Tries until the lease is renewed, True, or somebody else is seen to hold it, False."""
        while not await self._try_acquire_or_renew():
            self._report_leader()
            if self.leader and self.leader != self.identity:
                return False
            await self._clock.sleep(self._times.retry_period_s)
        self._report_leader()
        return True

    async def _try_acquire_or_renew(self) -> bool:
        """One look at the lease, and one write if it is ours to take."""
        try:
            if self._leading and self._lease is not None and await self._renew_blindly():
                return True
            return await self._read_and_take()
        except (HolokubeError, TimeoutError) as error:
            self._log.warning("Could not take or renew the lease", error=str(error))
            return False

    async def _renew_blindly(self) -> bool:
        """The leader's usual way: nobody else writes, so the version it knows is still the current one."""
        try:
            await self._write(self._lease, transitions=self._transitions())
        except (HolokubeError, TimeoutError) as error:
            self._log.debug("The lease has changed, reading it first", error=str(error))
            return False
        return True

    async def _read_and_take(self) -> bool:
        try:
            lease = await self._client.get(LEASES, self._lease_name, self._namespace)
        except NotFound:
            self._lease = None
            await self._write(None, transitions=0)
            return True
        self._lease = lease
        self._observe(lease.get("spec") or {})
        ours = self.leader == self.identity
        if self.leader and not ours and self._clock.monotonic() < self._expires_s():
            return False
        if ours and self._leading and self._metrics is not None:
            self._metrics.leader_slowpath(self._lease_name)
        await self._write(lease, transitions=self._transitions() + (0 if ours else 1))
        return True

    async def _write(self, lease: JsonObject | None, *, transitions: int) -> None:
        """Puts our name and the present time into the lease; fails when it is not the version we know."""
        sent_s = self._clock.monotonic()
        now = format_micro_time(self._clock.now())
        old_spec = (lease or {}).get("spec") or {}
        ours = old_spec.get("holderIdentity") == self.identity
        spec = {
            **old_spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._times.lease_duration_s),
            "acquireTime": (old_spec.get("acquireTime") or now) if ours else now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        self._lease = await self._put(lease, spec)
        self._observe(spec)
        self._renewed_s = sent_s

    async def _put(self, lease: JsonObject | None, spec: JsonObject) -> JsonObject:
        if lease is None:
            meta: JsonObject = {"name": self._lease_name, "namespace": self._namespace}
            if self._labels:
                meta["labels"] = self._labels
            return await self._client.create(LEASES, {"metadata": meta, "spec": spec}, self._namespace)
        meta = lease["metadata"]
        if self._labels:
            meta = {**meta, "labels": {**(meta.get("labels") or {}), **self._labels}}
        return await self._client.update(LEASES, {**lease, "metadata": meta, "spec": spec}, self._namespace)

    async def _release(self) -> None:
        """Gives the lease up, so that the next leader need not wait; only if it is still ours."""
        try:
            async with asyncio.timeout(self._times.renew_deadline_s):
                lease = await self._client.get(LEASES, self._lease_name, self._namespace)
                spec = lease.get("spec") or {}
                if spec.get("holderIdentity") != self.identity:
                    return
                now = format_micro_time(self._clock.now())
                released = {
                    **spec,
                    "holderIdentity": "",
                    "leaseDurationSeconds": 1,
                    "acquireTime": now,
                    "renewTime": now,
                }
                self._lease = await self._put(lease, released)
                self._observe(released)
                self._log.info("The lease is released")
        except (HolokubeError, TimeoutError) as error:
            self._log.warning("The lease could not be released; it will expire", error=str(error))

    def _observe(self, spec: JsonObject) -> None:
        """A lease that changed has a live holder: its duration starts anew, on our clock."""
        if spec != self._observed_spec:
            self._observed_spec = spec
            self._observed_s = self._clock.monotonic()

    def _expires_s(self) -> float:
        duration_s = self._observed_spec.get("leaseDurationSeconds") or 0
        return self._observed_s + float(duration_s)

    def _transitions(self) -> int:
        return int(self._observed_spec.get("leaseTransitions") or 0)

    def _set_leading(self, *, leading: bool) -> None:
        if leading == self._leading:
            return
        self._leading = leading
        self._log.info("Leading" if leading else "Stopped leading")
        if self._metrics is not None:
            self._metrics.leader(self._lease_name, leading=leading)
        if self._recorder is not None:
            lease = self._lease or {"metadata": {"name": self._lease_name, "namespace": self._namespace}}
            subject = {**lease, "apiVersion": LEASES.api_version, "kind": LEASES.kind}
            did = "became leader" if leading else "stopped leading"
            self._recorder.event(subject, NORMAL, "LeaderElection", f"{self.identity} {did}")

    def _report_leader(self) -> None:
        if self.leader != self._reported_leader:
            self._reported_leader = self.leader
            if self._on_new_leader is not None:
                self._on_new_leader(self.leader)
