"""What every cloud provider must keep to, as a suite: one clause per sentence of the interface.

A provider joins with a factory and three lines::

    @pytest.mark.parametrize("clause", CLAUSES, ids=name_of)
    def test_the_provider_keeps_to_the_interface(clause: Clause) -> None:
        check(clause, make_world)

``make_world(clock)`` starts, on virtual time, a cluster of its own with the provider and two groups in it:
``empty`` (minimum 0, maximum 10, no machines yet) and ``kept`` (minimum 2, maximum 5, two machines with nodes).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import (
    CloudProvider,
    GroupOptions,
    InstanceState,
    NodeGroup,
    PricingModel,
    ResourceLimiter,
)
from holokube.kube.types import JsonObject

EMPTY = "empty"
KEPT = "kept"
FAKE_NODE_REASON = "k8s.io/cluster-autoscaler/fake-node-reason"
HOSTNAME = "kubernetes.io/hostname"


class ProviderUnderTest(Protocol):
    """A provider in a cluster of its own."""

    @property
    def provider(self) -> CloudProvider:
        """The provider that runs now."""

    @property
    def implements(self) -> frozenset[str]:
        """Those of ``atomic_increase_size``, ``force_delete_nodes``, ``pricing``, ``has_instance``, ``options``
        and ``cleanup`` (removes its machines) that it offers; all others must say that they are not."""

    async def settle(self) -> None:
        """Lets time pass until every machine asked for is a node, and every one removed is gone."""

    async def hold(self) -> None:
        """From now on machines that are asked for exist, but no node comes of them."""

    async def release(self) -> None:
        """Ends ``hold``: the nodes of all machines asked for come."""

    async def nodes(self) -> dict[str, JsonObject]:
        """The Node objects of the cluster by name, those of others included."""

    async def add_foreign_node(self, name: str) -> JsonObject:
        """Adds a node that is not the provider's; returns it as the API server has it."""

    async def restart(self) -> None:
        """Ends the provider as a crash would, and starts another one on the same cluster."""

    async def close(self) -> None:
        """Ends everything."""


Factory = Callable[[VirtualClock], Awaitable[ProviderUnderTest]]
Clause = Callable[[ProviderUnderTest], Awaitable[None]]

CLAUSES: list[Clause] = []


def clause(function: Clause) -> Clause:
    CLAUSES.append(function)
    return function


def name_of(function: Any) -> str:
    return str(function.__name__)


def check(function: Clause, make: Factory) -> None:
    """Runs one clause in a world of its own."""

    async def main(clock: VirtualClock) -> None:
        world = await make(clock)
        try:
            await function(world)
        finally:
            await world.close()

    run_virtual(main)


# What the clauses ask again and again


def group(world: ProviderUnderTest, name: str) -> NodeGroup:
    return next(each for each in world.provider.node_groups() if each.id == name)


async def members(world: ProviderUnderTest, name: str) -> list[JsonObject]:
    """The Node objects of a group."""
    return [node for node in (await world.nodes()).values() if await group_id(world, node) == name]


async def group_id(world: ProviderUnderTest, node: JsonObject) -> str | None:
    found = await world.provider.node_group_for_node(node)
    return None if found is None else found.id


async def ids(world: ProviderUnderTest, name: str) -> list[str]:
    return sorted(instance.id for instance in await group(world, name).nodes())


async def grown(world: ProviderUnderTest, name: str, by: int) -> list[JsonObject]:
    await group(world, name).increase_size(by)
    await world.settle()
    await world.provider.refresh()
    return await members(world, name)


def fake_node(instance_id: str, reason: str = "unregistered") -> JsonObject:
    """What stands for a machine without a node where the interface wants a Node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": instance_id, "annotations": {FAKE_NODE_REASON: reason}},
        "spec": {"providerID": instance_id},
    }


async def refused(attempt: Awaitable[None]) -> CloudError:
    with pytest.raises(CloudError) as caught:
        await attempt
    assert not isinstance(caught.value, NotImplementedByProvider)
    assert caught.value.message
    return caught.value


# The provider and its groups


@clause
async def it_has_a_name_and_the_methods_of_the_interface(world: ProviderUnderTest) -> None:
    assert world.provider.name
    assert isinstance(world.provider, CloudProvider)
    for each in world.provider.node_groups():
        assert isinstance(each, NodeGroup)


@clause
async def groups_have_unique_names_and_their_sizes(world: ProviderUnderTest) -> None:
    groups = world.provider.node_groups()
    assert sorted(each.id for each in groups) == [EMPTY, KEPT]
    assert (group(world, EMPTY).min_size, group(world, EMPTY).max_size) == (0, 10)
    assert (group(world, KEPT).min_size, group(world, KEPT).max_size) == (2, 5)
    assert await group(world, EMPTY).target_size() == 0
    assert await group(world, KEPT).target_size() == 2


@clause
async def a_group_tells_itself_in_one_line(world: ProviderUnderTest) -> None:
    for each in world.provider.node_groups():
        assert each.id in each.debug() and "\n" not in each.debug()


@clause
async def groups_exist(world: ProviderUnderTest) -> None:
    assert [await each.exists() for each in world.provider.node_groups()] == [True, True]


@clause
async def the_list_of_groups_is_the_callers_own(world: ProviderUnderTest) -> None:
    world.provider.node_groups().clear()
    assert len(world.provider.node_groups()) == 2


@clause
async def refreshing_changes_nothing_where_nothing_happened(world: ProviderUnderTest) -> None:
    await grown(world, EMPTY, 3)
    order = [each.id for each in world.provider.node_groups()]
    before = [await ids(world, name) for name in order]
    for _ in range(3):
        await world.provider.refresh()
        assert [each.id for each in world.provider.node_groups()] == order
        assert [await each.target_size() for each in world.provider.node_groups()] == [len(part) for part in before]
        assert [await ids(world, name) for name in order] == before


@clause
async def limits_and_accelerators_are_answered_without_asking_anybody(world: ProviderUnderTest) -> None:
    assert isinstance(world.provider.resource_limiter(), ResourceLimiter)
    assert isinstance(world.provider.gpu_label, str)
    assert isinstance(world.provider.available_gpu_types(), frozenset)
    (node, *_) = await members(world, KEPT)
    assert world.provider.node_gpu_config(node) is None


@clause
async def prices_are_offered_or_said_not_to_be(world: ProviderUnderTest) -> None:
    if "pricing" not in world.implements:
        with pytest.raises(NotImplementedByProvider):
            world.provider.pricing()
        return
    model: PricingModel = world.provider.pricing()
    (node, *_) = await members(world, KEPT)
    hour = await model.node_price(node, 0.0, 3600.0)
    assert hour > 0
    assert await model.node_price(node, 0.0, 7200.0) == pytest.approx(2 * hour)


# Which node is whose


@clause
async def a_node_is_known_by_its_group(world: ProviderUnderTest) -> None:
    await grown(world, EMPTY, 1)
    assert [await group_id(world, node) for node in await members(world, EMPTY)] == [EMPTY]
    assert [await group_id(world, node) for node in await members(world, KEPT)] == [KEPT, KEPT]


@clause
async def a_foreign_node_belongs_to_nobody(world: ProviderUnderTest) -> None:
    assert await group_id(world, await world.add_foreign_node("stranger")) is None


@clause
async def a_foreign_node_is_no_instance_of_any_group(world: ProviderUnderTest) -> None:
    stranger = await world.add_foreign_node("stranger")
    await world.settle()
    await world.provider.refresh()
    assert [await each.target_size() for each in world.provider.node_groups() if each.id == KEPT] == [2]
    assert [await each.target_size() for each in world.provider.node_groups() if each.id == EMPTY] == [0]
    found = [instance.id for each in world.provider.node_groups() for instance in await each.nodes()]
    assert stranger["spec"].get("providerID") not in found


@clause
async def a_machine_without_a_node_is_known_by_its_id(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(2)
    for instance_id in await ids(world, EMPTY):
        assert await group_id(world, fake_node(instance_id)) == EMPTY
        assert await group_id(world, fake_node(instance_id, "create-error")) == EMPTY


@clause
async def an_unknown_id_belongs_to_nobody(world: ProviderUnderTest) -> None:
    assert await group_id(world, fake_node("nobody://has-this")) is None


@clause
async def a_machine_that_exists_has_an_instance(world: ProviderUnderTest) -> None:
    (node, *_) = await members(world, KEPT)
    if "has_instance" not in world.implements:
        with pytest.raises(NotImplementedByProvider):
            await world.provider.has_instance(node)
        return
    assert await world.provider.has_instance(node)


@clause
async def a_machine_that_was_deleted_has_none(world: ProviderUnderTest) -> None:
    if "has_instance" not in world.implements:
        return
    (node,) = await grown(world, EMPTY, 1)
    await group(world, EMPTY).delete_nodes([node])
    await world.settle()
    assert not await world.provider.has_instance(node)


# More machines


@clause
async def more_machines_become_as_many_nodes(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 4)
    assert len(made) == 4
    assert await group(world, EMPTY).target_size() == 4


@clause
async def ids_of_machines_are_provider_ids_of_nodes(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 4)
    assert await ids(world, EMPTY) == sorted(node["spec"]["providerID"] for node in made)
    assert len(set(await ids(world, EMPTY))) == 4


@clause
async def a_machine_with_a_node_runs(world: ProviderUnderTest) -> None:
    for instance in await group(world, KEPT).nodes():
        assert instance.state in (None, InstanceState.RUNNING)
        assert instance.error is None and instance.is_expected_to_register


@clause
async def every_node_has_a_name_and_a_host_name_of_its_own(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 5)
    names = [node["metadata"]["name"] for node in made]
    assert len(set(names)) == 5
    assert sorted(node["metadata"]["labels"][HOSTNAME] for node in made) == sorted(names)


@clause
async def the_target_counts_machines_that_are_not_there_yet(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(3)
    assert await group(world, EMPTY).target_size() == 3
    assert await members(world, EMPTY) == []


@clause
async def machines_that_are_not_nodes_yet_are_listed(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(3)
    found = await group(world, EMPTY).nodes()
    assert len({instance.id for instance in found}) == 3
    assert all(instance.state in (None, InstanceState.CREATING) for instance in found)
    assert all(instance.is_expected_to_register for instance in found)


@clause
async def a_machine_keeps_its_id_when_its_node_comes(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(3)
    before = await ids(world, EMPTY)
    await world.release()
    await world.settle()
    await world.provider.refresh()
    assert await ids(world, EMPTY) == before
    assert sorted(node["spec"]["providerID"] for node in await members(world, EMPTY)) == before


@clause
async def refreshing_does_not_forget_what_was_asked_for(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(3)
    await world.provider.refresh()
    assert await group(world, EMPTY).target_size() == 3
    await world.release()
    await world.settle()
    await world.provider.refresh()
    assert await group(world, EMPTY).target_size() == 3
    assert len(await members(world, EMPTY)) == 3


@clause
async def an_increase_by_nothing_or_less_is_refused(world: ProviderUnderTest) -> None:
    for delta in (0, -1):
        await refused(group(world, EMPTY).increase_size(delta))
    assert await group(world, EMPTY).target_size() == 0


@clause
async def an_increase_up_to_the_maximum_is_granted(world: ProviderUnderTest) -> None:
    assert len(await grown(world, EMPTY, 10)) == 10


@clause
async def an_increase_above_the_maximum_is_refused_as_a_whole(world: ProviderUnderTest) -> None:
    await grown(world, EMPTY, 8)
    await refused(group(world, EMPTY).increase_size(3))
    await world.settle()
    assert await group(world, EMPTY).target_size() == 8
    assert len(await members(world, EMPTY)) == 8


@clause
async def machines_on_their_way_count_against_the_maximum(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(8)
    await refused(group(world, EMPTY).increase_size(3))
    assert await group(world, EMPTY).target_size() == 8


@clause
async def increases_at_the_same_time_do_not_pass_the_maximum_together(world: ProviderUnderTest) -> None:
    each = group(world, EMPTY)
    answers = await asyncio.gather(each.increase_size(6), each.increase_size(6), return_exceptions=True)
    assert [type(answer) for answer in answers].count(type(None)) == 1
    assert any(isinstance(answer, CloudError) for answer in answers)
    await world.settle()
    await world.provider.refresh()
    assert await each.target_size() == 6
    assert len(await members(world, EMPTY)) == 6


@clause
async def an_increase_all_or_nothing_is_done_or_said_not_to_be_offered(world: ProviderUnderTest) -> None:
    each = group(world, EMPTY)
    if "atomic_increase_size" not in world.implements:
        with pytest.raises(NotImplementedByProvider):
            await each.atomic_increase_size(1)
        assert await each.target_size() == 0
        return
    for delta in (0, -1, 11):
        await refused(each.atomic_increase_size(delta))
    assert await each.target_size() == 0
    await each.atomic_increase_size(4)
    assert await each.target_size() == 4
    await world.settle()
    assert len(await members(world, EMPTY)) == 4


# Fewer machines


@clause
async def named_nodes_go_and_the_target_with_them(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 5)
    doomed, kept = made[:2], made[2:]
    await group(world, EMPTY).delete_nodes(doomed)
    assert await group(world, EMPTY).target_size() == 3
    await world.settle()
    await world.provider.refresh()
    assert await group(world, EMPTY).target_size() == 3
    assert await ids(world, EMPTY) == sorted(node["spec"]["providerID"] for node in kept)
    there = await world.nodes()
    assert [node["metadata"]["name"] in there for node in made] == [False, False, True, True, True]


@clause
async def a_foreign_node_is_not_deleted(world: ProviderUnderTest) -> None:
    await grown(world, EMPTY, 2)
    stranger = await world.add_foreign_node("stranger")
    for removal in (group(world, EMPTY).delete_nodes, group(world, EMPTY).force_delete_nodes):
        with pytest.raises(CloudError):
            await removal([stranger])
    await world.settle()
    assert "stranger" in await world.nodes()
    assert await group(world, EMPTY).target_size() == 2


@clause
async def a_foreign_node_saves_the_others_of_its_batch(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 2)
    stranger = await world.add_foreign_node("stranger")
    await refused(group(world, EMPTY).delete_nodes([made[0], stranger]))
    await world.settle()
    assert len(await members(world, EMPTY)) == 2
    assert await group(world, EMPTY).target_size() == 2


@clause
async def a_node_of_another_group_is_not_deleted(world: ProviderUnderTest) -> None:
    await grown(world, EMPTY, 1)
    other = await grown(world, KEPT, 1)
    await refused(group(world, EMPTY).delete_nodes([other[0]]))
    await world.settle()
    assert len(await members(world, KEPT)) == 3
    assert await group(world, EMPTY).target_size() == 1


@clause
async def a_group_at_its_minimum_gives_nothing_away(world: ProviderUnderTest) -> None:
    await refused(group(world, KEPT).delete_nodes((await members(world, KEPT))[:1]))
    await world.settle()
    assert await group(world, KEPT).target_size() == 2
    assert len(await members(world, KEPT)) == 2


@clause
async def a_batch_that_would_break_the_minimum_is_refused_as_a_whole(world: ProviderUnderTest) -> None:
    made = await grown(world, KEPT, 1)
    await refused(group(world, KEPT).delete_nodes(made[:2]))
    await world.settle()
    assert len(await members(world, KEPT)) == 3
    await group(world, KEPT).delete_nodes(made[:1])
    assert await group(world, KEPT).target_size() == 2


@clause
async def force_disregards_the_minimum_or_is_not_offered(world: ProviderUnderTest) -> None:
    nodes = await members(world, KEPT)
    if "force_delete_nodes" not in world.implements:
        with pytest.raises(NotImplementedByProvider):
            await group(world, KEPT).force_delete_nodes(nodes)
        return
    await group(world, KEPT).force_delete_nodes(nodes)
    assert await group(world, KEPT).target_size() == 0
    await world.settle()
    assert await members(world, KEPT) == []


@clause
async def deletions_at_the_same_time_are_all_done(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 6)
    each = group(world, EMPTY)
    await asyncio.gather(*(each.delete_nodes([node]) for node in made[:5]))
    assert await each.target_size() == 1
    await world.settle()
    await world.provider.refresh()
    assert await each.target_size() == 1
    assert await ids(world, EMPTY) == [made[5]["spec"]["providerID"]]


@clause
async def deletions_at_the_same_time_do_not_break_the_minimum_together(world: ProviderUnderTest) -> None:
    made = await grown(world, KEPT, 1)
    each = group(world, KEPT)
    answers = await asyncio.gather(*(each.delete_nodes([node]) for node in made), return_exceptions=True)
    assert answers.count(None) == 1
    assert sum(isinstance(answer, CloudError) for answer in answers) == 2
    await world.settle()
    assert len(await members(world, KEPT)) == 2
    assert await each.target_size() == 2


@clause
async def the_same_node_twice_lowers_the_target_once(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 3)
    each = group(world, EMPTY)
    await asyncio.gather(*(each.delete_nodes([made[0]]) for _ in range(2)), return_exceptions=True)
    await world.settle()
    await asyncio.gather(each.delete_nodes([made[0]]), return_exceptions=True)
    assert await each.target_size() == 2
    await world.settle()
    assert len(await members(world, EMPTY)) == 2


@clause
async def a_machine_without_a_node_can_be_deleted_by_its_id(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(3)
    first, *rest = await ids(world, EMPTY)
    await group(world, EMPTY).delete_nodes([fake_node(first)])
    assert await group(world, EMPTY).target_size() == 2
    await world.release()
    await world.settle()
    await world.provider.refresh()
    assert await ids(world, EMPTY) == rest
    assert sorted(node["spec"]["providerID"] for node in await members(world, EMPTY)) == rest


@clause
async def requests_are_taken_back_before_their_machines_come(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(3)
    await group(world, EMPTY).decrease_target_size(-2)
    assert await group(world, EMPTY).target_size() == 1
    await world.release()
    await world.settle()
    await world.provider.refresh()
    assert await group(world, EMPTY).target_size() == 1
    assert len(await members(world, EMPTY)) == 1


@clause
async def taking_requests_back_never_kills_a_machine(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 3)
    await refused(group(world, EMPTY).decrease_target_size(-1))
    await world.hold()
    await group(world, EMPTY).increase_size(1)
    await refused(group(world, EMPTY).decrease_target_size(-2))
    assert await group(world, EMPTY).target_size() == 4
    await group(world, EMPTY).decrease_target_size(-1)
    await world.release()
    await world.settle()
    there = await world.nodes()
    assert all(node["metadata"]["name"] in there for node in made)
    assert await group(world, EMPTY).target_size() == 3


@clause
async def taking_back_nothing_or_less_is_refused(world: ProviderUnderTest) -> None:
    await world.hold()
    await group(world, EMPTY).increase_size(2)
    for delta in (0, 1):
        await refused(group(world, EMPTY).decrease_target_size(delta))
    assert await group(world, EMPTY).target_size() == 2


# What a new machine will be


@clause
async def the_template_is_a_node_as_it_will_be(world: ProviderUnderTest) -> None:
    info = await group(world, EMPTY).template_node_info()
    template = info.node
    assert template["metadata"]["name"]
    assert template["metadata"].get("uid", "") == "" and template["metadata"].get("resourceVersion", "") == ""
    (made,) = await grown(world, EMPTY, 1)
    labels = {key: value for key, value in made["metadata"]["labels"].items() if key != HOSTNAME}
    expected = {key: value for key, value in template["metadata"]["labels"].items() if key != HOSTNAME}
    assert labels == expected
    for name, amount in template["status"]["allocatable"].items():
        assert made["status"]["allocatable"][name] == amount
    assert {"cpu", "memory", "pods"} <= set(template["status"]["allocatable"])


@clause
async def a_template_lets_a_group_grow_from_nothing(world: ProviderUnderTest) -> None:
    assert await members(world, EMPTY) == []
    info = await group(world, EMPTY).template_node_info()
    assert await group_id(world, info.node) in (EMPTY, None)
    assert all(pod["metadata"]["name"] for pod in info.pods)


@clause
async def a_group_has_options_of_its_own_or_none(world: ProviderUnderTest) -> None:
    defaults = GroupOptions(scale_down_unneeded_time_s=123.0)
    if "options" not in world.implements:
        with pytest.raises(NotImplementedByProvider):
            await group(world, EMPTY).options(defaults)
        return
    found = await group(world, EMPTY).options(defaults)
    assert found is None or isinstance(found, GroupOptions)


# Restart and end


@clause
async def a_restart_loses_no_node(world: ProviderUnderTest) -> None:
    await grown(world, EMPTY, 4)
    await world.add_foreign_node("stranger")
    before = {name: await ids(world, name) for name in (EMPTY, KEPT)}
    await world.restart()
    await world.provider.refresh()
    assert {name: await ids(world, name) for name in (EMPTY, KEPT)} == before
    assert await group(world, EMPTY).target_size() == 4
    assert await group(world, KEPT).target_size() == 2


@clause
async def nodes_of_before_a_restart_can_be_deleted_after_it(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 3)
    await world.restart()
    await group(world, EMPTY).delete_nodes(made[:1])
    await world.settle()
    assert await group(world, EMPTY).target_size() == 2
    assert len(await members(world, EMPTY)) == 2


@clause
async def the_end_touches_no_foreign_node_and_may_come_twice(world: ProviderUnderTest) -> None:
    made = await grown(world, EMPTY, 2)
    await world.add_foreign_node("stranger")
    await world.provider.cleanup()
    await world.provider.cleanup()
    await world.settle()
    there = await world.nodes()
    assert "stranger" in there
    assert any(node["metadata"]["name"] in there for node in made) is ("cleanup" not in world.implements)
