"""A living cluster whose nodes the policy ``optimal`` makes and takes away."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from holokube.client.resources import DEPLOYMENTS, NODES, PODS
from holokube.cluster import LivingOptions
from holokube.cluster.optimal_policy import OptimalPolicy
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.optimal.solver_library import SolverMissing
from holokube.testing.cluster import Cluster
from tests.builders import deployment


def sized(name: str, replicas: int, cpu: str, memory: str) -> dict[str, Any]:
    made = deployment(name, replicas=replicas, app=name)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    return made


def test_an_empty_cluster_gets_nodes_with_its_pods_and_loses_them_with_them() -> None:
    with Cluster(options=LivingOptions(policy=OptimalPolicy())) as cluster:
        pools = cluster.run(cluster.client.list(NODE_POOLS)).items
        assert [pool["metadata"]["name"] for pool in pools] == ["default"]
        cluster.run(cluster.client.create(DEPLOYMENTS, sized("cpu", 4, "1800m", "500Mi")))
        cluster.run(cluster.client.create(DEPLOYMENTS, sized("memory", 4, "100m", "12Gi")))
        cluster.pass_time(120)
        pods = cluster.run(cluster.client.list(PODS)).items
        assert len(pods) == 8
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        for name in ("cpu", "memory"):
            cluster.run(cluster.client.patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}}, namespace="default"))
        cluster.pass_time(600)
        assert cluster.run(cluster.client.list(NODES)).items == []
        assert cluster.run(cluster.client.list(NODE_CLAIMS)).items == []


def test_without_the_solver_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(SolverMissing):
        OptimalPolicy().strategy()
