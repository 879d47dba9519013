"""The kwok provider over time: start, restart, others in the cluster, prices, end."""

from __future__ import annotations

import pytest

from holokube.client.resources import NODES
from holokube.client.transport import Call
from holokube.cluster_autoscaler.cloud.errors import (
    CloudError,
    NotImplementedByProvider,
)
from holokube.cluster_autoscaler.cloud.kwok.marks import group_of
from holokube.cluster_autoscaler.cloud.kwok.provider import KwokProvider, build
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, InstanceState, ResourceLimiter
from holokube.kube.conditions import is_true
from holokube.kube.errors import Forbidden
from holokube.runtime.informers import InformerSet
from holokube.testing import Cluster
from tests.cluster_autoscaler.cloud.kwok.worlds import KwokWorld, created, run, sizes, template

# The start


def test_groups_begin_with_their_desired_count() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", desired_count=3), template("n2", "b", min_count=2), template("n3", "c")])
        await world.settle()
        assert [await sizes(world, name) for name in "abc"] == [(3, 3), (2, 2), (0, 0)]

    run(test)


def test_machines_that_a_group_begins_with_have_booted_and_later_ones_have_to() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", desired_count=2, boot_delay="60s", boot_failure_probability="0.5")])
        await world.settle()
        assert len(await world.nodes()) == 2
        await world.group("a").increase_size(1)
        await world.settle()
        assert len(await world.nodes()) == 2

    run(test)


def test_a_restart_does_not_undo_a_scale_down_but_mends_the_minimum() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", desired_count=5, min_count=2)])
        await world.settle()
        doomed = list((await world.nodes()).values())[:2]
        await world.group("a").delete_nodes(doomed)
        await world.restart()
        assert await sizes(world, "a") == (3, 3)
        for name in list(await world.nodes())[:2]:
            await world.client.delete(NODES, name)
        await world.restart()
        await world.settle()
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_a_cloud_without_machines_does_not_keep_the_provider_from_starting() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", desired_count=3, stock=1, stock_out_mode="call")])
        await world.settle()
        assert await sizes(world, "a") == (1, 1)

    run(test)


def test_names_are_the_groups_name_and_five_letters_and_repeat_with_the_seed() -> None:
    seen: list[list[str]] = []

    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "pool-a")])
        await world.group("pool-a").increase_size(3)
        names = sorted(await world.nodes())
        assert all(name.startswith("pool-a-") and len(name) == len("pool-a-") + 5 for name in names)
        seen.append(names)

    run(test, seed=1)
    run(test, seed=1)
    run(test, seed=2)
    assert seen[0] == seen[1] != seen[2]


def test_the_same_seed_after_a_restart_takes_no_name_twice() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        await world.group("a").increase_size(5)
        await world.restart()
        await world.group("a").increase_size(5)
        await world.settle()
        assert await sizes(world, "a") == (10, 10)

    run(test)


def test_a_name_that_somebody_takes_meanwhile_is_left_to_them() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        taken: list[str] = []

        async def be_faster(call: Call) -> None:
            if created(call) and not taken:
                assert isinstance(call.body, dict)
                taken.append(call.body["metadata"]["name"])
                await world.client.create(NODES, template(taken[0]))

        world.transport.before = be_faster
        await world.group("a").increase_size(2)
        await world.settle()
        assert await sizes(world, "a") == (2, 2)
        assert group_of((await world.nodes())[taken[0]]) == ""

    run(test)


# Others in the same cluster


def test_a_node_that_somebody_else_deletes_is_missed() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        await world.group("a").increase_size(3)
        await world.settle()
        gone = (await world.nodes()).popitem()[1]
        await world.client.delete(NODES, gone["metadata"]["name"])
        await world.settle()
        await world.provider.refresh()
        assert await sizes(world, "a") == (2, 2)
        assert not await world.provider.has_instance(gone)
        await world.group("a").delete_nodes([gone])
        assert await sizes(world, "a") == (2, 2)

    run(test)


def test_a_node_with_finalizers_is_being_deleted_and_does_not_count() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        await world.group("a").increase_size(2)
        await world.settle()
        (name, node), _ = (await world.nodes()).items()
        await world.client.patch(NODES, name, {"metadata": {"finalizers": ["example.com/wait"]}})
        await world.settle()
        await world.group("a").delete_nodes([node])
        await world.settle()
        assert await sizes(world, "a") == (1, 2)
        states = {each.id: each.state for each in await world.group("a").nodes()}
        assert states[f"kwok:{name}"] is InstanceState.DELETING

    run(test)


def test_a_node_deleted_before_anybody_saw_it_is_forgotten_in_time() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        await world.informers.get(NODES).stop()
        await world.group("a").increase_size(1)
        (name,) = await world.nodes()
        await world.client.delete(NODES, name)
        await world.provider.refresh()
        assert await world.group("a").target_size() == 1
        await world.clock.sleep(31.0)
        await world.provider.refresh()
        assert await world.group("a").target_size() == 0

    run(test)


def test_real_nodes_with_the_label_of_a_group_are_not_counted() -> None:
    async def test(world: KwokWorld) -> None:
        await world.client.create(NODES, template("real", labels={"cloud.google.com/gke-nodepool": "p"}))
        await world.start()
        await world.provider.refresh()
        assert await sizes(world, "p-kwok") == (0, 0)
        await world.group("p-kwok").increase_size(2)
        await world.settle()
        assert await sizes(world, "p-kwok") == (2, 2)
        await world.restart()
        assert [group.id for group in world.provider.node_groups()] == ["p-kwok"]
        assert await sizes(world, "p-kwok") == (2, 2)
        await world.provider.cleanup()
        assert list(await world.nodes()) == ["real"]

    run(test)


def test_the_end_leaves_groups_of_others_alone() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        await world.group("a").increase_size(2)
        await world.settle()
        other = await build(
            world.clock, world.client, world.informers, world.rng, environ={}, templates=[template("n2", "b")]
        )
        await other.node_groups()[0].increase_size(2)
        await world.settle()
        await other.refresh()
        assert await other.node_group_for_node(next(iter((await world.nodes()).values()))) is None
        await other.cleanup()
        await world.settle()
        assert await sizes(world, "a") == (2, 2)
        assert {group_of(node) for node in (await world.nodes()).values()} == {"a"}

    run(test)


def test_the_end_also_ends_machines_that_boot() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", boot_delay="60s")])
        await world.group("a").increase_size(3)
        await world.provider.cleanup()
        await world.clock.sleep(3600.0)
        assert await world.nodes() == {}

    run(test)


def test_the_end_says_what_it_could_not_remove_and_does_not_raise() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", desired_count=2)])
        await world.settle()
        first = min(await world.nodes())
        world.transport.fail = lambda call: Forbidden("no") if call.verb == "delete" and call.name == first else None
        await world.provider.cleanup()
        assert list(await world.nodes()) == [first]

    run(test)


# Prices, options, accelerators


def test_prices_come_from_the_templates() -> None:
    async def test(world: KwokWorld) -> None:
        small = template("n1", "small", cpu="4", memory="30Gi", price_per_hour=0.4)
        large = template("n2", "large", cpu="8", memory="60Gi", price_per_hour=1.2)
        await world.start([small, large, template("n3", "unknown")])
        assert "cannot be compared by price: unknown" in world.provider.warnings[0]
        model = world.provider.pricing()
        prices = []
        for name in ("small", "large"):
            info = await world.group(name).template_node_info()
            prices.append(await model.node_price(info.node, 0.0, 1800.0))
        assert prices == pytest.approx([0.2, 0.6])
        asks = {"cpu": "1", "memory": "7680Mi"}
        one = {"spec": {"containers": [{"name": "c", "resources": {"requests": asks}}]}}
        # A fourth of the small node, which is the cheaper offer, fits a quarter of its price.
        assert await model.pod_price(one, 0.0, 3600.0) == pytest.approx(0.1)
        unknown = (await world.group("unknown").template_node_info()).node
        with pytest.raises(CloudError, match=r"group unknown has no annotation .*price-per-hour"):
            await model.node_price(unknown, 0.0, 3600.0)
        with pytest.raises(CloudError, match="it is of no kwok group"):
            await model.node_price(template("real"), 0.0, 3600.0)

    run(test)


def test_without_prices_there_is_no_model() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a")])
        with pytest.raises(NotImplementedByProvider, match="price-per-hour"):
            world.provider.pricing()

    run(test)


def test_accelerators_cost_what_their_group_charges_above_the_rest() -> None:
    async def test(world: KwokWorld) -> None:
        plain = template("n1", "plain", cpu="4", memory="30Gi", price_per_hour=0.8)
        gpu = template("n2", "gpu", cpu="4", memory="30Gi", price_per_hour=2.8)
        for amounts in gpu["status"].values():
            amounts["nvidia.com/gpu"] = "2"
        await world.start([plain, gpu])
        model = world.provider.pricing()
        pod = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}
        assert await model.pod_price(pod, 0.0, 3600.0) == pytest.approx(1.0)
        config = world.provider.node_gpu_config((await world.group("gpu").template_node_info()).node)
        assert config is not None and config.resource_name == "nvidia.com/gpu"
        assert world.provider.node_gpu_config((await world.group("plain").template_node_info()).node) is None

    run(test)


def test_a_groups_own_settings_come_before_the_defaults() -> None:
    async def test(world: KwokWorld) -> None:
        await world.start([template("n1", "a", scale_down_unneeded_time="30s"), template("n2", "b")])
        found = await world.group("a").options(GroupOptions(max_node_startup_time_s=5.0))
        assert found == GroupOptions(scale_down_unneeded_time_s=30.0, max_node_startup_time_s=5.0)
        assert await world.group("b").options(GroupOptions()) is None

    run(test)


def test_limits_are_those_given() -> None:
    async def test(world: KwokWorld) -> None:
        limits = ResourceLimiter({"cpu": 1}, {"cpu": 9})
        provider: KwokProvider = await build(
            world.clock,
            world.client,
            InformerSet(world.clock, world.client, world.rng),
            world.rng,
            environ={},
            templates=[template("n1", "a")],
            resource_limiter=limits,
            skip_taint=False,
        )
        assert provider.resource_limiter() is limits
        info = await provider.node_groups()[0].template_node_info()
        assert [taint["key"] for taint in info.node["spec"]["taints"]] == ["kwok-provider"]

    run(test)


# With a fleet


def test_a_fleet_adopts_the_nodes_and_makes_them_ready() -> None:
    with Cluster(nodes=0) as cluster:

        async def grow() -> None:
            informers = InformerSet(cluster.clock, cluster.client, cluster.rng)
            provider = await build(
                cluster.clock, cluster.client, informers, cluster.rng, environ={}, templates=[template("n1", "a")]
            )
            informers.get(NODES).start()
            await provider.node_groups()[0].increase_size(3)
            await cluster.clock.sleep(10.0)
            nodes = (await cluster.client.list(NODES)).items
            assert len(nodes) == 3 and all(is_true(node, "Ready") for node in nodes)
            assert not any(node["spec"].get("taints") for node in nodes)
            addresses = {each["address"] for node in nodes for each in node["status"]["addresses"]}
            assert len(addresses) == 6
            await provider.cleanup()
            await informers.get(NODES).stop()

        cluster.run(grow())
