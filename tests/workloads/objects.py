"""Objects as informers hand them to decisions: complete enough to decide upon, written without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holokube.kube.timeformat import format_time

JsonObject = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def a_pod(
    name: str = "p",
    phase: str = "Running",
    *,
    ready_s: float | None = None,
    node: str = "",
    age_s: float = 100,
    owner: JsonObject | None = None,
    leaving: bool = False,
    labels: JsonObject | None = None,
    annotations: JsonObject | None = None,
    ip: str = "",
    **spec: Any,
) -> JsonObject:
    """``ready_s`` is for how long it has been ready; None for not ready."""
    meta: JsonObject = {
        "name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": ago(age_s),
        "labels": labels or {}, "annotations": annotations or {}, "generation": 1,
    }  # fmt: skip
    if owner is not None:
        meta["ownerReferences"] = [{
            "apiVersion": "apps/v1", "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True,
        }]  # fmt: skip
    if leaving:
        meta["deletionTimestamp"] = ago(1)
    status: JsonObject = {"phase": phase}
    if ready_s is not None:
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": ago(ready_s)}]
    if ip:
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    body = {"containers": [{"name": "c", "image": "app:1"}], **spec}
    if node:
        body["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body, "status": status}


def an_owner(kind: str, name: str, **spec: Any) -> JsonObject:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1, "creationTimestamp": ago(200)}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec, "status": {}}
