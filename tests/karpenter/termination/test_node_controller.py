from __future__ import annotations

from collections.abc import Awaitable, Callable

from holokube.client.resources import NODES, PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS
from holokube.karpenter.api.labels import DISRUPTED_TAINT, EXCLUDE_BALANCERS_LABEL
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.termination.node_controller import leaving
from holokube.kube.conditions import get_condition
from holokube.testing import Cluster
from tests.karpenter.lab import lab, node_pool, workload
from tests.karpenter.objects import node


def play(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def test_a_leaving_node_gets_the_taint_in_place_of_others_of_its_key() -> None:
    other = {"key": DISRUPTED_TAINT.key, "effect": "NoExecute"}
    mine = {"key": "mine", "effect": "NoSchedule"}
    made = leaving(node(taints=[other, mine]))
    assert made["spec"]["taints"] == [mine, DISRUPTED_TAINT.to_json()]
    assert made["metadata"]["labels"][EXCLUDE_BALANCERS_LABEL] == "karpenter"
    assert leaving(made) is made


def test_a_drain_takes_five_seconds_at_least_and_then_all_stages_are_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"consolidateAfter": "Never"}), workload("web", 1)) as here:
            await here.until_running(1)
            await here.scale("web", 0)
            await here.until_running(0)
            (claim,) = await here.claims()
            name = claim["metadata"]["name"]
            await cluster.client.delete(NODE_CLAIMS, name)
            await cluster.clock.sleep(3)
            draining = get_condition(await here.claim(name), "Drained")
            assert draining is not None
            assert (draining["status"], draining["reason"]) == ("Unknown", "Draining")
            assert 5 <= 3 + await here.until_nodes(0, within_s=30) <= 10
            assert here.running.value("karpenter_nodes_drained_total") == 1

    play(scenario)


def test_a_node_waits_for_its_volumes_until_somebody_detaches_them() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(disruption={"consolidateAfter": "Never"}), workload("web", 1)) as here:
            await here.until_running(1)
            (made,) = await here.nodes()
            volume = {
                "metadata": {"name": "pv"},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
            }
            await cluster.client.create(PERSISTENT_VOLUMES, volume)
            await cluster.client.create(VOLUME_ATTACHMENTS, {
                "metadata": {"name": "va"},
                "spec": {
                    "attacher": "a", "nodeName": made["metadata"]["name"], "source": {"persistentVolumeName": "pv"},
                },
            })  # fmt: skip
            await here.scale("web", 0)
            await here.until_running(0)
            await cluster.client.delete(NODES, made["metadata"]["name"])
            await cluster.clock.sleep(120)
            (claim,) = await here.claims()
            waiting = get_condition(claim, "VolumesDetached")
            assert waiting is not None
            assert waiting["reason"] == "AwaitingVolumeDetachment"
            assert "AwaitingVolumeDetachment" in await here.reasons("Node")
            await cluster.client.delete(VOLUME_ATTACHMENTS, "va")
            await here.until_nodes(0, within_s=30)

    play(scenario)


def test_a_protected_pod_holds_its_node_until_the_protection_ends() -> None:
    async def scenario(cluster: Cluster) -> None:
        made = workload("web", 1)
        made["spec"]["template"]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "20m"}
        async with lab(cluster, node_pool(disruption={"consolidateAfter": "Never"}), made) as here:
            await here.until_running(1)
            (pod,) = await here.pods()
            (old,) = await here.nodes()
            await cluster.client.delete(NODES, old["metadata"]["name"])
            await cluster.clock.sleep(1100)
            assert [one["metadata"]["uid"] for one in await here.pods()] == [pod["metadata"]["uid"]]

            async def has_moved() -> bool:
                found = await cluster.client.list(PODS)
                return all(one["metadata"]["uid"] != pod["metadata"]["uid"] for one in found.items)

            await here.until(has_moved, within_s=200)
            await here.until_running(1, within_s=120)

    play(scenario)
