"""Kubemark on one machine: two clusters in one process, and the way of a hollow node through both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import HolokubeError
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.resources import DEPLOYMENTS, NODES, PODS, REPLICATION_CONTROLLERS
from holokube.cluster import LivingOptions, Part
from holokube.cluster.kubemark import TwoClusterOptions, TwoClusters
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import GROUP_LABEL
from holokube.cluster_autoscaler.cloud.kubemark.templates import parse_templates
from holokube.hollow.profile import named_profile
from holokube.kube.conditions import get_condition, is_true
from holokube.kube.types import JsonObject
from holokube.testing.cluster import shared_catalog
from tests.builders import deployment
from tests.cluster_autoscaler.cloud.kubemark.worlds import TEMPLATE, World, in_world


def test_twenty_nodes_come_run_pods_and_go_with_everything_that_was_made_for_them() -> None:
    async def body(world: World) -> None:
        group, kubemark = world.group("a"), world.clusters.kubemark_client
        await group.increase_size(20)
        assert await group.target_size() == 20
        await world.settle()
        assert len(await world.ready()) == len(await group.nodes()) == 20
        await kubemark.create(DEPLOYMENTS, deployment(replicas=40))
        await world.clock.sleep(30.0)
        pods = (await kubemark.list(PODS)).items
        assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 40
        assert {pod["spec"]["nodeName"] for pod in pods} <= set(await world.ready())
        # The pods of the hollow nodes themselves run in the other cluster.
        assert not any(pod["metadata"]["namespace"] == "kubemark" for pod in pods)

        await world.restart()
        doomed = [*(await world.nodes()).values()][:15]
        await world.group("a").delete_nodes(doomed)
        assert await world.group("a").target_size() == 5
        await world.settle()
        gone = {node["metadata"]["name"] for node in doomed}
        assert len(await world.nodes()) == 5 and not gone & set(await world.nodes())
        assert len(await world.controllers()) == len(await world.hollow_pods()) == 5
        # Pods of nodes that are gone run elsewhere.
        await world.clock.sleep(120.0)
        pods = (await kubemark.list(PODS)).items
        assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 40

    in_world("0:20:a")(body)


def test_a_killed_hollow_pod_leaves_a_silent_node_and_a_new_one_takes_its_place() -> None:
    async def body(world: World) -> None:
        await world.settle()
        (old,) = await world.ready()
        await world.clusters.external_client.delete(PODS, old, "kubemark", grace_s=0)
        await world.clock.sleep(20.0)
        assert len(await world.ready()) == 2, "the control plane has not noticed the silence of the old one yet"
        seen = await ready_states(world, old, for_s=60.0)
        assert seen[0] == "True" and "Unknown" in seen, seen
        await world.clock.sleep(10.0)
        (new,) = await world.ready()
        assert new != old and list(await world.nodes()) == [new]
        assert await world.group("a").target_size() == 1

    in_world("1:5:a")(body)


async def ready_states(world: World, name: str, *, for_s: float) -> list[str]:
    """What the Ready condition of a node said, one after the other."""
    seen: list[str] = []

    def on_node(_type: str, _old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None and new["metadata"]["name"] == name:
            condition = get_condition(new, "Ready") or {}
            if seen[-1:] != [condition.get("status", "")]:
                seen.append(condition.get("status", ""))

    remove = world.clusters.kubemark.informers.get(NODES).add_handler(on_node)
    await world.clock.sleep(for_s)
    remove()
    return seen


Body = Callable[[TwoClusters, VirtualClock], Awaitable[None]]


def with_clusters(body: Body, options: TwoClusterOptions | None = None) -> None:
    async def main(clock: VirtualClock) -> None:
        clusters = TwoClusters.in_process(clock, Rng(1), options, catalog=shared_catalog())
        await clusters.start()
        try:
            await body(clusters, clock)
        finally:
            await clusters.stop()

    run_virtual(main)


def hollow_controller(name: str, text: str | None = None) -> JsonObject:
    (template,) = parse_templates(text or TEMPLATE.read_text(), "test")
    return template.controller(name, "g", "kubemark")


def test_without_a_provider_a_controller_made_by_hand_is_a_node_too() -> None:
    async def body(clusters: TwoClusters, clock: VirtualClock) -> None:
        await clusters.external_client.create(REPLICATION_CONTROLLERS, hollow_controller("by-hand"))
        await clock.sleep(30.0)
        (node,) = (await clusters.kubemark_client.list(NODES)).items
        assert node["metadata"]["name"].startswith("by-hand-") and is_true(node, "Ready")
        assert node["metadata"]["labels"][GROUP_LABEL] == "g"

    with_clusters(body)


def test_pods_that_are_no_hollow_nodes_are_left_alone() -> None:
    async def body(clusters: TwoClusters, clock: VirtualClock) -> None:
        await clusters.external_client.create(DEPLOYMENTS, deployment(replicas=2))
        other = hollow_controller("other", TEMPLATE.read_text().replace("--node-name=$(NODE_NAME)", "--register=1"))
        await clusters.external_client.create(REPLICATION_CONTROLLERS, other)
        await clock.sleep(30.0)
        assert {pod["status"]["phase"] for pod in (await clusters.external_client.list(PODS)).items} == {"Running"}
        assert (await clusters.kubemark_client.list(NODES)).items == []

    with_clusters(body)


def test_a_pod_that_takes_its_time_is_a_node_only_when_it_runs() -> None:
    async def body(clusters: TwoClusters, clock: VirtualClock) -> None:
        await clusters.external_client.create(REPLICATION_CONTROLLERS, hollow_controller("slow"))
        await clock.sleep(0.2)
        assert (await clusters.kubemark_client.list(NODES)).items == []
        await clock.sleep(60.0)
        assert len((await clusters.kubemark_client.list(NODES)).items) == 1

    external = LivingOptions(profile=named_profile("kubelet"))
    with_clusters(body, TwoClusterOptions(external=external))


def test_a_pod_that_ends_before_the_fleet_has_seen_its_node_leaves_a_silent_one() -> None:
    async def body(clusters: TwoClusters, clock: VirtualClock) -> None:
        client = clusters.external_client
        await client.create(REPLICATION_CONTROLLERS, hollow_controller("brief"))
        while not (await clusters.kubemark_client.list(NODES)).items:
            await clock.sleep(0.0)
        await client.delete(REPLICATION_CONTROLLERS, "brief", "kubemark", propagation="Foreground")
        await clock.sleep(90.0)
        (node,) = (await clusters.kubemark_client.list(NODES)).items
        assert not is_true(node, "Ready")
        assert (await client.list(PODS, "kubemark")).items == []

    with_clusters(body)


def test_a_kubemark_cluster_needs_somebody_to_speak_for_its_nodes() -> None:
    async def main(clock: VirtualClock) -> None:
        options = TwoClusterOptions(kubemark=LivingOptions(parts=frozenset({Part.CONTROLLERS})))
        with pytest.raises(HolokubeError, match="has no fleet"):
            TwoClusters.in_process(clock, Rng(1), options, catalog=shared_catalog())

    run_virtual(main)
