from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import TransportError
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.resources import PODS
from holokube.kube.errors import Conflict, Expired, InternalError, NotFound, TooManyRequests

from .fake_api import FakeApi, pod


def with_faults(
    faults: Faults, test: Callable[[VirtualClock, FakeApi, FaultyTransport, Client], Awaitable[None]]
) -> None:
    async def main(clock: VirtualClock) -> None:
        api = FakeApi(clock)
        faulty = FaultyTransport(clock, api, Rng("faults"), faults)
        await test(clock, api, faulty, Client(faulty))

    run_virtual(main)


async def create(client: Client) -> None:
    await client.create(PODS, pod("a"), "default")


def test_a_conflict_hits_writes_before_they_are_written() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        with pytest.raises(Conflict, match="object has been modified"):
            await create(client)
        assert api.objects == {}
        assert (await client.list(PODS)).items == []
        assert faulty.injected == {"conflict": 1}

    with_faults(Faults(conflict=1), test)


@pytest.mark.parametrize(
    ("faults", "error"),
    [
        (Faults(too_many_requests=1, retry_after_s=7), TooManyRequests),
        (Faults(internal_error=1), InternalError),
        (Faults(timeout_before=1), TransportError),
    ],
)
def test_a_call_that_fails_before_is_not_carried_out(faults: Faults, error: type[Exception]) -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        with pytest.raises(error) as caught:
            await create(client)
        assert api.objects == {}
        if isinstance(caught.value, TooManyRequests):
            assert caught.value.retry_after_s == 7
        assert clock.monotonic() == (30 if error is TransportError else 0)

    with_faults(faults, test)


def test_a_lost_answer_hides_a_write_that_took_effect() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        with pytest.raises(TransportError, match="may have taken effect"):
            await create(client)
        assert list(api.objects) == ["default/a"]
        assert clock.monotonic() >= 30
        with pytest.raises(TransportError):  # The refusal (it exists already) is lost as well.
            await create(client)
        with pytest.raises(TransportError):
            await client.request("GET", "/version")
        assert faulty.injected == {"timeout_after": 3}

    with_faults(Faults(timeout_after=1), test)


def test_cancelling_a_call_cancels_it_even_when_its_answer_is_to_be_lost() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        task = asyncio.create_task(create(client))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert clock.monotonic() < 1

    with_faults(Faults(timeout_after=1), test)


def test_only_lists_of_a_past_moment_are_too_old() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        for i in range(3):
            api.create(pod(f"p{i}"))
        page = await client.list(PODS, limit=2)
        with pytest.raises(Expired):
            await client.list(PODS, limit=2, continue_=page.continue_)
        with pytest.raises(Expired):
            await client.list(PODS, resource_version="2")
        await client.list(PODS, resource_version="0")
        assert len((await client.list_all(PODS, page_size=2)).items) == 3

    with_faults(Faults(list_too_old=1), test)


async def watch_until_it_ends(client: Client) -> tuple[int, type[Exception] | None]:
    seen = 0
    try:
        async for _ in client.watch(PODS):
            seen += 1
    except (Expired, TransportError) as error:
        return seen, type(error)
    return seen, None


def test_watches_end_in_both_ways_before_an_event() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        api.create(pod("a"))
        ends = [await watch_until_it_ends(client) for _ in range(20)]
        assert {seen for seen, _ in ends} == {0}
        assert {error for _, error in ends} == {None, TransportError}
        assert faulty.injected == {"watch_drop": 20}

    with_faults(Faults(watch_drop=1), test)


def test_a_stale_watch_says_that_its_version_is_gone() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        api.create(pod("a"))
        assert await watch_until_it_ends(client) == (0, Expired)

    with_faults(Faults(watch_stale=1), test)


def test_a_silent_watch_is_dropped_as_well() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        await watch_until_it_ends(client)
        assert faulty.injected == {"watch_drop": 1}
        assert clock.monotonic() < 25  # The server's first word, a bookmark, would have come after 30.

    with_faults(Faults(watch_lifetime_mean_s=1), test)


def test_events_come_late_and_in_order() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        for i in range(4):
            api.create(pod(f"p{i}"))
        seen: list[tuple[str, float]] = []
        async for event in client.watch(PODS):
            seen.append((event.object["metadata"]["name"], clock.monotonic()))
            if len(seen) == 4:
                break
        assert [name for name, _ in seen] == ["p0", "p1", "p2", "p3"]
        assert 1 < seen[-1][1] < 4 * 5
        assert faulty.injected == {"event_delay": 4}

    with_faults(Faults(event_delay=1), test)


def test_opening_a_watch_can_fail() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        assert await watch_until_it_ends(client) == (0, TransportError)
        assert api.calls == []

    with_faults(Faults(timeout_after=1), test)


def test_without_faults_it_is_not_noticed() -> None:
    async def test(clock: VirtualClock, api: FakeApi, faulty: FaultyTransport, client: Client) -> None:
        await create(client)
        await client.delete(PODS, "a", "default")
        with pytest.raises(NotFound):
            await client.request("GET", "/version")
        assert not faulty.injected
        await client.close()

    with_faults(Faults(), test)


@pytest.mark.parametrize("bad", [{"conflict": 1.5}, {"watch_drop": -0.1}, {"answer_timeout_s": -1}])
def test_impossible_rates_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Faults(**bad)
