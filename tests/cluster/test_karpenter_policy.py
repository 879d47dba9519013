"""A living cluster whose nodes Karpenter makes and takes away."""

from __future__ import annotations

from typing import Any

from holokube.client.resources import DEPLOYMENTS, NODES, PODS
from holokube.cluster import LivingOptions
from holokube.cluster.karpenter_policy import KarpenterPolicy
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.testing.cluster import Cluster
from tests.builders import deployment


def sized(replicas: int, cpu: str) -> dict[str, Any]:
    made = deployment(replicas=replicas)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return made


def test_an_empty_cluster_gets_nodes_with_its_pods_and_loses_them_with_them() -> None:
    with Cluster(options=LivingOptions(policy=KarpenterPolicy())) as cluster:
        pools = cluster.run(cluster.client.list(NODE_POOLS)).items
        assert [pool["metadata"]["name"] for pool in pools] == ["default"]
        cluster.run(cluster.client.create(DEPLOYMENTS, sized(10, "1")))
        cluster.pass_time(120)
        pods = cluster.run(cluster.client.list(PODS)).items
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        assert len(cluster.run(cluster.client.list(NODE_CLAIMS)).items) >= 1
        name = deployment()["metadata"]["name"]
        cluster.run(cluster.client.patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}}, namespace="default"))
        cluster.pass_time(600)
        assert cluster.run(cluster.client.list(NODES)).items == []
        assert cluster.run(cluster.client.list(NODE_CLAIMS)).items == []
