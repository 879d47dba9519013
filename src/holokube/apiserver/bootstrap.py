"""What a fresh API server contains: its namespaces, system priority classes, the kubernetes service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holokube.kube.errors import AlreadyExists
from holokube.kube.types import JsonObject

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITY_CLASSES = {
    "system-cluster-critical": (
        2_000_000_000,
        (
            "Used for system critical pods that must run in the cluster, "
            "but can be moved to another node if necessary."
        ),
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


async def bootstrap(
    registry: Registry, *, service_ip: str = "10.96.0.1", service_cidr: str = "10.96.0.0/16", port: int = 443
) -> None:
    """Create what is missing; what is there already stays as it is."""
    for name in NAMESPACES:
        await _ensure(registry, "", "v1", "namespaces", "", {"metadata": {"name": name}})
    # Upstream's namespace controller would make these; pods are refused without them.
    for namespace in NAMESPACES:
        await _ensure(registry, "", "v1", "serviceaccounts", namespace, {"metadata": {"name": "default"}})
    for name, (value, text) in _PRIORITY_CLASSES.items():
        body = {"metadata": {"name": name}, "value": value, "description": text}
        await _ensure(registry, "scheduling.k8s.io", "v1", "priorityclasses", "", body)
    cidr = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [service_cidr]}}
    await _ensure(registry, "networking.k8s.io", "v1", "servicecidrs", "", cidr)
    service: JsonObject = {
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": service_ip,
            "clusterIPs": [service_ip],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }
    await _ensure(registry, "", "v1", "services", "default", service)


async def _ensure(
    registry: Registry, group: str, version: str, plural: str, namespace: str, body: JsonObject
) -> None:
    served = registry.resolve(group, version, plural)
    if registry.find(group, plural, namespace, body["metadata"]["name"]) is not None:
        return
    full = {"apiVersion": served.api_version, "kind": served.kind, **body}
    try:
        await registry.create(served, namespace, full)
    except AlreadyExists:
        return
