"""Nodes, and what belongs to them: leases, runtime classes, priority classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holokube.apiserver.tables.cells import condition_status, name_of, spec_of, status_of
from holokube.apiserver.tables.layout import AGE, NAME, NONE, UNKNOWN, Ages, Layout, column, wide
from holokube.kube.types import JsonObject

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def node_cells(node: JsonObject, ages: Ages) -> list[Any]:
    meta: JsonObject = node.get("metadata") or {}
    status = status_of(node)
    info: JsonObject = status.get("nodeInfo") or {}
    ready = condition_status(status.get("conditions"), "Ready")
    state = "Ready" if ready == "True" else "NotReady" if ready else "Unknown"
    if spec_of(node).get("unschedulable"):
        state += ",SchedulingDisabled"
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    addresses = status.get("addresses") or ()
    return [
        meta.get("name") or "",
        state,
        _roles(meta.get("labels") or {}),
        ages.since(meta.get("creationTimestamp")),
        info.get("kubeletVersion") or "",
        _address(addresses, "InternalIP"),
        _address(addresses, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(labels: Mapping[str, str]) -> str:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL) or "")
    roles.discard("")
    return ",".join(sorted(roles)) or NONE


def _address(addresses: Sequence[JsonObject], wanted: str) -> str:
    for address in addresses:
        if address.get("type") == wanted:
            return address.get("address") or ""
    return NONE


def lease_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), spec_of(obj).get("holderIdentity") or "", ages.of(obj)]


def runtime_class_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), obj.get("handler") or "", ages.of(obj)]


def priority_class_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value") or 0,
        bool(obj.get("globalDefault")),
        ages.of(obj),
        obj.get("preemptionPolicy") or "",
    ]


LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("", "nodes"): Layout(
        (
            NAME,
            column("Status", "Whether the node is ready, and whether pods may be scheduled onto it."),
            column("Roles", "Roles, from the node-role.kubernetes.io/ labels."),
            AGE,
            column("Version", "Version of the kubelet."),
            wide("Internal-IP", "First internal address."),
            wide("External-IP", "First external address."),
            wide("OS-Image", "Operating system."),
            wide("Kernel-Version", "Kernel, and processor architecture."),
            wide("Container-Runtime", "Container runtime and its version."),
        ),
        node_cells,
    ),
    ("coordination.k8s.io", "leases"): Layout(
        (NAME, column("Holder", "Who holds the lease."), AGE), lease_cells
    ),
    ("node.k8s.io", "runtimeclasses"): Layout(
        (NAME, column("Handler", "Runtime configuration that the node uses."), AGE), runtime_class_cells
    ),
    ("scheduling.k8s.io", "priorityclasses"): Layout(
        (
            NAME,
            column("Value", "Priority that pods of this class get.", type="integer"),
            column("Global-Default", "Whether pods without a class get this one.", type="boolean"),
            AGE,
            column("PreemptionPolicy", "Whether pods of this class may push out others."),
        ),
        priority_class_cells,
    ),
}
