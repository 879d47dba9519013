"""What a hollow node reports about itself: registration, status, heartbeats, faults. All pure.

What the Node object already says (capacity, addresses, versions) is kept: whoever created the node knows best
what it should be. Only what is missing is filled in from the profile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

from holokube.hollow.draws import stable_hex, stable_uuid
from holokube.hollow.profile import NodeProfile
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

FAULT = "holokube.dev/fault"
"""Label, or annotation with several faults divided by commas."""
REBOOT = "holokube.dev/reboot"
"""Annotation: the node reboots whenever its value changes."""
KWOK_NOT_READY = "node-not-ready.stage.kwok.x-k8s.io"
ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"


class Fault(Enum):
    """What can be wrong with a node."""

    NOT_READY = "not-ready"
    SILENT = "silent"
    """Nothing is sent any more: no lease, no status, nothing of its pods."""
    SLOW = "slow"
    MEMORY_PRESSURE = "memory-pressure"
    DISK_PRESSURE = "disk-pressure"
    PID_PRESSURE = "pid-pressure"
    NETWORK_UNAVAILABLE = "network-unavailable"


REBOOT_WORD = "reboot"
"""Among the faults: the node reboots once, when the word turns up."""

_FAULTS = {fault.value: fault for fault in Fault}

_ROUTE = ("RouteCreated", "RouteController created a route")
_NO_ROUTE = ("NoRouteCreated", "The network of the node is down")

# type, fault that makes it True, (reason, message) when False and when True
_PRESSURES = (
    ("MemoryPressure", Fault.MEMORY_PRESSURE,
     ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
     ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available")),
    ("DiskPressure", Fault.DISK_PRESSURE,
     ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
     ("KubeletHasDiskPressure", "kubelet has disk pressure")),
    ("PIDPressure", Fault.PID_PRESSURE,
     ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
     ("KubeletHasInsufficientPID", "kubelet has insufficient PID available")),
)  # fmt: skip


_NO_FAULTS: frozenset[Fault] = frozenset()
"""One for all nodes: an empty set takes as much room as a full one."""

_KUBELETS_OWN = frozenset({"Ready", *(kind for kind, *_ in _PRESSURES)})
"""Conditions whose changes a kubelet tells in events."""


def fault_words(node: Mapping[str, Any]) -> list[str]:
    """The words in the fault label and annotation, known or not, each once."""
    meta = node["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    words = [word.strip() for word in (*str(annotations.get(FAULT, "")).split(","), labels.get(FAULT, ""))]
    return [word for word in dict.fromkeys(words) if word]


def faults_of(node: Mapping[str, Any]) -> frozenset[Fault]:
    """The faults that labels and annotations ask for; unknown words are ignored."""
    found = {_FAULTS[word] for word in fault_words(node) if word in _FAULTS}
    if _kwok_not_ready(node):
        found.add(Fault.NOT_READY)
    return frozenset(found) if found else _NO_FAULTS


def unknown_words(node: Mapping[str, Any]) -> list[str]:
    """Words among the faults that mean nothing, for a warning."""
    return [word for word in fault_words(node) if word not in _FAULTS and word != REBOOT_WORD]


def _kwok_not_ready(node: Mapping[str, Any]) -> bool:
    return bool((node["metadata"].get("labels") or {}).get(KWOK_NOT_READY) == "true")


def asks_for_reboot(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a change of the Node object asks for a reboot: another token, or the word among the faults."""
    if reboot_token(before) != reboot_token(after):
        return True
    return REBOOT_WORD in fault_words(after) and REBOOT_WORD not in fault_words(before)


def reboot_token(node: Mapping[str, Any]) -> str:
    """What tells one boot from the next, as far as the Node object asks for it."""
    return str((node["metadata"].get("annotations") or {}).get(REBOOT, ""))


def boot_id(uid: str, token: str) -> str:
    """The boot id that goes with a token, the same in every process."""
    return stable_uuid(f"{uid}/boot/{token}")


def registration(
    name: str, profile: NodeProfile, *, addresses: Sequence[str] = (), provider_id: str = ""
) -> JsonObject:
    """The Node object with which a kubelet registers itself; its status is reported later."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": profile.operating_system,
        "kubernetes.io/arch": profile.architecture,
        "beta.kubernetes.io/os": profile.operating_system,
        "beta.kubernetes.io/arch": profile.architecture,
        **profile.labels,
    }
    annotations = {ATTACH_DETACH: "true", **profile.annotations}
    node: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"taints": [dict(taint) for taint in profile.taints]} if profile.taints else {},
        "status": {
            "capacity": dict(profile.capacity),
            "allocatable": dict(profile.allocatable or profile.capacity),
        },
    }
    if provider_id:
        node["spec"]["providerID"] = provider_id
    if addresses:
        node["status"]["addresses"] = _addresses(name, addresses, profile)
    return node


def _addresses(name: str, internal: Sequence[str], profile: NodeProfile) -> list[JsonObject]:
    listed = [{"type": "InternalIP", "address": address} for address in internal]
    return [*listed, {"type": "Hostname", "address": name}] if profile.hostname_address else listed


def internal_addresses(node: Mapping[str, Any]) -> list[str]:
    """The node's own addresses, internal before external, at most one per family."""
    by_family: dict[bool, str] = {}
    for kind in ("InternalIP", "ExternalIP"):
        for entry in (node.get("status") or {}).get("addresses") or ():
            if entry.get("type") == kind and entry.get("address"):
                by_family.setdefault(":" in entry["address"], entry["address"])
    return list(by_family.values())


def node_conditions(
    node: Mapping[str, Any],
    faults: Collection[Fault],
    *,
    not_ready_why: str = "",
    extra: Sequence[Mapping[str, str]] = (),
) -> list[JsonObject]:
    """The conditions, without times: the kubelet's, the network's, and ``extra`` ones of the profile.

    The annotations beside kwok's label for a node that is not ready say why, and which pressure there is as well.
    """
    annotations = node["metadata"].get("annotations") or {} if _kwok_not_ready(node) else {}
    asked = {key: annotations.get(f"{KWOK_NOT_READY}/{key}", "") for key in ("type", "reason", "message")}
    conditions = []
    for kind, fault, fine, pressed in _PRESSURES:
        wrong = fault in faults or asked["type"] == kind
        reason, message = pressed if wrong else fine
        if asked["type"] == kind:
            reason, message = asked["reason"] or reason, asked["message"] or message
        status = "True" if wrong else "False"
        conditions.append({"type": kind, "status": status, "reason": reason, "message": message})
    if Fault.NOT_READY in faults:
        reason = asked["reason"] or "KubeletNotReady"
        message = asked["message"] or not_ready_why or "container runtime is down"
        conditions.append({"type": "Ready", "status": "False", "reason": reason, "message": message})
    else:
        text = "kubelet is posting ready status"
        conditions.append({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": text})
    down = Fault.NETWORK_UNAVAILABLE in faults or asked["type"] == "NetworkUnavailable"
    conditions += _network_condition(node, down=down)
    known = {condition["type"] for condition in conditions}
    conditions += [
        {"status": "True", "reason": "", "message": "", **condition}
        for condition in extra
        if condition["type"] not in known
    ]
    return conditions


def _network_condition(node: Mapping[str, Any], *, down: bool) -> list[JsonObject]:
    """NetworkUnavailable is the network's: one that others wrote is left alone, unless a fault asks for it."""
    known = [c for c in (node.get("status") or {}).get("conditions") or () if c.get("type") == "NetworkUnavailable"]
    ours = not known or (known[0].get("reason"), known[0].get("message")) == _NO_ROUTE
    if not (down or ours):
        return []
    reason, message = _NO_ROUTE if down else _ROUTE
    status = "True" if down else "False"
    return [{"type": "NetworkUnavailable", "status": status, "reason": reason, "message": message}]


def desired_status(
    node: Mapping[str, Any],
    profile: NodeProfile,
    faults: Collection[Fault],
    *,
    addresses: Sequence[str],
    boot: str,
    images: Sequence[JsonObject] | None = None,
) -> JsonObject:
    """The status of the node as it should be, without times; ``images`` are those it has, if anybody keeps count."""
    name, uid = node["metadata"]["name"], node["metadata"].get("uid", "")
    status = node.get("status") or {}
    capacity = status.get("capacity") or profile.capacity
    info = {
        "machineID": stable_hex(f"{uid}/machine", 32),
        "systemUUID": stable_uuid(f"{uid}/system"),
        "kernelVersion": profile.kernel_version,
        "osImage": profile.os_image,
        "containerRuntimeVersion": profile.container_runtime_version,
        "kubeletVersion": profile.kubelet_version,
        "kubeProxyVersion": "",
        "operatingSystem": profile.operating_system,
        "architecture": profile.architecture,
        **{key: value for key, value in (status.get("nodeInfo") or {}).items() if value},
        "bootID": boot,
    }
    desired: JsonObject = {
        "capacity": dict(capacity),
        "allocatable": dict(status.get("allocatable") or profile.allocatable or capacity),
        "addresses": status.get("addresses") or _addresses(name, addresses, profile),
        "nodeInfo": info,
        "daemonEndpoints": _endpoints(status, profile),
        "conditions": node_conditions(node, faults, extra=profile.conditions),
    }
    if images is not None:
        desired["images"] = list(images)
    return desired


def _endpoints(status: Mapping[str, Any], profile: NodeProfile) -> JsonObject:
    known = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    return {"kubeletEndpoint": {"Port": known.get("Port") or profile.kubelet_port}}


def status_patch(
    node: Mapping[str, Any], desired: JsonObject, now_s: float, *, heartbeat: bool = False
) -> JsonObject | None:
    """The strategic merge patch towards the desired status; None when nothing is to be said.

    A heartbeat sends the conditions with new times even if nothing changed, as every other report does too.
    """
    status = node.get("status") or {}
    known = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    now = format_time(now_s)
    change: JsonObject = {
        field: desired[field]
        for field in ("capacity", "allocatable", "addresses", "nodeInfo", "daemonEndpoints")
        if not _covers(status.get(field), desired[field])
    }
    conditions, changed = [], False
    for condition in desired["conditions"]:
        before: Mapping[str, Any] = known.get(condition["type"]) or {}
        moved = before.get("status") != condition["status"]
        changed = changed or any((before.get(f) or "") != condition[f] for f in ("status", "reason", "message"))
        since = now if moved else before.get("lastTransitionTime", now)
        conditions.append({**condition, "lastHeartbeatTime": now, "lastTransitionTime": since})
    if not (change or changed or heartbeat):
        return None
    change["conditions"] = conditions
    if desired.get("images", status.get("images") or []) != (status.get("images") or []):
        # A pulled image alone is not worth a report: a kubelet tells it with the next one too.
        change["images"] = desired["images"]
    return {"metadata": {"uid": node["metadata"]["uid"]}, "status": change}


def _covers(known: Any, wanted: Any) -> bool:
    """Whether what the server has says all that is wanted; it may say more, and leaves empty texts out."""
    if isinstance(wanted, Mapping):
        return isinstance(known, Mapping) and all(_covers(known.get(k), v) for k, v in wanted.items() if v != "")
    return bool(known == wanted)


def transition_events(node: Mapping[str, Any], desired: JsonObject) -> list[tuple[str, str, str]]:
    """(type, reason, message) of what changes, worded as kubelets do."""
    name = node["metadata"]["name"]
    known = {c.get("type"): c.get("status") for c in (node.get("status") or {}).get("conditions") or ()}
    events = []
    for condition in desired["conditions"]:
        kind, status = condition["type"], condition["status"]
        if known.get(kind) == status or kind not in _KUBELETS_OWN:
            continue
        if kind == "Ready":
            reason = "NodeReady" if status == "True" else "NodeNotReady"
        else:
            reason = condition["reason"].replace("Kubelet", "Node", 1)
        events.append(("Normal", reason, f"Node {name} status is now: {reason}"))
    return events
