"""Pods and nodes for tests of what the autoscaler makes of them."""

from __future__ import annotations

from typing import Any

from tests.builders import JsonObject
from tests.packing.objects import make_node, make_pod

NOW_S = 1_800_000_000.0


def ready_node(name: str, *, since: str = "2020-01-01T00:00:00Z", **fields: Any) -> JsonObject:
    """A node that has been ready for long."""
    node = make_node(name, **fields)
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    return {**node, "status": {**node["status"], "conditions": [condition]}}


def owned_pod(name: str, owner: str = "rs", *, kind: str = "ReplicaSet", **fields: Any) -> JsonObject:
    """A pod with a uid and a controller."""
    pod = make_pod(name, **fields)
    reference = {"kind": kind, "name": owner, "uid": f"uid-of-{owner}", "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "uid": f"uid-of-{name}", "ownerReferences": [reference]}}


def waiting(pod: JsonObject, *, reason: str = "Unschedulable", created: str = "2020-01-01T00:00:00Z") -> JsonObject:
    """A pod for which a scheduler has found no place."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    metadata = {**pod["metadata"], "creationTimestamp": created}
    return {**pod, "metadata": metadata, "status": {"phase": "Pending", "conditions": [condition]}}


def annotated(obj: JsonObject, **annotations: str) -> JsonObject:
    """The object with annotations; underscores in the first part of names are dots, two of them a slash."""
    named = {name.replace("__", "/").replace("_", "."): value for name, value in annotations.items()}
    return {**obj, "metadata": {**obj["metadata"], "annotations": named}}


def daemon_set(name: str, *, requests: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    """A DaemonSet."""
    container = {"name": "c", "resources": {"requests": requests or {}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "uid": f"uid-of-{name}"},
        "spec": {"template": {"metadata": {"labels": {"ds": name}}, "spec": {"containers": [container], **spec}}},
    }
