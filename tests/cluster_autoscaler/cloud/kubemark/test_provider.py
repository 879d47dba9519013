"""The kubemark provider between two clusters: what it makes, what it removes, what it leaves alone."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from holokube.client.client import PatchType
from holokube.client.faulty import Faults
from holokube.client.resources import CONFIG_MAPS, NODES, PODS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS
from holokube.cluster_autoscaler.cloud.errors import CloudError, ErrorKind, OutOfResourcesError
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import GROUP_LABEL, controller_of
from holokube.cluster_autoscaler.cloud.kubemark.provider import build
from holokube.cluster_autoscaler.cloud.kubemark.templates import parse_templates
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, GpuConfig, InstanceState
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from tests.builders import config_map, node
from tests.cluster_autoscaler.cloud.kubemark.worlds import TEMPLATE, World, in_bare_world, in_world


def named(items: list[JsonObject]) -> list[str]:
    return sorted(item["metadata"]["name"] for item in items)


# Start


def test_what_is_missing_to_the_minimum_is_created_at_the_start() -> None:
    async def body(world: World) -> None:
        assert await world.group("a").target_size() == 3
        assert await world.group("b").target_size() == 0
        await world.settle()
        assert len(await world.ready()) == 3

    in_world("3:5:a", "0:5:b")(body)


def test_a_second_start_finds_the_minimum_and_creates_nothing() -> None:
    async def body(world: World) -> None:
        await world.settle()
        before = named(await world.controllers())
        await world.restart()
        await world.settle()
        assert named(await world.controllers()) == before

    in_world("3:5:a")(body)


def test_each_node_is_one_replication_controller_with_the_groups_label() -> None:
    async def body(world: World) -> None:
        await world.settle()
        (controller,) = await world.controllers()
        meta = controller["metadata"]
        assert meta["name"].startswith("a-")
        assert meta["labels"] == {GROUP_LABEL: "a", "name": meta["name"]}
        assert controller["spec"]["replicas"] == 1
        (pod,) = await world.hollow_pods()
        assert pod["metadata"]["labels"]["name"] == meta["name"] == controller_of(pod)
        assert pod["metadata"]["labels"][GROUP_LABEL] == "a"
        (found,) = (await world.nodes()).values()
        assert found["metadata"]["name"] == pod["metadata"]["name"]
        assert found["spec"]["providerID"] == f"kubemark://{pod['metadata']['name']}"
        assert found["metadata"]["labels"][GROUP_LABEL] == "a"

    in_world("1:5:a")(body)


def test_the_template_says_what_the_node_becomes() -> None:
    flags = (
        "- --node-labels=autoscaling.k8s.io/nodegroup=$(NODE_GROUP),zone=x",
        "- --register-with-taints=dedicated=lab:NoSchedule",
        "- --extended-resources=nvidia.com/gpu=2",
        "- --node-allocatable=cpu=3920m,memory=14Gi",
        "- --max-pods=32",
    )
    template = TEMPLATE.read_text().replace(
        "- --node-labels=autoscaling.k8s.io/nodegroup=$(NODE_GROUP)", "\n            ".join(flags)
    )

    async def body(world: World) -> None:
        await world.start_provider()
        expected = (await world.group("a").template_node_info()).node
        await world.group("a").increase_size(1)
        await world.settle()
        (made,) = (await world.nodes()).values()
        assert expected["status"]["capacity"] == made["status"]["capacity"] == {
            "cpu": "4", "memory": "16Gi", "ephemeral-storage": "200Gi", "pods": "32", "nvidia.com/gpu": "2",
        }  # fmt: skip
        assert expected["status"]["allocatable"] == made["status"]["allocatable"]
        assert made["status"]["allocatable"]["cpu"] == "3920m"
        assert expected["spec"]["taints"] == made["spec"]["taints"]
        assert made["metadata"]["labels"]["zone"] == "x"
        assert made["metadata"]["labels"] | {"kubernetes.io/hostname": "a-template"} == expected["metadata"]["labels"]

    in_bare_world("0:5:a", template=template)(body)


def test_templates_are_read_from_a_config_map() -> None:
    special = TEMPLATE.read_text().replace("cpu=4,memory=16Gi", "cpu=64,memory=512Gi")
    special = special.replace("name: hollow-node\nspec:", f"name: hollow-node\n  labels: {{{GROUP_LABEL}: big}}\nspec:")

    async def body(world: World) -> None:
        world.template_config_map = "templates"
        given = config_map("templates", "kubemark", **{"all.yaml": TEMPLATE.read_text(), "big.yaml": special})
        await world.clusters.external_client.create(CONFIG_MAPS, given)
        await world.start_provider()
        sizes = {
            group.id: (await group.template_node_info()).node["status"]["capacity"]["cpu"]
            for group in world.provider.node_groups()
        }
        assert sizes == {"small": "4", "big": "64"}

    in_bare_world("0:5:small", "0:5:big")(body)


def test_a_missing_config_map_is_named() -> None:
    async def body(world: World) -> None:
        world.template_config_map = "templates"
        with pytest.raises(CloudError, match="no ConfigMap kubemark/templates") as caught:
            await world.start_provider()
        assert caught.value.kind is ErrorKind.CONFIGURATION

    in_bare_world("0:5:a")(body)


def test_without_any_template_the_start_fails_and_says_what_to_do() -> None:
    async def body(world: World) -> None:
        with pytest.raises(CloudError, match="group a: there is no template") as caught:
            await world.start_provider()
        assert caught.value.kind is ErrorKind.CONFIGURATION
        assert f"{GROUP_LABEL}=a" in caught.value.hint

    in_bare_world("0:5:a")(body)


def test_a_controller_without_replicas_is_a_template_and_no_node() -> None:
    async def body(world: World) -> None:
        template = controller_from(TEMPLATE.read_text(), "a")
        await world.clusters.external_client.create(REPLICATION_CONTROLLERS, template)
        await world.start_provider()
        assert await world.group("a").target_size() == 0
        await world.group("a").increase_size(2)
        await world.settle()
        assert len(await world.ready()) == 2
        await world.group("a").delete_nodes([*(await world.nodes()).values()])
        await world.settle()
        assert named(await world.controllers()) == ["hollow-node"]
        # The template is still there for the next process.
        await world.restart()
        await world.group("a").increase_size(1)
        assert await world.group("a").target_size() == 1

    in_bare_world("0:5:a")(body)


def controller_from(text: str, group: str, replicas: int = 0) -> JsonObject:
    (template,) = parse_templates(text, "test")
    made = template.controller("hollow-node", group, "kubemark")
    return {**made, "spec": {**made["spec"], "replicas": replicas}}


def test_an_existing_hollow_node_is_the_template_of_its_group_and_of_one_that_is_empty() -> None:
    async def body(world: World) -> None:
        await world.clusters.external_client.create(
            REPLICATION_CONTROLLERS, controller_from(TEMPLATE.read_text(), "a", replicas=1)
        )
        await world.start_provider()
        for name in ("a", "b"):
            await world.group(name).increase_size(1)
        await world.settle()
        labels = [found["metadata"]["labels"][GROUP_LABEL] for found in (await world.nodes()).values()]
        assert sorted(labels) == ["a", "a", "b"]

    in_bare_world("0:5:a", "0:5:b")(body)


@pytest.mark.parametrize("name", ["Workers", "arn:aws:group", "a" * 55, "-a"])
def test_a_name_that_cannot_be_a_label_and_a_pods_name_is_refused(name: str) -> None:
    async def body(world: World) -> None:
        with pytest.raises(CloudError, match="cannot be a group of kubemark"):
            await world.start_provider()

    in_bare_world(f"0:5:{name}", template=TEMPLATE.read_text())(body)


# Restarts and failures


def test_a_restart_in_the_middle_of_an_increase_loses_nothing() -> None:
    async def body(world: World) -> None:
        increase = asyncio.create_task(world.group("a").increase_size(20))
        while not await world.controllers():  # noqa: ASYNC110 - the moment is what the test is about
            await asyncio.sleep(0)
        increase.cancel()
        await asyncio.wait({increase})
        assert await world.group("a").target_size() == len(await world.controllers())
        await world.restart()
        there = len(await world.controllers())
        assert 0 < there <= 20
        assert await world.group("a").target_size() == there
        await world.settle()
        assert len(await world.ready()) == there
        assert len(await world.group("a").nodes()) == there

    in_world("0:20:a")(body)


def test_a_node_goes_although_the_provider_that_removed_it_is_gone() -> None:
    async def body(world: World) -> None:
        await world.group("a").increase_size(3)
        await world.settle()
        first, *rest = (await world.nodes()).values()
        await world.group("a").delete_nodes([first])
        await world.restart()
        await world.settle()
        assert sorted(await world.nodes()) == named(rest)

    in_world("0:5:a")(body)


def test_a_node_that_is_not_ours_is_never_taken_away_although_it_is_not_ready() -> None:
    async def body(world: World) -> None:
        client = world.clusters.kubemark_client
        ready = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": ""}]
        for name, provider_id, label in (
            ("stranger", "gce://stranger", "a"), ("other", "kubemark://other", "elsewhere"),
            ("unlabelled", "kubemark://unlabelled", ""), ("renamed", "kubemark://somebody", "a"),
        ):  # fmt: skip
            made = node(name, **({GROUP_LABEL: label} if label else {}), **{"holokube.dev/fault": "silent"})
            await client.create(NODES, {**made, "spec": {"providerID": provider_id}})
            await client.patch_status(NODES, name, {"status": {"conditions": ready}}, type=PatchType.STRATEGIC)
        await world.provider.refresh()
        await world.settle()
        assert sorted(await world.nodes()) == ["other", "renamed", "stranger", "unlabelled"]

    in_world("0:5:a")(body)


def test_lost_answers_and_refusals_are_survived() -> None:
    async def body(world: World) -> None:
        world.external.faults = Faults(
            timeout_after=0.1, internal_error=0.1, too_many_requests=0.1, conflict=0.1, answer_timeout_s=2.0
        )
        group = world.group("a")
        # Whatever an attempt comes to, the target tells what is left to ask for.
        while missing := 12 - await group.target_size():
            with suppress(CloudError):
                await group.increase_size(missing)
            await world.settle()
        assert len(await world.controllers()) == 12
        doomed = [*(await world.nodes()).values()][:7]
        while await group.target_size() > 5:
            with suppress(CloudError):
                await group.delete_nodes(doomed)
            await world.settle()
        assert await group.target_size() == 5
        assert len(await world.controllers()) == len(await world.nodes()) == 5
        assert world.external.injected.total() > 5

    in_world("0:20:a")(body)


def test_an_increase_that_fails_halfway_tells_how_far_it_came() -> None:
    async def body(world: World) -> None:
        await limit_controllers(world, 3)
        with pytest.raises(OutOfResourcesError, match=r"made 3 of 5: .*exceeded quota"):
            await world.group("a").increase_size(5)
        assert await world.group("a").target_size() == 3 == len(await world.controllers())

    in_world("0:20:a")(body)


def test_all_or_nothing_is_nothing_when_one_fails() -> None:
    async def body(world: World) -> None:
        await limit_controllers(world, 3)
        with pytest.raises(OutOfResourcesError):
            await world.group("a").atomic_increase_size(5)
        assert await world.group("a").target_size() == 0
        await world.settle()
        assert await world.controllers() == []

    in_world("0:20:a")(body)


async def limit_controllers(world: World, number: int) -> None:
    quota = {
        "metadata": {"name": "q", "namespace": "kubemark"}, "spec": {"hard": {"replicationcontrollers": str(number)}},
    }  # fmt: skip
    await world.clusters.external_client.create(RESOURCE_QUOTAS, quota)
    await world.clock.sleep(10.0)


# Machines


def test_a_machine_is_being_created_then_runs_then_is_being_deleted() -> None:
    async def body(world: World) -> None:
        await world.hold()
        await world.group("a").increase_size(1)
        assert [instance.state for instance in await world.group("a").nodes()] == [InstanceState.CREATING]
        await world.release()
        await world.settle()
        assert [instance.state for instance in await world.group("a").nodes()] == [InstanceState.RUNNING]
        (pod,) = await world.hollow_pods()
        finalizers = {"metadata": {"finalizers": ["test.example/keep"]}}
        await world.clusters.external_client.patch(PODS, pod["metadata"]["name"], finalizers, namespace="kubemark")
        await world.group("a").delete_nodes([*(await world.nodes()).values()])
        await world.settle()
        (instance,) = await world.group("a").nodes()
        assert instance.state is InstanceState.DELETING and not instance.is_expected_to_register
        assert await world.group("a").target_size() == 0

    in_world("0:5:a")(body)


def test_a_pod_that_was_replaced_does_not_take_its_successor_with_it() -> None:
    async def body(world: World) -> None:
        await world.settle()
        (old,) = (await world.nodes()).values()
        await world.clusters.external_client.delete(PODS, old["metadata"]["name"], "kubemark")
        await world.clock.sleep(5.0)
        assert old["metadata"]["name"] in await world.nodes()
        assert not await world.provider.has_instance(old)
        await world.group("a").force_delete_nodes([old])
        await world.settle()
        assert await world.group("a").target_size() == 1
        (new,) = await world.nodes()
        assert new != old["metadata"]["name"]

    in_world("1:5:a")(body)


def test_one_node_of_a_controller_with_several_cannot_be_deleted() -> None:
    async def body(world: World) -> None:
        await world.clusters.external_client.create(
            REPLICATION_CONTROLLERS, controller_from(TEMPLATE.read_text(), "a", replicas=3)
        )
        await world.settle()
        assert await world.group("a").target_size() == 3
        with pytest.raises(CloudError, match="has 3 replicas"):
            await world.group("a").delete_nodes([*(await world.nodes()).values()][:1])
        await world.settle()
        assert len(await world.ready()) == 3

    in_world("0:5:a")(body)


def test_a_node_whose_machine_is_gone_is_still_known_by_its_label() -> None:
    async def body(world: World) -> None:
        await world.settle()
        (first, *_) = (await world.nodes()).values()
        await world.group("a").force_delete_nodes([first])
        await world.clock.sleep(10.0)
        assert await world.hollow_pods() == []
        found = await world.provider.node_group_for_node(first)
        assert found is not None and found.id == "a"
        # Asked again, there is nothing left to do.
        await world.group("a").delete_nodes([first])
        assert await world.group("a").target_size() == 0

    in_world("1:5:a")(body)


def test_accelerators_are_told_by_label_or_device() -> None:
    async def body(world: World) -> None:
        provider: CloudProvider = world.provider
        assert "nvidia-tesla-v100" in provider.available_gpu_types()
        plain = node("n")
        assert provider.node_gpu_config(plain) is None
        labelled = node("n", **{provider.gpu_label: "nvidia-tesla-v100"})
        assert provider.node_gpu_config(labelled) == GpuConfig(
            provider.gpu_label, "nvidia-tesla-v100", "nvidia.com/gpu"
        )
        device = {**plain, "status": {"allocatable": {"amd.com/gpu": "1", "nvidia.com/gpu": "0"}}}
        assert provider.node_gpu_config(device) == GpuConfig(provider.gpu_label, "", "amd.com/gpu")

    in_world("0:5:a")(body)


def test_informers_that_others_share_may_be_started_later() -> None:
    async def body(world: World) -> None:
        clusters = world.clusters
        shared = InformerSet(world.clock, clusters.kubemark_client, world.rng.fork("shared"))
        provider = await build(
            world.clock, clusters.external_client, clusters.kubemark_client, shared, world.rng.fork("sharing"),
            nodes=world.specs, template_manifest=world.template,
        )  # fmt: skip
        async with provider:
            informer = shared.get(NODES)
            informer.start()
            await world.settle()
            (group,) = provider.node_groups()
            assert [instance.state for instance in await group.nodes()] == [InstanceState.RUNNING]
            await group.force_delete_nodes([*(await world.nodes()).values()])
            await world.settle()
            assert await world.nodes() == {}
        assert informer.has_synced
        await informer.stop()

    in_bare_world("1:5:a", template=TEMPLATE.read_text())(body)
