"""A fleet whose nodes and pods live by Stages; and what else a fleet does for critical pods, images and reboots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, NODES, PODS
from holokube.hollow.fleet import FleetOptions
from holokube.hollow.profile import KUBELET, NodeProfile, Profile
from holokube.hollow.stages.lives import STAGES
from holokube.kube.conditions import is_true
from holokube.testing import Cluster
from tests.builders import pod
from tests.hollow.stages.samples import COMPLETE, DELETE, HEARTBEAT, INITIALIZE, START, stage, stages
from tests.hollow.worlds import RunningFleet, fake_node, start_fleet

SELECTOR = "kwok.x-k8s.io/node=fake"
CRD = {
    "metadata": {"name": "stages.kwok.x-k8s.io"},
    "spec": {
        "group": "kwok.x-k8s.io", "scope": "Cluster", "names": {"plural": "stages", "kind": "Stage"},
        "versions": [{
            "name": "v1alpha1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }],
    },
}  # fmt: skip


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


async def begin(cluster: Cluster, **options: Any) -> RunningFleet:
    return await start_fleet(cluster.clock, cluster.client, FleetOptions(annotation_selector=SELECTOR, **options))


async def phase(cluster: Cluster, name: str) -> str:
    return str((await cluster.client.get(PODS, name, "default"))["status"]["phase"])


def test_nodes_and_pods_live_by_stages(cluster: Cluster) -> None:
    async def test() -> None:
        running = await begin(cluster, stages=stages(INITIALIZE, HEARTBEAT, START, COMPLETE, DELETE))
        await cluster.client.create(NODES, fake_node("n"))
        job = pod("job", node="n")
        job["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j"}]
        await cluster.client.create(PODS, pod("web", node="n"))
        await cluster.client.create(PODS, job)
        await cluster.clock.sleep(6)
        node = await cluster.client.get(NODES, "n")
        assert is_true(node, "Ready") and node["status"]["capacity"] == {"cpu": "1k"}
        assert await phase(cluster, "web") == "Running" and await phase(cluster, "job") == "Succeeded"
        first = node["status"]["conditions"][0]["lastHeartbeatTime"]
        await cluster.clock.sleep(60)
        node = await cluster.client.get(NODES, "n")
        assert node["status"]["conditions"][0]["lastHeartbeatTime"] > first
        assert running.transport.calls["patch nodes/status"] == 4
        assert running.transport.calls["patch pods/status"] == 3
        await cluster.client.delete(PODS, "web", "default")
        await cluster.clock.sleep(1)
        assert [p["metadata"]["name"] for p in (await cluster.client.list(PODS)).items] == ["job"]
        assert "Created" in [event["reason"] for event in (await cluster.client.list(EVENTS)).items]
        await running.end()

    cluster.run(test())


def test_writes_that_fail_are_tried_again(cluster: Cluster) -> None:
    async def test() -> None:
        faults = Faults(conflict=0.2, internal_error=0.2, timeout_before=0.05, timeout_after=0.1)
        transport = FaultyTransport(cluster.clock, cluster.client.transport, Rng(1), faults)
        options = FleetOptions(annotation_selector=SELECTOR, stages=stages(INITIALIZE, START, DELETE))
        for number in range(10):
            await cluster.client.create(NODES, fake_node(f"n{number}"))
            await cluster.client.create(PODS, pod(f"p{number}", node=f"n{number}"))
        running = await start_fleet(cluster.clock, Client(transport), options)
        await cluster.clock.sleep(300)
        assert [await phase(cluster, f"p{number}") for number in range(10)] == ["Running"] * 10
        assert all(is_true(node, "Ready") for node in (await cluster.client.list(NODES)).items)
        await running.end()

    cluster.run(test())


def test_a_kind_without_stages_keeps_the_built_in_life(cluster: Cluster) -> None:
    async def test() -> None:
        running = await begin(cluster, stages=stages(START))
        await cluster.client.create(NODES, fake_node("n"))
        await cluster.clock.sleep(1)
        node = await cluster.client.get(NODES, "n")
        assert is_true(node, "Ready") and node["status"]["capacity"]["cpu"] == "32"
        await running.end()

    cluster.run(test())


def test_stages_of_the_cluster_come_into_force_when_they_are_created(cluster: Cluster) -> None:
    async def test() -> None:
        await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        running = await begin(cluster, cluster_stages=True, stages=stages(INITIALIZE))
        await cluster.client.create(NODES, fake_node("n"))
        await cluster.client.create(PODS, pod("web", node="n"))
        await cluster.clock.sleep(5)
        assert await phase(cluster, "web") == "Pending"
        spec = {"resourceRef": {"kind": "Pod"}, "next": {"statusTemplate": "phase: Running"},
                "selector": {"matchExpressions": [{"key": ".status.phase", "operator": "In", "values": ["Pending"]}]}}
        await cluster.client.create(STAGES, {"metadata": {"name": "run"}, "spec": spec})
        await cluster.clock.sleep(5)
        assert await phase(cluster, "web") == "Running"
        await running.end()

    cluster.run(test())


def test_other_patches_and_finalizers_of_stages_arrive(cluster: Cluster) -> None:
    marked = stage(
        "mark",
        "selector: {matchExpressions: [{key: '.metadata.annotations.x', operator: DoesNotExist}]}\n"
        "next: {finalizers: {add: [{value: example.com/f}]}, patches: [{root: metadata, type: merge, "
        "template: 'annotations: {x: {{ .metadata.name }}}'}]}",
    )

    async def test() -> None:
        running = await begin(cluster, stages=stages(marked))
        await cluster.client.create(NODES, fake_node("n"))
        await cluster.client.create(PODS, pod("web", node="n"))
        await cluster.clock.sleep(5)
        meta = (await cluster.client.get(PODS, "web", "default"))["metadata"]
        assert meta["annotations"]["x"] == "web" and meta["finalizers"] == ["example.com/f"]
        await running.end()

    cluster.run(test())


def sized(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    return pod(name, node="n", containers=[{"name": "c", "image": f"i/{name}:1", "resources": resources}], **spec)


def test_a_critical_pod_takes_the_place_of_another(cluster: Cluster) -> None:
    async def test() -> None:
        profile = Profile("kubelet", KUBELET, NodeProfile(capacity={"cpu": "4", "pods": "10"}))
        running = await begin(cluster, profile=profile)
        await cluster.client.create(NODES, fake_node("n"))
        await cluster.client.create(PODS, sized("small", "1"))
        await cluster.client.create(PODS, sized("big", "3"))
        await cluster.clock.sleep(60)
        await cluster.client.create(PODS, sized("critical", "2", priorityClassName="system-node-critical"))
        await cluster.clock.sleep(60)
        assert [await phase(cluster, name) for name in ("small", "big", "critical")] == ["Running", "Failed", "Running"]
        status = (await cluster.client.get(PODS, "big", "default"))["status"]
        assert status["reason"] == "Preempting"
        assert any(c["type"] == "DisruptionTarget" for c in status["conditions"])
        await running.end()

    cluster.run(test())


def test_pulled_images_show_with_the_next_report(cluster: Cluster) -> None:
    async def test() -> None:
        profile = Profile(nodes=NodeProfile(images=True))
        running = await begin(cluster, profile=profile)
        await cluster.client.create(NODES, fake_node("n"))
        await cluster.client.create(PODS, sized("web", "1"))
        await cluster.clock.sleep(1000)
        (image,) = (await cluster.client.get(NODES, "n"))["status"]["images"]
        assert image["names"][1] == "i/web:1"
        await running.end()

    cluster.run(test())


def test_the_word_reboot_reboots_once(cluster: Cluster) -> None:
    async def test() -> None:
        running = await begin(cluster, profile=Profile(nodes=NodeProfile(reboot_s=5)))
        await cluster.client.create(NODES, fake_node("n"))
        await cluster.clock.sleep(5)

        async def boot() -> str:
            return str((await cluster.client.get(NODES, "n"))["status"]["nodeInfo"]["bootID"])

        boots = [await boot()]
        for value in ("reboot", None, "slow"):
            await cluster.client.patch(NODES, "n", {"metadata": {"annotations": {"holokube.dev/fault": value}}})
            await cluster.clock.sleep(60)
            boots.append(await boot())
        assert boots[0] != boots[1] == boots[2] == boots[3]
        await running.end()

    cluster.run(test())
