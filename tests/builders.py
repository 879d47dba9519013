"""Objects for tests: small, valid, and changed by keyword."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]


def config_map(
    name: str = "cm", namespace: str = "default", *, labels: JsonObject | None = None, **data: str
) -> JsonObject:
    meta: JsonObject = {"name": name, "namespace": namespace}
    if labels:
        meta["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data or {"a": "b"}}


def pod(name: str = "p", namespace: str = "default", *, node: str = "", **spec: Any) -> JsonObject:
    body: JsonObject = {"containers": [{"name": "c", "image": "registry.example/app:1"}], **spec}
    if node:
        body["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": body}


def lease(name: str = "l", namespace: str = "default") -> JsonObject:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}


def node(name: str = "n", **labels: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def deployment(name: str = "d", namespace: str = "default", replicas: int = 1, app: str = "a") -> JsonObject:
    template = {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}, "template": template},
    }


def budget(name: str, app: str, *, allowed: int, desired: int = 1, healthy: int = 1) -> JsonObject:
    """A disruption budget whose status the disruption controller has filled in."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
        "status": {
            "disruptionsAllowed": allowed,
            "desiredHealthy": desired,
            "currentHealthy": healthy,
            "expectedPods": healthy,
            "observedGeneration": 1,
        },
    }
