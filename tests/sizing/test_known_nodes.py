"""Nodes from an informer, and the short wait for one that is about to come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holokube.client.informer import Informer
from holokube.client.resources import NODES
from holokube.kube.types import JsonObject
from holokube.sizing.known_nodes import KnownNodes, keep_sizes
from holokube.testing import Cluster
from tests.builders import node
from tests.kube.sizing.pods import sized_node
from tests.sizing.worlds import make_nodes, set_allocatable


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


async def watching(cluster: Cluster) -> tuple[Informer, KnownNodes]:
    informer = Informer(cluster.clock, cluster.client, NODES, transform=keep_sizes)
    informer.start()
    await informer.synced()
    return informer, KnownNodes(informer)


def test_the_cache_keeps_names_and_sizes_only() -> None:
    kept = keep_sizes({**sized_node(), "spec": {"taints": []}})
    assert kept == {
        "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "10", "memory": "10Gi", "pods": "110"}},
    }  # fmt: skip
    assert keep_sizes(node("new"))["status"] == {}


def test_a_known_node_is_found_at_once(cluster: Cluster) -> None:
    async def look() -> JsonObject | None:
        await make_nodes(cluster.client, a="4")
        informer, known = await watching(cluster)
        started_s = cluster.clock.monotonic()
        found = await known.wait_for("a", 2.0)
        assert cluster.clock.monotonic() == started_s
        await informer.stop()
        return found

    found = cluster.run(look())
    assert found is not None and found["status"]["allocatable"]["cpu"] == "4"


def test_a_node_that_comes_within_the_wait_is_found_when_it_comes(cluster: Cluster) -> None:
    async def look() -> tuple[JsonObject | None, float]:
        informer, known = await watching(cluster)
        started_s = cluster.clock.monotonic()
        asking = asyncio.create_task(known.wait_for("late", 2.0))
        await cluster.clock.sleep(0.5)
        await make_nodes(cluster.client, other="1", late="8")
        found = await asking
        took_s = cluster.clock.monotonic() - started_s
        assert not known._waiting
        await informer.stop()
        return found, took_s

    found, took_s = cluster.run(look())
    assert found is not None and found["status"]["allocatable"]["cpu"] == "8"
    assert took_s == pytest.approx(0.5)


def test_a_node_without_a_size_is_waited_for_too(cluster: Cluster) -> None:
    async def look() -> JsonObject | None:
        await cluster.client.create(NODES, node("new"))
        informer, known = await watching(cluster)
        asking = asyncio.create_task(known.wait_for("new", 2.0))
        await cluster.clock.sleep(0.5)
        await set_allocatable(cluster.client, "new", "8")
        found = await asking
        await informer.stop()
        return found

    found = cluster.run(look())
    assert found is not None and found["status"]["allocatable"]["cpu"] == "8"


def test_a_node_that_does_not_come_is_unknown_when_the_time_is_over(cluster: Cluster) -> None:
    async def look() -> tuple[JsonObject | None, float]:
        informer, known = await watching(cluster)
        started_s = cluster.clock.monotonic()
        found = await known.wait_for("never", 2.0)
        took_s = cluster.clock.monotonic() - started_s
        assert not known._waiting and await known.wait_for("", 2.0) is None
        await informer.stop()
        return found, took_s

    assert cluster.run(look()) == (None, pytest.approx(2.0))
