from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import TransportError
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.resources import LEASES
from holokube.client.transport import Call
from holokube.kube.errors import InternalError
from holokube.runtime.events import EventRecorder
from holokube.runtime.leader import ElectionTimes, LeaderElector
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal
from tests.runtime.fakes import FakeTransport

LONGEST_PAUSE_S = 2 * 2.2


class Candidate:
    """One process of an election, with its own way to the server that can be cut."""

    def __init__(self, clock: VirtualClock, server: Any, identity: str, floor: Floor, **options: Any) -> None:
        self.identity = identity
        self.clock = clock
        self.floor = floor
        self.server = server
        self.cut = False
        self.seen: list[str] = []
        self.elector = LeaderElector(
            clock, Client(self), lease_name="ca", namespace="kube-system", identity=identity, lead=self.lead,
            rng=Rng(identity), on_new_leader=self.seen.append, **options,
        )  # fmt: skip
        self.stop = StopSignal()
        self.task = asyncio.create_task(self.elector.run(self.stop))

    async def lead(self, stop: StopSignal) -> None:
        self.floor.enter(self.identity)
        try:
            await stop.wait()
        finally:
            self.floor.leave(self.identity)

    async def call(self, call: Call) -> dict[str, Any]:
        if self.cut:
            await self.clock.sleep(1000)
            raise TransportError("cut off")
        result: dict[str, Any] = await self.server.call(call)
        if self.cut:
            await self.clock.sleep(1000)
        return result

    async def end(self) -> None:
        self.stop.set()
        await self.task

    async def crash(self) -> None:
        self.cut = True
        self.task.cancel()
        await asyncio.wait([self.task])


class Floor:
    """Only one may be on it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.present: list[str] = []
        self.reigns: list[tuple[float, str]] = []
        self.left_s = 0.0

    def enter(self, who: str) -> None:
        self.present.append(who)
        self.reigns.append((self.clock.monotonic(), who))
        assert len(self.present) == 1, f"{self.present} lead at once at {self.clock.monotonic()} s"

    def leave(self, who: str) -> None:
        self.present.remove(who)
        self.left_s = self.clock.monotonic()


def lease_of(server: FakeTransport) -> dict[str, Any]:
    return server.objects[("leases.coordination.k8s.io", "kube-system", "ca")]


def test_the_first_creates_the_lease_and_renews_it_every_two_seconds() -> None:
    async def main(clock: VirtualClock) -> None:
        server, metrics = FakeTransport(clock), Metrics()
        events = EventRecorder(clock, Client(server), "ca", rng=Rng(0))
        labels = {"app": "ca"}
        a = Candidate(clock, server, "a", Floor(clock), labels=labels, metrics=metrics, recorder=events)
        await clock.sleep(9)
        assert lease_of(server)["spec"] == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:08.000000Z",
            "leaseTransitions": 0,
        }
        assert lease_of(server)["metadata"]["labels"] == {"app": "ca"}
        assert server.counts == {"get": 1, "create": 1, "update": 4}
        assert (a.elector.is_leader, a.elector.leader, a.elector.check()) == (True, "a", None)
        status = metrics.registry.get_sample_value
        assert status("leader_election_master_status", {"name": "ca"}) == 1
        await a.end()
        assert status("leader_election_master_status", {"name": "ca"}) == 0
        stop = StopSignal()
        stop.set()
        await events.run(stop)
        messages = [o["message"] for key, o in server.objects.items() if key[0] == "events"]
        assert messages == ["a became leader", "a stopped leading"]

    run_virtual(main)


def test_a_released_lease_is_taken_at_the_next_look() -> None:
    async def main(clock: VirtualClock) -> None:
        server, floor = FakeTransport(clock), Floor(clock)
        a = Candidate(clock, server, "a", floor)
        await clock.sleep(1)
        b = Candidate(clock, server, "b", floor)
        await clock.sleep(30)
        assert floor.reigns == [(0, "a")]
        await a.end()
        released = lease_of(server)["spec"]
        assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)
        await clock.sleep(LONGEST_PAUSE_S)
        assert [who for _, who in floor.reigns] == ["a", "b"]
        assert lease_of(server)["spec"]["leaseTransitions"] == 1
        assert b.seen == ["a", "b"]
        await b.end()

    run_virtual(main)


@pytest.mark.parametrize("seed", range(10))
def test_after_a_crash_another_leads_within_the_lease_and_one_retry(seed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        server, floor = FakeTransport(clock), Floor(clock)
        candidates = [Candidate(clock, server, f"{name}{seed}", floor) for name in "abc"]
        await clock.sleep(20 + seed * 0.37)
        (leader,) = [c for c in candidates if c.elector.is_leader]
        crashed_s = clock.monotonic()
        await leader.crash()
        await clock.sleep(15 - 2)
        assert len(floor.reigns) == 1
        await clock.sleep(2 + LONGEST_PAUSE_S)
        assert len(floor.reigns) == 2
        assert floor.reigns[1][0] - crashed_s <= 15 + LONGEST_PAUSE_S
        for candidate in candidates:
            if candidate is not leader:
                await candidate.end()

    run_virtual(main)


def test_wrong_time_stamps_in_the_lease_do_not_matter() -> None:
    async def main(clock: VirtualClock) -> None:
        server, floor = FakeTransport(clock), Floor(clock)
        ancient = {
            "holderIdentity": "old", "leaseDurationSeconds": 15, "leaseTransitions": 4,
            "acquireTime": "1999-01-01T00:00:00.000000Z", "renewTime": "1999-01-01T00:00:00.000000Z",
        }  # fmt: skip
        lease = {"metadata": {"name": "ca"}, "spec": ancient}
        await Client(server).create(LEASES, lease, "kube-system")
        b = Candidate(clock, server, "b", floor)
        await clock.sleep(14.9)
        assert floor.reigns == []
        await clock.sleep(0.2)
        assert floor.reigns == [(15, "b")]
        assert lease_of(server)["spec"]["leaseTransitions"] == 5
        await b.end()

    run_virtual(main)


def test_a_leader_without_answers_stops_ten_seconds_after_its_last_renewal() -> None:
    async def main(clock: VirtualClock) -> None:
        server, floor = FakeTransport(clock), Floor(clock)
        a = Candidate(clock, server, "a", floor)
        await clock.sleep(5)
        a.cut = True
        await clock.sleep(20)
        assert (floor.present, floor.left_s, a.elector.is_leader) == ([], 14.0, False)
        a.cut = False
        await clock.sleep(20)
        assert floor.present == ["a"]
        assert lease_of(server)["spec"]["leaseTransitions"] == 0
        await a.end()

    run_virtual(main)


def test_slow_answers_do_not_stretch_the_leadership() -> None:
    async def main(clock: VirtualClock) -> None:
        server, floor = FakeTransport(clock), Floor(clock)
        a = Candidate(clock, server, "a", floor)
        await clock.sleep(3)
        # The next answer takes seven seconds, though the write is done at once; then none comes at all.
        delays = iter([0.0, 7.0])
        server.latency_s = lambda: next(delays, 1000.0)
        await clock.sleep(30)
        # The renewal sent at 4 s was answered at 11 s, and counts from 4 s.
        assert floor.left_s == 14.0
        a.task.cancel()
        await asyncio.wait([a.task])
        await server.close()

    run_virtual(main)


def test_brief_errors_do_not_end_the_leadership() -> None:
    async def main(clock: VirtualClock) -> None:
        server, floor, metrics = FakeTransport(clock), Floor(clock), Metrics()
        a = Candidate(clock, server, "a", floor, metrics=metrics)
        await clock.sleep(3)
        server.fail = lambda call: InternalError("etcd is choosing") if clock.monotonic() < 11 else None
        await clock.sleep(60)
        assert floor.reigns == [(0, "a")]
        # A foreign write forces the slow path once: read, then write.
        lease = lease_of(server)
        labelled = {**lease["metadata"], "labels": {"x": "y"}}
        await Client(server).update(LEASES, {**lease, "metadata": labelled})
        await clock.sleep(10)
        assert floor.reigns == [(0, "a")]
        assert lease_of(server)["metadata"]["labels"] == {"x": "y"}
        assert metrics.registry.get_sample_value("leader_election_slowpath_total", {"name": "ca"}) == 1
        await a.end()

    run_virtual(main)


def test_a_leader_that_sees_another_holder_stops_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        server, floor = FakeTransport(clock), Floor(clock)
        a = Candidate(clock, server, "a", floor)
        await clock.sleep(4.5)
        lease = lease_of(server)
        usurped = {**lease, "spec": {**lease["spec"], "holderIdentity": "admin"}}
        await Client(server).update(LEASES, usurped)
        await clock.sleep(2)
        assert (floor.present, floor.left_s) == ([], 6.0)
        assert lease_of(server)["spec"]["holderIdentity"] == "admin"
        await a.end()

    run_virtual(main)


def test_the_lease_is_renewed_while_the_work_winds_down_and_released_after() -> None:
    async def main(clock: VirtualClock) -> None:
        server, finished = FakeTransport(clock), []

        async def lead(stop: StopSignal) -> None:
            await stop.wait()
            await clock.sleep(60)
            finished.append(clock.monotonic())

        elector = LeaderElector(
            clock, Client(server), lease_name="ca", namespace="kube-system",
            identity="a", lead=lead, rng=Rng(0),
        )
        stop = StopSignal()
        running = asyncio.create_task(elector.run(stop))
        await clock.sleep(10)
        stop.set()
        await clock.sleep(50)
        assert lease_of(server)["spec"]["renewTime"] >= "2026-01-01T00:00:58"
        await running
        assert finished == [70]
        assert lease_of(server)["spec"]["holderIdentity"] == ""

    run_virtual(main)


def test_the_error_of_the_work_releases_the_lease_and_comes_through() -> None:
    async def main(clock: VirtualClock) -> None:
        server = FakeTransport(clock)

        async def lead(_stop: StopSignal) -> None:
            await clock.sleep(3)
            raise KeyError("bug")

        elector = LeaderElector(
            clock, Client(server), lease_name="ca", namespace="kube-system",
            identity="a", lead=lead, rng=Rng(0),
        )
        with pytest.raises(KeyError, match="bug"):
            await elector.run(StopSignal())
        assert lease_of(server)["spec"]["holderIdentity"] == ""
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ((10, 10, 2), "must be longer than renew deadline"),
        ((15, 2.4, 2), "must be longer than 1.2 times"),
        ((0.5, 0.2, 0.1), "1 s or more"),
        ((15, 10, 0), "retry period"),
    ],
)
def test_times_that_cannot_work_are_refused(times: tuple[float, float, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ElectionTimes(*times)


async def stormy_election(clock: VirtualClock, seed: int) -> Floor:
    """Five candidates, twenty minutes: lost and late messages, cut lines, crashes, graceful stops."""
    rng = Rng(seed)
    latency = rng.fork("latency")
    server, floor = FakeTransport(clock), Floor(clock)
    server.latency_s = lambda: (
        latency.expovariate(3) if latency.random() < 0.95 else latency.uniform(0, 40)
    )
    faults = Faults(
        conflict=0.02, internal_error=0.05, too_many_requests=0.02, timeout_before=0.05, timeout_after=0.05
    )
    # Tight on purpose: the proof needs only that the deadline is shorter than the lease.
    times = ElectionTimes(15, 14.9, 2) if seed % 2 else ElectionTimes()
    lives = 0

    def spawn() -> Candidate:
        nonlocal lives
        lives += 1
        faulty = FaultyTransport(clock, server, rng.fork(f"faults {lives}"), faults)
        return Candidate(clock, faulty, f"c{lives}", floor, times=times)

    candidates = [spawn() for _ in range(5)]
    while clock.monotonic() < 1200:
        await clock.sleep(rng.expovariate(1 / 15))
        victim = rng.randrange(5)
        event = rng.choice(["cut", "cut", "heal", "heal", "crash", "stop"])
        if event == "cut":
            candidates[victim].cut = True
        elif event == "heal":
            candidates[victim].cut = False
        else:
            await (candidates[victim].crash() if event == "crash" else candidates[victim].end())
            candidates[victim] = spawn()
        assert all(not c.task.done() or not c.task.exception() for c in candidates)
    server.latency_s = lambda: 0.0
    for candidate in candidates:
        candidate.cut = False
        candidate.server.faults = Faults()
    await clock.sleep(60 + 40)
    assert len(floor.present) == 1
    for candidate in candidates:
        await candidate.end()
    await server.close()
    return floor


@pytest.mark.parametrize("seed", range(20))
def test_there_are_never_two_leaders_whatever_happens(seed: int) -> None:
    floor = run_virtual(lambda clock: stormy_election(clock, seed))
    assert len({who for _, who in floor.reigns}) >= 3, f"seed {seed} was too quiet to show anything"
