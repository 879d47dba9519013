"""A living cluster whose number of nodes goes by its pods."""

from __future__ import annotations

from typing import Any

from holokube.client.resources import DEPLOYMENTS, NODES, PODS
from holokube.cluster import LivingOptions
from holokube.cluster.cluster_autoscaler_policy import ClusterAutoscalerPolicy, default_groups, group_template
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.testing.cluster import Cluster
from tests.builders import deployment

QUICK = AutoscalerOptions(scale_down_delay_after_add_s=30.0, scale_down_unneeded_time_s=60.0)


def living(policy: ClusterAutoscalerPolicy) -> Cluster:
    return Cluster(options=LivingOptions(policy=policy))


def sized(replicas: int, cpu: str, memory: str) -> dict[str, Any]:
    made = deployment(replicas=replicas)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    return made


def groups(cluster: Cluster) -> list[str]:
    nodes = cluster.run(cluster.client.list(NODES)).items
    return sorted(node["metadata"]["name"].rsplit("-", 1)[0] for node in nodes)


def test_an_empty_cluster_grows_with_its_pods_and_shrinks_again() -> None:
    with living(ClusterAutoscalerPolicy(QUICK, [group_template("four", cpu="4", memory="16Gi")])) as cluster:
        assert groups(cluster) == []
        cluster.run(cluster.client.create(DEPLOYMENTS, sized(10, "1", "1Gi")))
        cluster.pass_time(60)
        assert groups(cluster) == ["four"] * 3
        assert {pod["status"]["phase"] for pod in cluster.run(cluster.client.list(PODS)).items} == {"Running"}
        name = deployment()["metadata"]["name"]
        patch = {"spec": {"replicas": 3}}
        cluster.run(cluster.client.patch(DEPLOYMENTS, name, patch, namespace="default"))
        cluster.pass_time(600)
        assert groups(cluster) == ["four"]


def test_groups_that_nobody_described_come_in_three_sizes() -> None:
    with living(ClusterAutoscalerPolicy(QUICK)) as cluster:
        cluster.run(cluster.client.create(DEPLOYMENTS, sized(2, "3", "12Gi")))
        cluster.pass_time(60)
        # On one of the large ones nobody wastes as much as on two of the medium ones: a tie, by share.
        assert groups(cluster) in (["large"], ["medium", "medium"])
    assert [node["metadata"]["name"] for node in default_groups()] == ["small", "medium", "large"]


def test_every_turn_can_be_watched() -> None:
    turns: list[float] = []
    policy = ClusterAutoscalerPolicy(QUICK, on_turn=lambda report: turns.append(report.now_s))
    with living(policy) as cluster:
        cluster.pass_time(65)
    assert len(turns) >= 6
    assert turns == sorted(turns)
