from __future__ import annotations

import pytest

from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.settings import Settings
from holokube.karpenter.state.collector import pool_costs
from holokube.testing import Cluster
from tests.karpenter.lab import lab, node_pool, small_catalog, workload
from tests.karpenter.objects import claim, node


def test_what_is_there_is_told_at_the_scrape() -> None:
    async def scenario() -> None:
        async with lab(cluster, node_pool(limits={"cpu": "100"}), workload("web", 10)) as here:
            await here.until_running(10)
            await cluster.clock.sleep(100)
            value = here.running.value
            assert value("karpenter_cluster_state_node_count") == 2
            assert value("karpenter_cluster_state_synced") == 1
            assert value("karpenter_nodepools_limit", nodepool="default", resource_type="cpu") == 100
            assert value("karpenter_nodepools_usage", nodepool="default", resource_type="cpu") == 10
            assert value("karpenter_nodepools_cost_total", nodepool="default") == pytest.approx(0.46)
            assert value("karpenter_nodes_allocatable", resource_type="cpu") == pytest.approx(9.8)
            assert value("karpenter_nodes_total_pod_requests", resource_type="cpu") == pytest.approx(9)
            assert value("karpenter_nodes_system_overhead", resource_type="cpu") == pytest.approx(0.2)
            assert value("karpenter_nodes_current_lifetime_seconds") >= 200
            assert value("karpenter_pods_state", phase="Running", nodepool="default") == 10
            assert value("karpenter_cluster_utilization_percent", resource_type="cpu") == pytest.approx(100 * 9 / 9.8)
            assert value("karpenter_nodepools_allowed_disruptions", reason="empty") == 2
            assert value("karpenter_pods_bound_duration_seconds_count") == 10
            assert value("karpenter_pods_startup_duration_seconds_count") == 10
            assert value("karpenter_pods_scheduling_decision_duration_seconds_count") == 10

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario)


def test_who_wants_no_metrics_of_the_cluster_gets_none() -> None:
    async def scenario() -> None:
        settings = Settings(disable_cluster_state_observability=True)
        async with lab(cluster, node_pool(), workload("web", 1), settings=settings) as here:
            await here.until_running(1)
            names = {family.name for family in here.running.metrics.registry.collect()}
            assert "karpenter_nodeclaims_created" in names
            assert "karpenter_cluster_state_node_count" not in names

    with Cluster(nodes=0) as cluster:
        cluster.run(scenario)


def test_a_pool_costs_what_its_nodes_do_at_their_place() -> None:
    def made(kind: str, zone: str) -> StateNode:
        labels = {"karpenter.sh/nodepool": "p", "node.kubernetes.io/instance-type": kind,
                  "topology.kubernetes.io/zone": zone, "karpenter.sh/capacity-type": "on-demand",
                  "karpenter.sh/registered": "true"}  # fmt: skip
        return StateNode(node(labels=labels), claim(labels=labels))

    nodes = [made("small", "zone-a"), made("large", "zone-b"), made("unknown", "zone-a"), made("small", "nowhere")]
    assert pool_costs(nodes, {"p": small_catalog().types, "q": ()}) == {"p": pytest.approx(0.46), "q": 0.0}
