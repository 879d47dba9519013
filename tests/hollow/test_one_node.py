"""A fleet of one node: what it asks of the server, and what its flags make of the profile."""

from __future__ import annotations

import asyncio

import pytest

from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import LEASES, NODES, PODS
from holokube.client.transport import Call
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.one_node import node_profile
from holokube.hollow.profile import NodeProfile
from holokube.kube.conditions import is_true
from holokube.kube.node_flags import NodeFlags
from holokube.kube.taints import Taint
from holokube.runtime.stop import StopSignal
from holokube.testing import Cluster
from tests.builders import pod
from tests.hollow.worlds import fake_node


def test_flags_come_before_the_profile() -> None:
    profile = NodeProfile(
        capacity={"cpu": "8", "pods": "10"}, allocatable={"cpu": "7", "pods": "10"}, labels={"a": "1", "b": "1"},
        taints=[{"key": "t", "effect": "NoExecute"}],
    )  # fmt: skip
    made = node_profile(
        profile, NodeFlags(name="n", labels={"b": "2"}, taints=(Taint("u", "", "NoSchedule"),), capacity={"cpu": "4"})
    )
    assert made.labels == {"a": "1", "b": "2"}
    assert [taint["key"] for taint in made.taints] == ["t", "u"]
    assert made.capacity == made.allocatable == {"cpu": "4", "pods": "10"}


def test_without_flags_the_profile_stays_as_it_is() -> None:
    profile = NodeProfile(allocatable={"cpu": "7"})
    assert node_profile(profile, NodeFlags()) == profile
    assert node_profile(profile, NodeFlags(allocatable={"cpu": "5"})).allocatable == {**profile.capacity, "cpu": "5"}


@pytest.mark.parametrize(
    "more", [{"manage_all_nodes": True}, {"label_selector": "a=b"}, {"annotation_selector": "a=b"}, {"shards": 2}]
)
def test_one_node_and_a_way_to_choose_nodes_do_not_go_together(more: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="for the node n alone"):
        FleetOptions(node_name="n", **more)  # type: ignore[arg-type]  # the values fit, which mypy cannot see


def test_it_lists_and_watches_nothing_but_its_own() -> None:
    asked: list[Call] = []

    async def main() -> None:
        client = cluster.client
        for name in ("one", "two"):
            await client.create(NODES, fake_node(name))
            await client.create(PODS, pod(f"on-{name}", node=name))
        recording = Client(_Recording(client, asked))
        fleet = Fleet(cluster.clock, recording, FleetOptions(node_name="one"), rng=Rng(1))
        stop = StopSignal()
        running = asyncio.create_task(fleet.run(stop))
        await cluster.clock.sleep(30.0)
        assert fleet.owned() == ["one"]
        assert [len(fleet.node_informer.lister), len(fleet.pod_informer.lister)] == [1, 1]
        assert is_true(await client.get(PODS, "on-one", "default"), "Ready")
        assert not is_true(await client.get(NODES, "two"), "Ready")
        stop.set()
        await running

    with Cluster() as cluster:
        cluster.run(main())
    selectors = {(str(call.resource.plural), call.query.get("fieldSelector")) for call in asked if call.verb == "list"}
    assert selectors == {
        ("nodes", "metadata.name=one"), ("pods", "spec.nodeName=one"), (LEASES.plural, "metadata.name=one"),
    }  # fmt: skip


class _Recording:
    """Passes everything on, and keeps what was asked."""

    def __init__(self, client: Client, asked: list[Call]) -> None:
        self._inner = client.transport
        self._asked = asked

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def call(self, call: Call) -> object:
        self._asked.append(call)
        return await self._inner.call(call)
