"""Pods and nodes for sizing: short to write, and complete."""

from __future__ import annotations

from typing import Any

from holokube.kube.sizing import ENABLED_LABEL, PREFIX

JsonObject = dict[str, Any]

def annotated(**annotations: str) -> JsonObject:
    """``request_cpu_fraction="0.1"`` under its full name."""
    return {PREFIX + name.replace("_", "-"): text for name, text in annotations.items()}


def container(
    name: str, requests: JsonObject | None = None, limits: JsonObject | None = None, **more: Any
) -> JsonObject:
    resources: JsonObject = {}
    if requests is not None:
        resources["requests"] = requests
    if limits is not None:
        resources["limits"] = limits
    made: JsonObject = {"name": name, "image": "registry.example/agent:1", **more}
    return {**made, "resources": resources} if resources else made


def daemon(
    *containers: JsonObject, node: str = "n", sidecars: tuple[JsonObject, ...] = (), **annotations: str
) -> JsonObject:
    """A pod as the DaemonSet controller makes it for a node."""
    on_node = {"key": "metadata.name", "operator": "In", "values": [node]}
    spec: JsonObject = {
        "containers": list(containers),
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [on_node]}]}
            }
        },
    }
    if sidecars:
        spec["initContainers"] = list(sidecars)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u-1", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "agent-", "namespace": "default", "labels": {ENABLED_LABEL: "true"},
            "annotations": annotated(**annotations), "ownerReferences": [owner],
        },
        "spec": spec,
    }  # fmt: skip


def sized_node(cpu: str = "10", memory: str = "10Gi", name: str = "n", **status: Any) -> JsonObject:
    """A node that keeps a bit of its capacity for itself."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "capacity": {"cpu": "1000", "memory": "1000Ti", "pods": "110"},
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
            **status,
        },
    }


def resources_of(pod: JsonObject, field: str, resource: str) -> list[str | None]:
    """One tunable of all containers, sidecars first."""
    spec = pod["spec"]
    sidecars = [one for one in spec.get("initContainers", ()) if one.get("restartPolicy") == "Always"]
    return [
        one.get("resources", {}).get(field, {}).get(resource) for one in (*sidecars, *spec["containers"])
    ]
