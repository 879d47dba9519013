"""Objects of small clusters, as `kubectl get -o json` has them."""

from __future__ import annotations

from typing import Any

from holokube.kube.types import JsonObject

POOL = "cloud.google.com/gke-nodepool"


def node(name: str, pool: str = "", *, cpu: str = "8", memory: str = "64Gi", **metadata: Any) -> JsonObject:
    """A node that has been Ready for a long time."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    labels = {**({POOL: pool} if pool else {}), **metadata.pop("labels", {}), "kubernetes.io/hostname": name}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T00:00:00Z"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "uid": f"node-{name}", "creationTimestamp": "2026-05-01T00:00:00Z", "labels": labels,
            **metadata,
        },
        "spec": {"providerID": f"gce://p/z/{name}"},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pods(owner: str, count: int, *, cpu: str = "1", memory: str = "7Gi", on: str = "", **spec: Any) -> list[JsonObject]:
    """Pods of a ReplicaSet; without a node, nobody has tried to schedule them yet."""
    reference = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"rs-{owner}", "controller": True}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    found = []
    for i in range(count):
        pod: JsonObject = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": f"{owner}-{on or 'p'}-{i}", "namespace": "default", "labels": {"app": owner},
                "ownerReferences": [reference],
            },
            "spec": {"containers": [container], **spec},
        }
        if on:
            pod["spec"]["nodeName"] = on
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-02T00:00:00Z"}
            pod["status"] = {"phase": "Running", "conditions": [ready]}
        found.append(pod)
    return found


def replica_set(name: str, replicas: int) -> JsonObject:
    """The controller of ``pods``."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": f"rs-{name}"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
        "status": {"replicas": replicas},
    }


def template(name: str, group: str, memory: str, price: str = "", **annotations: str) -> JsonObject:
    """A node of a group that has none yet."""
    prefix = "cluster-autoscaler.kwok.nodegroup/"
    given = {f"{prefix}name": group, **({f"{prefix}price-per-hour": price} if price else {})}
    return node(
        name, memory=memory, labels={"ratio": group}, annotations={**given, **annotations})
