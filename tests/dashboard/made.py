"""Objects as a cluster has them, for views."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
CREATED = "2026-01-01T00:00:00Z"
CREATED_S = 1_767_225_600.0


def ready_node(name: str = "n", *, ready: str = "True", uid: str = "", cpu: str = "4", memory: str = "8Gi",
               **metadata: Any) -> JsonObject:
    """A node with a kubelet that says ``ready``."""
    return {
        "metadata": {"name": name, "uid": uid or f"uid-{name}", "creationTimestamp": CREATED, **metadata},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": ready, "message": "as the kubelet says"}],
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
        },
    }


def bound_pod(name: str, node: str, *, ready: str = "True", cpu: str = "500m", memory: str = "1Gi",
              owner: tuple[str, str] | None = None, **metadata: Any) -> JsonObject:
    """A pod on a node; without a node it is pending."""
    meta: JsonObject = {"name": name, "namespace": "default", "creationTimestamp": CREATED, **metadata}
    if owner is not None:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    requests = {"cpu": cpu, "memory": memory}
    spec: JsonObject = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    if not node:
        return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": meta, "spec": {**spec, "nodeName": node}, "status": status}


def unschedulable(pod: JsonObject, message: str, reason: str = "Unschedulable") -> JsonObject:
    """The pod after the scheduler has found no node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {**pod, "status": {"phase": "Pending", "conditions": [condition]}}
