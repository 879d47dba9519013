"""Clusters that are a little too small for their deployments, whose pods come one after the other."""

from __future__ import annotations

from typing import Any

from holokube.base.rng import Rng
from tests.builders import JsonObject
from tests.parity.clusters import World
from tests.parity.draws import HOSTNAME, NAMESPACES, ZONE, ZONES, Draws
from tests.parity.random_pods import REQUIRED


def deployments_world(seed: int) -> World:
    """Nodes, ReplicaSets, and the pods of all deployments in the order in which they are created."""
    draws = Draws(Rng(f"deployments-{seed}"))
    nodes = [_node(draws.fork(f"node-{i}"), f"n{i:02}") for i in range(draws.between(3, 10))]
    namespaces: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}}} for name in NAMESPACES
    ]
    owners, pending = [], []
    for i in range(draws.between(3, 6)):
        each = draws.fork(f"deployment-{i}")
        name, labels = f"s{seed}-d{i}", {"app": f"d{i}"}
        spec = _template(each, labels)
        owners.append({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": NAMESPACES[0]},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}},
            },
        })  # fmt: skip
        reference = {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True,
            "uid": "00000000-0000-4000-8000-000000000000",
        }  # fmt: skip
        for replica in range(each.between(2, 12)):
            metadata: JsonObject = {"name": f"{name}-{replica}", "namespace": NAMESPACES[0], "labels": labels}
            metadata["ownerReferences"] = [reference]
            pending.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return World(namespaces, nodes, [], [], pending, owners)


def pending_by_deployment(world: World, without_node: list[str]) -> dict[str, int]:
    """How many pods of each deployment have no node."""
    counts = {pod["metadata"]["labels"]["app"]: 0 for pod in world.pending}
    for pod in world.pending:
        counts[pod["metadata"]["labels"]["app"]] += pod["metadata"]["name"] in without_node
    return counts


def _node(draws: Draws, name: str) -> JsonObject:
    labels = {HOSTNAME: name, ZONE: draws.one(ZONES)}
    if draws.chance(0.5):
        labels["disk"] = "ssd"
    spec: JsonObject = {}
    if draws.chance(0.2):
        spec["taints"] = [{"key": "dedicated", "value": "a", "effect": draws.one(("NoSchedule", "PreferNoSchedule"))}]
    allocatable = {"cpu": draws.one(("2", "4", "4")), "memory": draws.one(("4Gi", "8Gi")), "pods": "110"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
        "status": {"capacity": allocatable, "allocatable": allocatable},
    }  # fmt: skip


def _template(draws: Draws, labels: dict[str, str]) -> JsonObject:
    requests = {"cpu": draws.one(("250m", "500m", "1")), "memory": draws.one(("256Mi", "512Mi", "1Gi"))}
    container: JsonObject = {"name": "c", "image": "registry.example/app:1", "resources": {"requests": requests}}
    spec: JsonObject = {"containers": [container]}
    selector = {"matchLabels": labels}
    kind = draws.one(("plain", "plain", "spread", "apart", "ports", "disk", "zone-apart", "together", "tolerant"))
    if kind == "spread":
        spec["topologySpreadConstraints"] = [{
            "topologyKey": draws.one((ZONE, HOSTNAME)), "maxSkew": draws.between(1, 2),
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
        }]  # fmt: skip
    elif kind in ("apart", "zone-apart"):
        spec["affinity"] = _affinity("podAntiAffinity", selector, ZONE if kind == "zone-apart" else HOSTNAME)
    elif kind == "together":
        spec["affinity"] = _affinity("podAffinity", selector, ZONE)
    elif kind == "ports":
        container["ports"] = [{"containerPort": 80, "hostPort": draws.one((8080, 9090)), "protocol": "TCP"}]
    elif kind == "disk":
        spec["nodeSelector"] = {"disk": "ssd"}
    elif kind == "tolerant":
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return spec


def _affinity(kind: str, selector: dict[str, Any], key: str) -> JsonObject:
    return {kind: {REQUIRED: [{"labelSelector": selector, "topologyKey": key}]}}
