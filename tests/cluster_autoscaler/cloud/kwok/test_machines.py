"""Machines of the kwok provider, when their cloud or the API server fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holokube.client.transport import Call
from holokube.cluster_autoscaler.cloud.errors import (
    CloudError,
    ErrorKind,
    OutOfResourcesError,
)
from holokube.cluster_autoscaler.cloud.kwok.faults import Faults
from holokube.cluster_autoscaler.cloud.provider import ErrorClass, InstanceState
from holokube.kube.errors import Forbidden, TooManyRequests
from tests.cluster_autoscaler.cloud.conformance import fake_node
from tests.cluster_autoscaler.cloud.kwok.worlds import KwokWorld, created, run, sizes, template

# Machines that take time, or never come


def test_a_machine_that_boots_is_being_created_and_then_runs() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="60s")])
        await world.group("a").increase_size(2)
        await world.clock.sleep(59.0)
        states = [(each.state, each.error) for each in await world.group("a").nodes()]
        assert states == [(InstanceState.CREATING, None)] * 2
        assert await sizes(world, "a") == (2, 0)
        await world.clock.sleep(2.0)
        assert [each.state for each in await world.group("a").nodes()] == [InstanceState.RUNNING] * 2
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_a_machine_that_fails_to_boot_says_so_after_its_delay_and_can_be_deleted() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="60s", boot_failure_probability=1)])
        await world.group("a").increase_size(2)
        assert all(each.error is None for each in await world.group("a").nodes())
        await world.clock.sleep(61.0)
        failed = await world.group("a").nodes()
        assert [each.state for each in failed] == [InstanceState.CREATING] * 2
        assert all(each.error is not None and each.error.error_class is ErrorClass.OTHER for each in failed)
        assert not any(each.is_expected_to_register for each in failed)
        await world.provider.refresh()
        assert await sizes(world, "a") == (2, 0)
        await world.group("a").delete_nodes([fake_node(each.id, "create-error") for each in failed])
        assert await sizes(world, "a") == (0, 0)

    run(test)


def test_a_silent_machine_never_says_anything() -> None:
    async def test(world: KwokWorld) -> None:
        faults: dict[str, Any] = {"boot_delay": "60s", "boot_failure_probability": 1, "boot_failure_mode": "silent"}
        await world.start([template("n1", "a", **faults)])
        await world.group("a").increase_size(1)
        await world.clock.sleep(7200.0)
        (machine,) = await world.group("a").nodes()
        assert (machine.state, machine.error) == (InstanceState.CREATING, None)
        await world.group("a").delete_nodes([fake_node(machine.id)])
        assert await world.group("a").nodes() == []

    run(test)


def test_as_many_machines_fail_as_the_seed_says() -> None:
    seen = []

    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_failure_probability=0.5)])
        await world.group("a").increase_size(40)
        await world.settle()
        seen.append([each.id for each in await world.group("a").nodes() if each.error is not None])
        assert 10 < len(seen[-1]) < 30
        assert (await sizes(world, "a"))[1] == 40 - len(seen[-1])

    run(test, seed=3)
    run(test, seed=3)
    assert seen[0] == seen[1]


def test_machines_that_cannot_be_had_show_it() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", stock=2)])
        await world.group("a").increase_size(5)
        await world.settle()
        assert await sizes(world, "a") == (5, 2)
        failed = [each for each in await world.group("a").nodes() if each.error is not None]
        assert {each.error.error_class for each in failed if each.error} == {ErrorClass.OUT_OF_RESOURCES}
        await world.group("a").delete_nodes([fake_node(each.id, "create-error") for each in failed])
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_deleting_a_node_puts_its_machine_back_into_stock() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", stock=1, stock_out_mode="call")])
        await world.group("a").increase_size(1)
        await world.settle()
        with pytest.raises(OutOfResourcesError):
            await world.group("a").increase_size(1)
        await world.group("a").delete_nodes(list((await world.nodes()).values()))
        await world.group("a").increase_size(1)
        await world.settle()
        assert await sizes(world, "a") == (1, 1)

    run(test)


def test_a_stock_out_ends() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", stock_out="1m..10m", stock_out_mode="call")])
        await world.group("a").increase_size(1)
        await world.clock.sleep(60.0)
        with pytest.raises(OutOfResourcesError, match="0 of 1 machines can be had"):
            await world.group("a").increase_size(1)
        await world.clock.sleep(540.0)
        await world.group("a").increase_size(1)
        await world.settle()
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_after_a_partial_increase_the_target_tells_how_far_it_came() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", increase_limit=2)])
        with pytest.raises(CloudError, match="gave 2 of 5"):
            await world.group("a").increase_size(5)
        assert await world.group("a").target_size() == 2
        with pytest.raises(CloudError):
            await world.group("a").atomic_increase_size(3)
        await world.settle()
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_machines_that_failed_are_taken_back_first() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="60s", stock=1)])
        await world.group("a").increase_size(3)
        world.set_faults(Faults(boot_delay_s=(60.0, 60.0)))
        await world.group("a").increase_size(1)
        await world.group("a").decrease_target_size(-2)
        assert [machine.error for machine in await world.group("a").nodes()] == [None, None]
        await world.clock.sleep(61.0)
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_machines_of_the_same_seed_boot_under_other_names_after_a_restart() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="10s")])
        await world.group("a").increase_size(3)
        await world.clock.sleep(11.0)
        await world.restart()
        await world.group("a").increase_size(3)
        await world.clock.sleep(11.0)
        assert await sizes(world, "a") == (6, 6)

    run(test)


def test_machines_that_boot_are_lost_with_the_provider() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="60s")])
        await world.group("a").increase_size(2)
        await world.clock.sleep(61.0)
        await world.group("a").increase_size(3)
        await world.restart()
        assert await sizes(world, "a") == (2, 2)
        await world.clock.sleep(3600.0)
        assert await sizes(world, "a") == (2, 2)

    run(test)


# An API server that fails


def test_nodes_that_could_not_be_made_do_not_count() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        made = 0

        def third_and_later(call: Call) -> BaseException | None:
            nonlocal made
            made += created(call)
            return Forbidden("quota") if created(call) and made > 3 else None

        world.transport.fail = third_and_later
        with pytest.raises(CloudError, match="3 of 5 nodes made: quota") as caught:
            await world.group("a").increase_size(5)
        assert caught.value.kind is ErrorKind.API_CALL
        assert await world.group("a").target_size() == 3
        await world.settle()
        assert await sizes(world, "a") == (3, 3)

    run(test)


def test_all_or_nothing_leaves_nothing_when_the_api_server_refuses_one() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        made = 0

        def last(call: Call) -> BaseException | None:
            nonlocal made
            made += created(call)
            return Forbidden("quota") if created(call) and made == 5 else None

        world.transport.fail = last
        with pytest.raises(CloudError, match="0 of 5 nodes made"):
            await world.group("a").atomic_increase_size(5)
        assert await world.group("a").target_size() == 0
        await world.settle()
        assert await sizes(world, "a") == (0, 0)

    run(test)


def test_a_node_that_could_not_be_deleted_still_counts() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        await world.group("a").increase_size(3)
        await world.settle()
        nodes = await world.nodes()
        keep = min(nodes)
        world.transport.fail = lambda call: Forbidden("no") if call.verb == "delete" and call.name == keep else None
        with pytest.raises(CloudError, match=f"2 of 3 nodes deleted: node {keep} cannot be deleted: no"):
            await world.group("a").delete_nodes(list(nodes.values()))
        await world.settle()
        assert await sizes(world, "a") == (1, 1)
        assert [each.state for each in await world.group("a").nodes()] == [InstanceState.RUNNING]

    run(test)


def test_a_booted_machine_tries_again_until_its_node_is_there() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="10s")])
        await world.group("a").increase_size(1)
        world.transport.fail = lambda call: TooManyRequests("busy") if created(call) else None
        await world.clock.sleep(12.0)
        assert await sizes(world, "a") == (1, 0)
        world.transport.fail = lambda _call: None
        await world.clock.sleep(30.0)
        assert await sizes(world, "a") == (1, 1)

    run(test)


def test_a_booted_machine_that_is_refused_for_good_shows_an_error() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="10s")])
        world.transport.fail = lambda call: Forbidden("never") if created(call) else None
        await world.group("a").increase_size(1)
        await world.clock.sleep(120.0)
        (machine,) = await world.group("a").nodes()
        assert machine.error is not None and machine.error.message == "never"
        assert sum(verb == "create" for verb, _ in world.transport.calls) == 6

    run(test)


def test_a_machine_deleted_while_its_node_is_being_made_leaves_no_node() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])

        async def slowly(call: Call) -> None:
            if created(call):
                await world.clock.sleep(5.0)

        world.transport.before = slowly
        growth = asyncio.create_task(world.group("a").increase_size(2))
        await world.clock.sleep(1.0)
        first, second = await world.group("a").nodes()
        await world.group("a").delete_nodes([fake_node(first.id)])
        with pytest.raises(CloudError, match="existing"):
            await world.group("a").decrease_target_size(-1)
        assert await world.group("a").target_size() == 1
        await growth
        await world.settle()
        assert await sizes(world, "a") == (1, 1)
        assert [each.id for each in await world.group("a").nodes()] == [second.id]

    run(test)


def test_an_interrupted_increase_keeps_the_count_true() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        made = 0

        async def hang(call: Call) -> None:
            nonlocal made
            made += created(call)
            if created(call) and made > 2:
                await asyncio.Event().wait()

        world.transport.before = hang
        growth = asyncio.create_task(world.group("a").increase_size(5))
        await world.clock.sleep(1.0)
        growth.cancel()
        with pytest.raises(asyncio.CancelledError):
            await growth
        await world.settle()
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_the_end_waits_for_nodes_that_are_being_made_and_removes_them() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="10s")])
        world.transport.server_takes_s = 5.0
        await world.group("a").increase_size(2)
        await world.clock.sleep(12.0)
        await world.provider.cleanup()
        await world.clock.sleep(60.0)
        assert await world.nodes() == {}
        assert sum(verb == "create" for verb, _ in world.transport.calls) == 2

    run(test)


def test_a_stranger_under_the_name_of_a_node_is_not_that_node() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        await world.group("a").increase_size(1)
        await world.settle()
        (name,) = await world.nodes()
        stranger = template(name)
        stranger["spec"]["providerID"] = f"metal://{name}"
        with pytest.raises(CloudError, match="not managed by the kwok provider"):
            await world.group("a").delete_nodes([stranger])
        assert await sizes(world, "a") == (1, 1)

    run(test)
