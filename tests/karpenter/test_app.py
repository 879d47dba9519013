"""Karpenter as a whole, on virtual time: pods come, nodes come; pods go, nodes go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holokube.client.resources import DAEMON_SETS, NODES, POD_DISRUPTION_BUDGETS, PODS
from holokube.karpenter.api.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.kube.conditions import get_condition
from holokube.kube.types import JsonObject
from holokube.testing import Cluster
from tests.karpenter.lab import Lab, lab, node_pool, workload

Scenario = Callable[[Cluster], Awaitable[None]]


def play(scenario: Scenario) -> None:
    with Cluster(nodes=0) as cluster:
        cluster.run(scenario, cluster)


def annotated(made: JsonObject, **annotations: str) -> JsonObject:
    made["spec"]["template"]["metadata"]["annotations"] = annotations
    return made


def budget(app: str, **spec: Any) -> JsonObject:
    return {
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


async def uids(here: Lab) -> set[str]:
    return {pod["metadata"]["uid"] for pod in await here.pods()}


def test_pending_pods_get_nodes_and_run() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 10)) as here:
            assert await here.until_running(10) < 30
            await here.assert_nothing_leaked()
            for claim in await here.claims():
                conditions = {one["type"]: one["status"] for one in claim["status"]["conditions"]}
                assert conditions["Ready"] == "True"
            assert "Nominated" in await here.reasons("Pod")
            assert here.running.value("karpenter_nodeclaims_created_total", reason="provisioned") == 2
            await cluster.clock.sleep(6)
            pool = await here.pool()
            assert (pool["status"]["nodes"], pool["status"]["resources"]["cpu"]) == (2, "10")

    play(scenario)


def test_nodes_without_pods_are_deleted_and_nothing_is_left() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 10)) as here:
            await here.until_running(10)
            await here.scale("web", 0)
            await here.until_nodes(0, within_s=180)
            assert "DisruptionTerminating" in await here.reasons("Node")
            value = here.running.value
            assert value("karpenter_voluntary_disruption_decisions_total", decision="delete", reason="empty") == 1
            assert value("karpenter_nodeclaims_disrupted_total", reason="empty") == 2
            assert value("karpenter_nodes_terminated_total") == value("karpenter_nodes_created_total") == 2

    play(scenario)


def test_a_node_that_is_too_large_is_replaced_before_it_goes() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 8)) as here:
            await here.until_running(8)
            assert await here.types() == ["large"]
            await here.scale("web", 2)

            async def is_small() -> bool:
                return await here.types() == ["small"] and await here.running_pods() == 2

            await here.until(is_small, within_s=600)
            await here.assert_nothing_leaked()
            value = here.running.value
            assert value("karpenter_voluntary_disruption_decisions_total", decision="replace") == 1
            assert value("karpenter_nodeclaims_created_total", reason="underutilized") == 1

    play(scenario)


def test_a_pod_that_must_not_be_disturbed_keeps_its_node() -> None:
    async def scenario(cluster: Cluster) -> None:
        kept = annotated(workload("kept", 1), **{DO_NOT_DISRUPT: "true"})
        async with lab(cluster, node_pool(), workload("web", 7), kept) as here:
            await here.until_running(8)
            await here.scale("web", 0)
            await here.until_running(1)
            (pod,) = await here.pods()
            await cluster.clock.sleep(1800)
            assert await uids(here) == {pod["metadata"]["uid"]}
            assert len(await here.nodes()) == 1
            assert "DisruptionBlocked" in await here.reasons("Node")

    play(scenario)


def test_a_disruption_budget_of_pods_keeps_their_node() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 7), workload("kept", 1)) as here:
            await cluster.client.create(POD_DISRUPTION_BUDGETS, budget("kept", maxUnavailable=0))
            await here.until_running(8)
            await here.scale("web", 0)
            await here.until_running(1)
            before = await uids(here)
            await cluster.clock.sleep(1800)
            assert await uids(here) == before
            await cluster.client.delete(POD_DISRUPTION_BUDGETS, "kept", "default")

            async def has_moved() -> bool:
                return await uids(here) != before and await here.running_pods() == 1

            await here.until(has_moved, within_s=900)

    play(scenario)


def test_a_pool_whose_budget_is_zero_loses_no_node() -> None:
    async def scenario(cluster: Cluster) -> None:
        pool = node_pool(disruption={"budgets": [{"nodes": "0"}]})
        async with lab(cluster, pool, workload("web", 4)) as here:
            await here.until_running(4)
            await here.scale("web", 0)
            await cluster.clock.sleep(900)
            assert len(await here.nodes()) == 1
            await cluster.client.patch(
                NODE_POOLS, "default", {"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}
            )
            await here.until_nodes(0, within_s=120)

    play(scenario)


def test_an_expired_claim_goes_although_its_pods_run_and_they_run_again_elsewhere() -> None:
    async def scenario(cluster: Cluster) -> None:
        pool = node_pool(expireAfter="1h", disruption={"consolidateAfter": "Never"})
        async with lab(cluster, pool, workload("web", 2)) as here:
            await here.until_running(2)
            (first,) = await here.claims()
            await cluster.clock.sleep(3500)
            assert [claim["metadata"]["name"] for claim in await here.claims()] == [first["metadata"]["name"]]

            async def is_another() -> bool:
                names = [claim["metadata"]["name"] for claim in await here.claims()]
                return len(names) == 1 and names != [first["metadata"]["name"]] and await here.running_pods() == 2

            await here.until(is_another, within_s=300)
            await here.assert_nothing_leaked()
            assert here.running.value("karpenter_nodeclaims_disrupted_total", reason="expired") == 1
            assert here.running.value("karpenter_pods_drained_total") == 2

    play(scenario)


def test_a_changed_template_replaces_the_nodes_made_from_the_old_one() -> None:
    async def scenario(cluster: Cluster) -> None:
        pool = node_pool(disruption={"consolidateAfter": "Never"})
        async with lab(cluster, pool, workload("web", 2)) as here:
            await here.until_running(2)
            (old,) = await here.claims()
            change = {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}}
            await cluster.client.patch(NODE_POOLS, "default", change)

            async def is_blue() -> bool:
                nodes = await here.nodes()
                return len(nodes) == 1 and nodes[0]["metadata"]["labels"].get("team") == "blue"

            await here.until(is_blue, within_s=300)
            await here.until_running(2)
            await here.assert_nothing_leaked()
            assert old["metadata"]["name"] not in {claim["metadata"]["name"] for claim in await here.claims()}
            assert here.running.value("karpenter_nodeclaims_disrupted_total", reason="drifted") == 1

    play(scenario)


def test_the_grace_period_of_a_claim_ends_a_drain_that_a_budget_holds_up() -> None:
    async def scenario(cluster: Cluster) -> None:
        pool = node_pool(terminationGracePeriod="5m", disruption={"consolidateAfter": "Never"})
        held = workload("held", 1, terminationGracePeriodSeconds=30)
        async with lab(cluster, pool, held) as here:
            await cluster.client.create(POD_DISRUPTION_BUDGETS, budget("held", maxUnavailable=0))
            await here.until_running(1)
            (claim,) = await here.claims()
            (pod,) = await here.pods()
            started_s = cluster.clock.monotonic()
            await cluster.client.delete(NODE_CLAIMS, claim["metadata"]["name"])
            await cluster.clock.sleep(240)
            assert pod["metadata"]["uid"] in await uids(here)
            assert DISRUPTED_TAINT.to_json() in (await here.nodes())[0]["spec"]["taints"]
            assert "FailedDraining" in await here.reasons("Node")

            async def is_gone() -> bool:
                return claim["metadata"]["name"] not in {one["metadata"]["name"] for one in await here.claims()}

            await here.until(is_gone)
            # Thirty seconds before the end the pod's own grace period would reach beyond it.
            assert 270 <= cluster.clock.monotonic() - started_s <= 310
            assert "Disrupted" in await here.reasons("Pod")
            await here.until_running(1)

    play(scenario)


def test_deleting_a_node_ends_its_claim_and_its_pods_find_another() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(), workload("web", 2)) as here:
            await here.until_running(2)
            (node,) = await here.nodes()
            await cluster.client.delete(NODES, node["metadata"]["name"])

            async def is_another() -> bool:
                names = [one["metadata"]["name"] for one in await here.nodes()]
                return len(names) == 1 and names != [node["metadata"]["name"]] and await here.running_pods() == 2

            await here.until(is_another, within_s=300)
            await here.assert_nothing_leaked()

    play(scenario)


def test_a_limit_stops_a_pool_and_the_pods_are_told() -> None:
    async def scenario(cluster: Cluster) -> None:
        async with lab(cluster, node_pool(limits={"cpu": "4"}), workload("web", 10)) as here:
            await cluster.clock.sleep(120)
            used = sum(int(node["status"]["capacity"]["cpu"]) for node in await here.nodes())
            assert 0 < used <= 4
            assert "FailedScheduling" in await here.reasons("Pod")
            waiting = [pod for pod in await here.pods() if not pod["spec"].get("nodeName")]
            assert waiting

    play(scenario)


def test_a_pool_without_its_node_class_is_not_ready_and_launches_nothing() -> None:
    async def scenario(cluster: Cluster) -> None:
        pool = node_pool()
        pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "missing"
        async with lab(cluster, pool, workload("web", 1)) as here:
            await cluster.clock.sleep(60)
            condition = get_condition(await here.pool(), "NodeClassReady")
            assert condition is not None
            assert (condition["status"], condition["reason"]) == ("False", "NodeClassNotFound")
            assert await here.claims() == []

    play(scenario)


def test_a_pod_that_keeps_off_our_nodes_is_left_alone_without_a_word() -> None:
    async def scenario(cluster: Cluster) -> None:
        term = {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        async with lab(cluster, node_pool(), workload("own", 1, affinity={"nodeAffinity": required})) as here:
            await cluster.clock.sleep(60)
            assert await here.claims() == []
            assert await here.reasons("Pod") == []
            assert here.running.value("karpenter_scheduler_ignored_pods_count") == 1

    play(scenario)


def test_pods_of_daemon_sets_ask_for_no_node_but_count_on_each() -> None:
    async def scenario(cluster: Cluster) -> None:
        daemon = {
            "metadata": {"name": "agent", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {
                    "metadata": {"labels": {"app": "agent"}},
                    "spec": {"containers": [
                        {"name": "c", "image": "registry.example/agent:1", "resources": {"requests": {"cpu": "1"}}}
                    ]},
                },
            },
        }  # fmt: skip
        async with lab(cluster, node_pool()) as here:
            await cluster.client.create(DAEMON_SETS, daemon)
            await cluster.clock.sleep(30)
            assert await here.claims() == []
            await here.apply(workload("web", 1, cpu="1500m"))
            await here.until_running(2)
            (claim,) = await here.claims()
            assert claim["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "medium"
            assert claim["spec"]["resources"]["requests"]["cpu"] == "2500m"
            await cluster.client.delete(PODS, next(
                pod["metadata"]["name"] for pod in await here.pods() if pod["metadata"]["labels"]["app"] == "web"
            ), "default")  # fmt: skip
            await here.until_running(2)

    play(scenario)
