"""What stands between components and the server during a run."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.client.resources import EVENTS, NODES, PODS
from holokube.client.transport import Call, WatchEvent
from holokube.kube.errors import ApiError, ServiceUnavailable, TooManyRequests
from holokube.lab.run.transport import ApiTrouble, DiscoveryMemory, LabTransport, Trouble, is_on_purpose
from holokube.runtime.events import Postponing


class Server:
    """Takes everything."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def call(self, call: Call) -> dict[str, Any]:
        self.calls.append(call)
        return {"metadata": {"name": call.name}}

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self.calls.append(call)
        yield WatchEvent("ADDED", {})

    async def request(self, method: str, path: str, **_more: Any) -> Any:
        return f"{method} {path}"

    async def close(self) -> None:
        self.calls.clear()


def made(*troubles: Trouble) -> tuple[LabTransport, Server, defaultdict[str, int]]:
    server, calls, trouble = Server(), defaultdict[str, int](int), ApiTrouble(Rng(1))
    trouble.troubles.extend(troubles)
    return LabTransport(server, calls, trouble), server, calls


async def watched(transport: LabTransport) -> list[WatchEvent]:
    return [event async for event in transport.watch(Call("watch", PODS))]


def test_calls_are_counted_by_verb() -> None:
    transport, server, calls = made()

    async def main() -> None:
        await transport.call(Call("get", PODS, "default", "a"))
        await transport.call(Call("create", PODS, "default", "a", "binding"))
        await transport.call(Call("create", NODES, body={}))
        await watched(transport)

    asyncio.run(main())
    assert calls == {"get": 1, "create": 2, "watch": 1}
    assert len(server.calls) == 4


def test_events_count_and_go_no_further() -> None:
    transport, server, calls = made()
    answer = asyncio.run(transport.call(Call("create", EVENTS, "default", body={"metadata": {"name": "e"}})))
    assert answer == {"metadata": {"name": "e"}}
    assert calls == {"create": 1}
    assert server.calls == []


def test_reading_events_is_a_call_like_others() -> None:
    transport, server, _ = made()
    asyncio.run(transport.call(Call("list", EVENTS)))
    assert len(server.calls) == 1


def test_a_trouble_concerns_its_kinds_and_verbs_only() -> None:
    transport, server, _ = made(Trouble(1.0, 503, kinds=("Node",), verbs=("create",)))

    async def main() -> None:
        await transport.call(Call("create", PODS, "default"))
        await transport.call(Call("get", NODES, name="n"))
        with pytest.raises(ServiceUnavailable, match="refused by a fault of the scenario"):
            await transport.call(Call("create", NODES, body={}))

    asyncio.run(main())
    assert len(server.calls) == 2


def test_kinds_may_be_given_by_their_plural_name() -> None:
    transport, _, _ = made(Trouble(1.0, 429, kinds=("pods",)))
    with pytest.raises(TooManyRequests) as caught:
        asyncio.run(transport.call(Call("get", PODS, "default", "a")))
    assert caught.value.retry_after_s == 1


def test_errors_on_purpose_are_told_from_others_also_when_others_are_made_of_them() -> None:
    refusal = Trouble(1.0, 503).error(Call("get", PODS, "default", "a"))
    made_of_it, beside_it = ValueError("cannot go on"), KeyError("a defect")
    made_of_it.__cause__, beside_it.__context__ = refusal, refusal
    assert all(map(is_on_purpose, (refusal, made_of_it, ExceptionGroup("several", [refusal, made_of_it]))))
    others = (beside_it, ServiceUnavailable("busy"), ExceptionGroup("several", [refusal, beside_it]))
    assert not any(map(is_on_purpose, others))


def test_watches_are_refused_when_they_are_opened() -> None:
    transport, _, _ = made(Trouble(1.0, 500, verbs=("watch",)))
    with pytest.raises(ApiError):
        asyncio.run(watched(transport))


def test_about_the_given_share_fails_the_same_for_the_same_seed() -> None:
    def failures() -> list[int]:
        transport, _, _ = made(Trouble(0.3, 500))

        async def main() -> list[int]:
            failed = []
            for number in range(300):
                try:
                    await transport.call(Call("get", PODS, "default", "a"))
                except ApiError:
                    failed.append(number)
            return failed

        return asyncio.run(main())

    first = failures()
    assert 60 < len(first) < 120
    assert failures() == first


def test_other_requests_and_the_end_are_passed_on() -> None:
    transport, server, _ = made()

    async def main() -> Any:
        await transport.call(Call("get", PODS, "default", "a"))
        answer = await transport.request("GET", "/version")
        await transport.close()
        return answer

    assert asyncio.run(main()) == "GET /version"
    assert server.calls == []


def test_answers_about_the_api_are_remembered_until_a_definition_changes() -> None:
    clock, definitions = VirtualClock(), ["1"]
    memory = DiscoveryMemory(clock, lambda: tuple(definitions))

    def ask(path: str = "/apis") -> Any:
        known = memory.recall("GET", path)
        if known is None:
            memory.keep("GET", path, {"asked": clock.monotonic()})
        return known

    assert [ask(), ask()] == [None, None]
    clock.advance(61)
    assert [ask(), ask()] == [None, {"asked": 61.0}]
    definitions.append("2")
    assert [ask(), ask()] == [None, None]
    clock.advance(61)
    assert [ask(), ask()] == [None, {"asked": 122.0}]
    clock.advance(600)
    assert ask() is None
    assert [ask("/version"), ask("/version")] == [None, None]


def test_events_need_not_be_sent_as_long_as_no_fault_may_hit_them() -> None:
    transport, server, calls = made()
    assert transport.discard("create", EVENTS)
    assert not transport.discard("create", PODS)
    assert (calls, server.calls) == ({"create": 1}, [])
    troubled, _, counted = made(Trouble(1.0, 503))
    assert not troubled.discard("patch", EVENTS)
    assert not counted


def test_what_is_discarded_may_be_counted_later_only_if_whoever_asks_waits_for_it() -> None:
    assert not made()[0].postpones(lambda: None)
    settle: list[Callable[[], None]] = []
    calls, trouble = defaultdict[str, int](int), ApiTrouble(Rng(1))
    transport = LabTransport(Server(), calls, trouble, None, settle)
    assert isinstance(transport, Postponing)
    assert transport.postpones(lambda: transport.count_discarded("create", 3))
    assert transport.discards(EVENTS) and not transport.discards(PODS)
    assert not calls
    (one,) = settle
    one()
    assert calls == {"create": 3}
    trouble.troubles.append(Trouble(1.0, 503))
    assert not transport.discards(EVENTS)
