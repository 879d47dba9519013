"""Scenarios that end within a moment."""

from __future__ import annotations

from typing import Any

from holokube.cluster.cluster_autoscaler_policy import group_template
from holokube.kube.types import JsonObject
from holokube.lab.scenario.model import ClusterSpec, PolicySpec, Scenario, Workload
from tests.builders import deployment

GROUP = "cluster-autoscaler.kwok.nodegroup"


def web(name: str = "web", cpu: str = "1", memory: str = "1Gi", replicas: int = 1) -> JsonObject:
    made = deployment(name, replicas=replicas, app=name)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    return made


def job(name: str = "batch", cpu: str = "1") -> JsonObject:
    container = {"name": "c", "image": "registry.example/batch:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }  # fmt: skip


def groups(
    boot: str = "30s", zones: tuple[str, ...] = ("",), capacity_type: str = "", max_count: int = 20
) -> tuple[JsonObject, ...]:
    """A group of machines of four cores for each zone, for 0.40 USD an hour."""
    found = []
    for zone in zones:
        name = f"workers-{zone}" if zone else "workers"
        made = group_template(name, cpu="4", memory="16Gi", max_count=max_count, price_usd_per_hour="0.40")
        made["metadata"]["annotations"][f"{GROUP}/boot-delay"] = boot
        made["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "four-cores"
        if zone:
            made["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone
        if capacity_type:
            made["metadata"]["labels"]["karpenter.sh/capacity-type"] = capacity_type
        found.append(made)
    return tuple(found)


def autoscaled(**how: Any) -> PolicySpec:
    return PolicySpec("cluster-autoscaler", node_groups=groups(**how))


NO_POLICY = PolicySpec("none")
KARPENTER = PolicySpec("karpenter")


def scenario(*workloads: Workload, minutes: float = 10.0, **more: Any) -> Scenario:
    more.setdefault("cluster", ClusterSpec())
    return Scenario(name="small", duration_s=minutes * 60, workloads=workloads, **more)
