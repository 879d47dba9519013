"""The wire on a server that misbehaves as told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holokube.base.clock import WallClock
from holokube.base.errors import HolokubeError, TransportError
from holokube.client.resources import EVENTS, PODS
from holokube.client.transport import Call
from holokube.hollow.wire.carrier import WireCarrier
from holokube.hollow.wire.dialer import Dialer
from holokube.hollow.wire.pool import WirePool
from holokube.hollow.writes import Renewal, Urgency, Withheld
from holokube.kube.errors import Conflict, NotFound, TooManyRequests
from tests.hollow.wire.servers import Got, Reply, ScriptedServer, scripted

LIMIT_S = 20.0


Test = Callable[["ScriptedServer", "Wire"], Awaitable[None]]


class ShiftedClock(WallClock):
    """The wall clock, with a hand that can be moved."""

    shift_s = 0.0

    def time(self) -> float:
        return super().time() + self.shift_s


async def until(check: Callable[[], bool]) -> None:
    while not check():  # noqa: ASYNC110 - nothing tells when a connection is gone
        await asyncio.sleep(0.01)


def run(handle: Callable[[Got], Reply], test: Test, **options: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), scripted(handle) as server:
            wire = Wire(server, **options)
            try:
                await test(server, wire)
            finally:
                await wire.carrier.close()

    asyncio.run(main())


class Wire:
    """A carrier that keeps what it was answered."""

    def __init__(self, server: ScriptedServer, **options: Any) -> None:
        self.clock = ShiftedClock()
        self.carrier = WireCarrier(
            self.clock, Dialer(self.clock, server.access), **{"gather_s": 0.01, "lease_gather_s": 0.01, **options}
        )
        self.answers: dict[str, tuple[Any, HolokubeError | None]] = {}
        self._arrived = asyncio.Event()

    def _keep(self, key: str) -> Callable[[Any, HolokubeError | None], None]:
        def keep(value: Any, error: HolokubeError | None) -> None:
            assert key not in self.answers, f"{key} is answered twice"
            self.answers[key] = (value, error)
            self._arrived.set()

        return keep

    def renew(self, node: str, version: str = "7", transitions: int = 0) -> Renewal:
        renewal = Renewal(node, f"uid-{node}", version, 'me "quoted"', 40, transitions)
        self.carrier.renew(renewal, self._keep(node))
        return renewal

    def patch(self, name: str, urgency: Urgency = Urgency.POD, allowed: Callable[[], bool] | None = None) -> None:
        call = Call("patch", PODS, "default", name, "status", {}, {"status": {"phase": "Running"}}, "application/x")
        self.carrier.send(urgency, call, self._keep(name), allowed)

    async def all_answered(self, count: int) -> None:
        while len(self.answers) < count:
            self._arrived.clear()
            await self._arrived.wait()


def lease_reply(_got: Got) -> Reply:
    misleading = b'"annotations":{"x":"\\"resourceVersion\\":\\"1\\""}'
    return Reply(body=b'{"metadata":{"name":"n",%b,"resourceVersion":"42"}}' % misleading)


def test_a_renewal_carries_the_whole_lease_and_brings_back_the_version() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        renewal = wire.renew("n1", transitions=3)
        await wire.all_answered(1)
        assert wire.answers["n1"] == ("42", None)
        (got,) = server.got
        assert (got.method, got.path) == (
            "PUT", "/prefix/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1",
        )  # fmt: skip
        assert got.json() == renewal.body() and renewal.at_s > 0
        assert got.headers["content-type"] == "application/json"
        assert got.headers["user-agent"].startswith("holokube-fleet/")

    run(lease_reply, test)


def test_what_is_due_at_once_leaves_on_one_connection() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        for number in range(12):
            wire.renew(f"n{number}")
        await wire.all_answered(12)
        assert server.connections == 1 and len(server.got) == 12
        assert {got.json()["spec"]["renewTime"] for got in server.got} == {server.got[0].json()["spec"]["renewTime"]}

    run(lease_reply, test)


def test_connections_are_bounded() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        for number in range(200):
            wire.patch(f"p{number}")
        await wire.all_answered(200)
        assert 1 < server.connections <= 3
        assert all(error is None for _, error in wire.answers.values())

    run(lambda got: Reply(), test, connections=3)


def test_refusals_are_the_errors_of_the_api() -> None:
    def handle(got: Got) -> Reply:
        code = 409 if got.path.endswith("n1") else 404
        reason = "Conflict" if code == 409 else "NotFound"
        return Reply(code, b'{"kind":"Status","code":%d,"reason":"%b"}' % (code, reason.encode()))

    async def test(server: ScriptedServer, wire: Wire) -> None:
        wire.renew("n1")
        wire.renew("n2")
        wire.patch("p1")
        await wire.all_answered(3)
        assert isinstance(wire.answers["n1"][1], Conflict)
        assert isinstance(wire.answers["n2"][1], NotFound)
        assert isinstance(wire.answers["p1"][1], NotFound)

    run(handle, test)


def test_behind_an_announced_end_everything_is_sent_again() -> None:
    served: list[str] = []

    def handle(got: Got) -> Reply:
        served.append(got.path.rpartition("/")[2])
        return Reply(body=b'{"metadata":{"resourceVersion":"1"}}', last=len(served) % 4 == 0)

    async def test(server: ScriptedServer, wire: Wire) -> None:
        for number in range(10):
            wire.renew(f"n{number}")
        await wire.all_answered(10)
        assert all(answer == ("1", None) for answer in wire.answers.values())
        assert sorted(served) == sorted(f"n{number}" for number in range(10))
        assert server.connections == 3

    run(handle, test)


def test_a_broken_connection_fails_what_was_under_way_and_nothing_after() -> None:
    broken = False

    def handle(got: Got) -> Reply:
        nonlocal broken
        if not broken and got.path.endswith("n2"):
            broken = True
            return Reply(cut=True)
        return lease_reply(got)

    async def test(server: ScriptedServer, wire: Wire) -> None:
        for number in range(4):
            wire.renew(f"n{number}")
        await wire.all_answered(4)
        assert [wire.answers[f"n{number}"][1] is None for number in range(4)] == [True, True, False, False]
        assert isinstance(wire.answers["n3"][1], TransportError)
        wire.renew("later")
        await wire.all_answered(5)
        assert wire.answers["later"] == ("42", None)

    run(handle, test)


def test_writes_wait_for_a_server_that_comes_back() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        wire.renew("before")
        await wire.all_answered(1)
        await server.stop()
        await until(lambda: not wire.carrier.leases.open_connections)
        renewal = wire.renew("away")
        await until(lambda: wire.carrier.leases.is_redialing)
        wire.clock.shift_s = 1000.0
        asked_s = WallClock().time()
        await server.start()
        await wire.all_answered(2)
        assert wire.answers["away"] == ("42", None)
        # Stamped when it was sent, not when it was handed in.
        assert renewal.at_s > asked_s + 999

    run(lease_reply, test)


def test_an_idle_connection_that_the_server_closes_is_not_used_again() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        wire.renew("n1")
        await wire.all_answered(1)
        await server.stop()
        await until(lambda: not wire.carrier.leases.open_connections)
        await server.start()
        wire.renew("n2")
        await wire.all_answered(2)
        assert wire.answers["n2"] == ("42", None)

    run(lease_reply, test)


def test_too_many_requests_are_repeated_when_the_server_says_so() -> None:
    refusals = 1

    def handle(got: Got) -> Reply:
        nonlocal refusals
        if got.path.endswith("/status"):
            if refusals:
                refusals -= 1
                return Reply(429, b"{}", {"Retry-After": "0"})
            return Reply(body=b'{"metadata":{"name":"p"}}')
        return Reply(429, b"{}", {"Retry-After": "3"})

    async def test(server: ScriptedServer, wire: Wire) -> None:
        wire.patch("p")
        wire.renew("n")
        await wire.all_answered(2)
        assert wire.answers["p"] == ({"metadata": {"name": "p"}}, None)
        # A renewal is made anew instead, with the time of its next try; the keeper is told when.
        refused = wire.answers["n"][1]
        assert isinstance(refused, TooManyRequests) and refused.retry_after_s == 3

    run(handle, test)


def test_no_answer_is_an_error_after_a_while() -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), scripted(lambda got: Reply(hang=True)) as server:
            clock = WallClock()
            pool = WirePool(
                clock, Dialer(clock, server.access), name="x", connections=1, depth=4, spread_at=4, gather_s=0.01,
                timeout_s=0.1,
            )  # fmt: skip
            wire = Wire(server)
            wire.carrier.leases = pool
            wire.renew("n1")
            wire.renew("n2")
            await wire.all_answered(2)
            assert all(isinstance(error, TransportError) for _, error in wire.answers.values())
            assert "may have taken effect" in str(wire.answers["n1"][1])
            assert pool.under_way == pool.open_connections == 0
            await wire.carrier.close()

    asyncio.run(main())


def test_the_most_urgent_goes_first() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        for number in range(40):
            wire.patch(f"event{number}", Urgency.EVENT)
        wire.patch("pod", Urgency.POD)
        wire.patch("node", Urgency.NODE)
        await wire.all_answered(42)
        order = [got.path.split("/")[-2] for got in server.got]
        assert order[:2] == ["node", "pod"]

    run(lambda got: Reply(), test, connections=1)


def test_a_write_whose_node_was_lost_meanwhile_is_withheld() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        wire.patch("mine", allowed=lambda: True)
        wire.patch("lost", allowed=lambda: False)
        await wire.all_answered(2)
        assert wire.answers["mine"][1] is None and isinstance(wire.answers["lost"][1], Withheld)
        assert [got.path.split("/")[-2] for got in server.got] == ["mine"]

    run(lambda got: Reply(), test)


def test_too_many_events_are_dropped() -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), scripted(lambda got: Reply(hang=True)) as server:
            wire = Wire(server)
            call = Call("create", EVENTS, "default", body={})
            sent = [wire.carrier.send(Urgency.EVENT, call, lambda *_: None) for _ in range(10_005)]
            assert sent.count(False) == wire.carrier.dropped_events == 5
            await wire.carrier.close()

    asyncio.run(main())


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    def handle(got: Got) -> Reply:
        return Reply(body=b'{"metadata":{"resourceVersion":"1"}}HTTP/1.1 200 OK\r\n', headers={"Content-Length": "36"})

    async def test(server: ScriptedServer, wire: Wire) -> None:
        wire.renew("n")
        await wire.all_answered(1)
        assert wire.answers["n"] == ("1", None)
        await until(lambda: not wire.carrier.leases.open_connections)

    run(handle, test)


def test_what_fails_in_a_callback_hurts_nobody_else() -> None:
    async def test(server: ScriptedServer, wire: Wire) -> None:
        def fail(_version: str, _error: HolokubeError | None) -> None:
            raise RuntimeError("a bug")

        wire.carrier.renew(Renewal("bad", "u", "1", "me", 40), fail)
        wire.renew("good")
        await wire.all_answered(1)
        assert wire.answers["good"] == ("42", None)

    run(lease_reply, test)
