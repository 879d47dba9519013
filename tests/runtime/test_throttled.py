"""Requests wait for their turn, and the events of a watch do not."""

from __future__ import annotations

import asyncio

from holokube.client.client import Client
from holokube.client.resources import CONFIG_MAPS
from holokube.runtime.throttled import ThrottledTransport
from holokube.testing import Cluster


def throttled(cluster: Cluster, *, per_s: float, burst: int) -> Client:
    return Client(ThrottledTransport(cluster.clock, cluster.client.transport, per_s=per_s, burst=burst))


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    async def scenario() -> list[float]:
        client = throttled(cluster, per_s=10, burst=3)
        began_s = cluster.clock.monotonic()

        async def one(number: int) -> float:
            await client.create(CONFIG_MAPS, {"metadata": {"name": f"m{number}"}}, "default")
            return round(cluster.clock.monotonic() - began_s, 6)

        return sorted(await asyncio.gather(*(one(number) for number in range(6))))

    with Cluster() as cluster:
        assert cluster.run(scenario) == [0.0, 0.0, 0.0, 0.1, 0.2, 0.3]


def test_other_requests_count_as_well() -> None:
    async def scenario() -> float:
        client = throttled(cluster, per_s=1, burst=1)
        began_s = cluster.clock.monotonic()
        await client.transport.request("GET", "/version")
        await client.list(CONFIG_MAPS)
        return cluster.clock.monotonic() - began_s

    with Cluster() as cluster:
        assert cluster.run(scenario) == 1.0


def test_a_watch_counts_once_however_many_events_it_brings() -> None:
    async def scenario() -> tuple[int, float]:
        client = throttled(cluster, per_s=1, burst=1)
        for number in range(20):
            await cluster.client.create(CONFIG_MAPS, {"metadata": {"name": f"m{number}"}}, "default")
        began_s = cluster.clock.monotonic()
        seen = 0
        async for _event in client.watch(CONFIG_MAPS, "default"):
            seen += 1
            if seen == 20:
                break
        return seen, cluster.clock.monotonic() - began_s

    with Cluster() as cluster:
        assert cluster.run(scenario) == (20, 0.0)
