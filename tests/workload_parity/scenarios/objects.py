"""Objects of the scenarios. Their pods name a scheduler that nobody runs, and want no token mounted."""

from __future__ import annotations

from typing import Any

from tests.workload_parity.stage import SCHEDULER, JsonObject

IMAGE = "registry.example/app:1"


def template(app: str = "a", *, image: str = IMAGE, labels: JsonObject | None = None, **spec: Any) -> JsonObject:
    fixed = {"schedulerName": SCHEDULER, "automountServiceAccountToken": False}
    return {
        "metadata": {"labels": {"app": app, **(labels or {})}},
        "spec": {**fixed, "containers": [{"name": "c", "image": image}], **spec},
    }


def pod(name: str, app: str = "a", **spec: Any) -> JsonObject:
    made = template(app, **spec)
    return {"metadata": {"name": name, **made["metadata"]}, "spec": made["spec"]}


def workload(name: str, app: str = "a", pod_spec: JsonObject | None = None, **spec: Any) -> JsonObject:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet."""
    body = {"selector": {"matchLabels": {"app": app}}, "template": template(app, **(pod_spec or {})), **spec}
    return {"metadata": {"name": name}, "spec": body}


def rolling(max_surge: int | str, max_unavailable: int | str) -> JsonObject:
    limits = {"maxSurge": max_surge, "maxUnavailable": max_unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": limits}


def job(name: str, *, restart: str = "Never", pod_spec: JsonObject | None = None, **spec: Any) -> JsonObject:
    made = template("job", restartPolicy=restart, **(pod_spec or {}))
    return {"metadata": {"name": name}, "spec": {"template": made, **spec}}


def service(name: str, app: str = "a", **spec: Any) -> JsonObject:
    body = {"selector": {"app": app}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    return {"metadata": {"name": name}, "spec": body}


def budget(name: str, app: str = "a", **spec: Any) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}


def claim(name: str, size: str = "1Gi", **spec: Any) -> JsonObject:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": name}, "spec": body}


def volume(name: str, size: str = "1Gi", **spec: Any) -> JsonObject:
    body = {
        "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "parity.example", "volumeHandle": name}, "persistentVolumeReclaimPolicy": "Retain", **spec,
    }  # fmt: skip
    return {"metadata": {"name": name}, "spec": body}


def has_condition(obj: JsonObject, kind: str, status: str = "True") -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c["type"] == kind and c["status"] == status for c in conditions)
