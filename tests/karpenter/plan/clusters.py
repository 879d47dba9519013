"""Small clusters as ``kubectl get`` prints them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
STAMP = "2026-01-01T00:00:00Z"
ZONE = "topology.kubernetes.io/zone"


def node_pool(name: str = "default", **spec: Any) -> Json:
    """A pool that consolidates at once and lets everything go."""
    requirements = spec.pop("requirements", [])
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **spec.pop("disruption", {})}
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template = {"spec": {"requirements": requirements, "nodeClassRef": reference}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"template": template, "disruption": disruption, **spec}}  # fmt: skip


def node(name: str, kind: str = "large", *, cpu: str = "8", pool: str = "default", zone: str = "zone-a") -> list[Json]:
    """A Node with its NodeClaim, both as they are when all is well."""
    labels = {
        "karpenter.sh/nodepool": pool, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": kind, ZONE: zone, "karpenter.sh/capacity-type": "on-demand",
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
    }  # fmt: skip
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    conditions = [
        {"type": one, "status": "True", "reason": one, "lastTransitionTime": STAMP}
        for one in ("Launched", "Registered", "Initialized", "Ready")
    ]
    status = {"capacity": amounts, "allocatable": amounts}
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "creationTimestamp": STAMP},
         "spec": {"providerID": f"kwok://{name}"},
         "status": {**status, "conditions": [{"type": "Ready", "status": "True"}]}},
        {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
         "metadata": {"name": f"claim-{name}", "labels": labels, "creationTimestamp": STAMP}, "spec": {},
         "status": {**status, "nodeName": name, "providerID": f"kwok://{name}", "conditions": conditions}},
    ]  # fmt: skip


def pod(name: str, node_name: str = "", *, cpu: str = "1", app: str = "web", **spec: Any) -> Json:
    """A pod of a ReplicaSet; it runs if it has a node."""
    annotations = spec.pop("annotations", {})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    made: Json = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": app},
                     "annotations": annotations, "ownerReferences": [owner], "creationTimestamp": STAMP},
        "spec": {"containers": [container], **spec},
        "status": {"phase": "Pending"},
    }  # fmt: skip
    if node_name:
        made["spec"]["nodeName"] = node_name
        made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return made


CATALOG: list[Json] = [
    {"name": name, "architecture": "amd64", "operatingSystems": ["linux"],
     "resources": {"cpu": str(cpu), "memory": f"{8 * cpu}Gi", "pods": "110"},
     "offerings": [
         {"zone": zone, "capacityType": kind, "price": round(0.05 * cpu * share, 4)}
         for zone in ("zone-a", "zone-b") for kind, share in (("on-demand", 1.0), ("spot", 0.3))
     ]}
    for name, cpu in (("small", 2), ("medium", 4), ("large", 8))
]  # fmt: skip
