"""Faults as writes to Node objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holokube.client.resources import NODES
from holokube.hollow.fault_writes import KINDS, break_node, heal_node
from holokube.hollow.node_life import Fault, asks_for_reboot, faults_of
from holokube.kube.errors import Conflict, NotFound
from holokube.testing import Cluster
from tests import builders


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(objects=[builders.node("n")]) as made:
        yield made


def read(cluster: Cluster) -> dict[str, Any]:
    return cluster.run(cluster.client.get(NODES, "n"))


def test_every_fault_that_a_fleet_knows_can_be_written() -> None:
    assert set(KINDS) == {*(fault.value for fault in Fault), "reboot"}


def test_faults_add_up_and_are_taken_away_one_by_one(cluster: Cluster) -> None:
    cluster.run(break_node(cluster.client, "n", ["silent"], "now"))
    cluster.run(break_node(cluster.client, "n", ["slow", "silent"], "now"))
    assert faults_of(read(cluster)) == {Fault.SILENT, Fault.SLOW}
    assert cluster.run(heal_node(cluster.client, "n", ["silent"]))
    assert faults_of(read(cluster)) == {Fault.SLOW}
    assert cluster.run(heal_node(cluster.client, "n", []))
    assert faults_of(read(cluster)) == frozenset() and not cluster.run(heal_node(cluster.client, "n", []))


def test_a_reboot_is_asked_for_each_time(cluster: Cluster) -> None:
    before = read(cluster)
    cluster.run(break_node(cluster.client, "n", ["reboot"], "first"))
    middle = read(cluster)
    cluster.run(break_node(cluster.client, "n", ["reboot"], "second"))
    assert asks_for_reboot(before, middle) and asks_for_reboot(middle, read(cluster))


def test_a_write_that_comes_in_between_is_survived(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = cluster.client.patch
    refused: list[Any] = []

    async def once_in_conflict(*args: Any, **kwargs: Any) -> Any:
        if not refused:
            refused.append(args)
            raise Conflict("somebody was quicker")
        return await patch(*args, **kwargs)

    monkeypatch.setattr(cluster.client, "patch", once_in_conflict)
    cluster.run(break_node(cluster.client, "n", ["slow"], "now"))
    assert faults_of(read(cluster)) == {Fault.SLOW} and len(refused) == 1


def test_a_node_that_is_gone_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        cluster.run(break_node(cluster.client, "gone", ["slow"], "now"))
