"""Small Karpenter objects for tests of decisions."""

from __future__ import annotations

from typing import Any

from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

NOW_S = 1_800_000_000.0
CLASS_REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def at(seconds: float) -> str:
    """A time so many seconds from now."""
    return format_time(NOW_S + seconds)


def condition(type: str, status: str = "True", since_s: float = 0.0, **more: Any) -> JsonObject:
    return {"type": type, "status": status, "reason": type, "message": "", "lastTransitionTime": at(since_s), **more}


def claim(
    name: str = "c", *conditions: JsonObject, created_s: float = 0.0, labels: JsonObject | None = None,
    annotations: JsonObject | None = None, status: JsonObject | None = None, deleted_s: float | None = None,
    finalizers: list[str] | None = None, **spec: Any,
) -> JsonObject:  # fmt: skip
    metadata: JsonObject = {
        "name": name, "uid": f"uid-{name}", "creationTimestamp": at(created_s), "generation": 1,
        "resourceVersion": "1", "labels": {"karpenter.sh/nodepool": "default", **(labels or {})},
    }  # fmt: skip
    if annotations:
        metadata["annotations"] = annotations
    if finalizers:
        metadata["finalizers"] = finalizers
    if deleted_s is not None:
        metadata["deletionTimestamp"] = at(deleted_s)
    body: JsonObject = {"nodeClassRef": CLASS_REF, "requirements": [], "expireAfter": "Never", **spec}
    told = {"conditions": list(conditions), **(status or {})}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": body, "status": told}


def node(
    name: str = "n", *conditions: JsonObject, labels: JsonObject | None = None, taints: list[JsonObject] | None = None,
    provider_id: str = "", capacity: JsonObject | None = None, deleted_s: float | None = None, **metadata: Any,
) -> JsonObject:  # fmt: skip
    size = capacity or {"cpu": "4", "memory": "16Gi", "pods": "110"}
    meta: JsonObject = {
        "name": name, "uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": at(0), "labels": labels or {},
        **metadata,
    }  # fmt: skip
    if deleted_s is not None:
        meta["deletionTimestamp"] = at(deleted_s)
    spec: JsonObject = {"providerID": provider_id} if provider_id else {}
    if taints:
        spec["taints"] = taints
    status = {"capacity": size, "allocatable": dict(size), "conditions": list(conditions)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def pod(name: str = "p", *, node_name: str = "", owner: str = "", phase: str = "Running", **parts: Any) -> JsonObject:
    """``parts`` are fields of the spec, but for ``annotations``, ``labels`` and ``deleted_s``."""
    metadata: JsonObject = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    for field in ("annotations", "labels"):
        if field in parts:
            metadata[field] = parts.pop(field)
    if "deleted_s" in parts:
        metadata["deletionTimestamp"] = at(parts.pop("deleted_s"))
    if owner:
        version = "v1" if owner == "Node" else "apps/v1"
        metadata["ownerReferences"] = [
            {"apiVersion": version, "kind": owner, "name": "o", "uid": f"uid-{owner}", "controller": True}
        ]
    spec: JsonObject = {"containers": [{"name": "c", "image": "x"}], **parts}
    if node_name:
        spec["nodeName"] = node_name
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def pending(name: str = "p", **parts: Any) -> JsonObject:
    """A pod that the scheduler found no node for."""
    made = pod(name, phase="Pending", **parts)
    made["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return made


def pool(name: str = "default", **parts: Any) -> JsonObject:
    """``parts``: ``disruption``, ``annotations``, ``limits``, ``conditions``; others are fields of the template."""
    metadata: JsonObject = {"name": name, "uid": f"uid-{name}", "generation": 1, "resourceVersion": "1"}
    if "annotations" in parts:
        metadata["annotations"] = parts.pop("annotations")
    spec: JsonObject = {"disruption": parts.pop("disruption", {"consolidateAfter": "30s"})}
    if "limits" in parts:
        spec["limits"] = parts.pop("limits")
    status = {"conditions": parts.pop("conditions", [])}
    spec["template"] = {"spec": {"nodeClassRef": CLASS_REF, "requirements": [], **parts}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec, "status": status}
