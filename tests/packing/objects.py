"""Nodes and pods for packing tests, as short as they can be."""

from __future__ import annotations

from typing import Any

from tests.builders import JsonObject


def make_node(
    name: str,
    labels: dict[str, str] | None = None,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "10",
    taints: list[JsonObject] | None = None,
    unschedulable: bool = False,
    **resources: str,
) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": taints or [], "unschedulable": unschedulable},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **resources}},
    }


def make_pod(
    name: str = "p",
    *,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    ports: list[JsonObject] | None = None,
    node: str = "",
    deleted: bool = False,
    claims: list[str] | None = None,
    **spec: Any,
) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace, "labels": labels or {}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    container = {"name": "c", "image": "a:1", "resources": {"requests": requests or {}}, "ports": ports or []}
    body = {"containers": [container], **spec}
    if node:
        body["nodeName"] = node
    if claims:
        body["volumes"] = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def affinity_term(
    app: str | None, key: str, *, namespaces: list[str] | None = None, namespace_selector: JsonObject | None = None
) -> JsonObject:
    term: JsonObject = {"topologyKey": key}
    if app is not None:
        term["labelSelector"] = {"matchLabels": {"app": app}}
    if namespaces:
        term["namespaces"] = namespaces
    if namespace_selector is not None:
        term["namespaceSelector"] = namespace_selector
    return term


def pod_affinity(*terms: JsonObject) -> JsonObject:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def pod_anti_affinity(*terms: JsonObject) -> JsonObject:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(key: str, app: str | None, *, skew: int = 1, **more: Any) -> JsonObject:
    selector = {} if app is None else {"matchLabels": {"app": app}}
    return {
        "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **more,
    }  # fmt: skip


def claim(name: str, *, volume: str = "", storage_class: str = "", modes: tuple[str, ...] = ("ReadWriteOnce",),
          size: str = "1Gi", **annotations: str) -> JsonObject:  # fmt: skip
    marks = dict(annotations)
    spec: JsonObject = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}}
    if volume:
        spec["volumeName"] = volume
        marks["pv.kubernetes.io/bind-completed"] = "yes"
    if storage_class:
        spec["storageClassName"] = storage_class
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": marks},
        "spec": spec,
        "status": {},
    }


def volume(
    name: str, *, zone: str = "", size: str = "1Gi", labels: dict[str, str] | None = None, storage_class: str = "",
    driver: str = "", phase: str = "Available",
) -> JsonObject:  # fmt: skip
    spec: JsonObject = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    if zone:
        expression = {"key": "zone", "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if storage_class:
        spec["storageClassName"] = storage_class
    if driver:
        spec["csi"] = {"driver": driver, "volumeHandle": f"h-{name}"}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"phase": phase},
    }


def storage_class(name: str, *, delayed: bool = True, provisioner: str = "csi.example", **more: Any) -> JsonObject:
    mode = "WaitForFirstConsumer" if delayed else "Immediate"
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }
