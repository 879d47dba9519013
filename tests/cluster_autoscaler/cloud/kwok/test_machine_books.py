"""What is counted as machines come and go is what counting them all anew comes to."""

from __future__ import annotations

import random

import pytest

from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kwok.marks import group_of
from holokube.cluster_autoscaler.cloud.provider import InstanceState
from tests.cluster_autoscaler.cloud.kwok.worlds import KwokWorld, run, template


async def compare(world: KwokWorld) -> None:
    provider = world.provider
    machines = provider._machines
    listed = tuple(machines._informer.lister.list())
    denied = [node["metadata"]["name"] for node in listed if not await provider.has_instance(node)]
    assert provider.without_machine(listed) == frozenset(denied)
    for name in ("a", "b"):
        assert machines.count(name) == len(machines.nodes(name)) + len(machines.waiting(name))
        ids = [node["spec"]["providerID"] for node in machines._shown(name)]
        instances = machines.instances(name)
        assert [one.id for one in instances] == [*ids, *(one.id for one in machines.waiting(name))]
        going = {node["spec"]["providerID"] for node in machines._shown(name) if machines._is_going(node)}
        assert {one.id for one in instances if one.state is InstanceState.DELETING} == going


@pytest.mark.parametrize("seed", range(4))
def test_books_of_machines_say_what_counting_says(seed: int) -> None:
    draw = random.Random(seed)

    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", desired_count=2), template("n2", "b", boot_delay="5s")])
        for _ in range(40):
            group = world.group(draw.choice("ab"))
            nodes = list((await world.nodes()).values())
            what = draw.randrange(5)
            if what == 0:
                await group.increase_size(draw.randint(1, 3))
            elif what == 1 and nodes:
                await group.delete_nodes([node for node in draw.sample(nodes, 1) if group_of(node) == group.id])
            elif what == 2 and nodes:
                await world.client.delete(NODES, draw.choice(nodes)["metadata"]["name"])
            elif what == 3 and nodes:
                name = draw.choice(nodes)["metadata"]["name"]
                await world.client.patch(NODES, name, {"metadata": {"labels": {"x": str(draw.random())}}})
            else:
                await world.settle()
            await compare(world)
        await world.settle()
        await compare(world)

    run(test)
