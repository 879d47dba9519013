"""Which addresses stand behind a Service: its EndpointSlices, and the Endpoints object of old."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.kube.types import JsonObject
from holokube.workloads.pod_status import is_pod_ready, is_terminated, is_terminating, node_of

MANAGER: Final = "endpointslice-controller.k8s.io"
MANAGED_BY_LABEL: Final = "endpointslice.kubernetes.io/managed-by"
SERVICE_LABEL: Final = "kubernetes.io/service-name"
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
ENDPOINTS_MANAGED_BY_LABEL: Final = "endpoints.kubernetes.io/managed-by"
ENDPOINTS_MANAGER: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
MAX_PER_SLICE: Final = 100
"""``--max-endpoints-per-slice``."""
MAX_ADDRESSES: Final = 1000
_RESERVED: Final = frozenset({MANAGED_BY_LABEL, SERVICE_LABEL, HEADLESS_LABEL})
_ZONE_LABEL: Final = "topology.kubernetes.io/zone"

Addresses = dict[tuple[str, str], tuple[JsonObject, str]]
"""By IP and uid of the target: the address, and in which list of a subset it stands."""


@dataclass(slots=True)
class SliceChanges:
    """What has to be written, and the pods that were left out because their node is unknown."""

    create: list[JsonObject] = field(default_factory=list)
    update: list[JsonObject] = field(default_factory=list)
    delete: list[JsonObject] = field(default_factory=list)
    without_node: list[str] = field(default_factory=list)


def has_endpoints(service: Mapping[str, Any]) -> bool:
    """Whether we keep its endpoints: others do for those without a selector."""
    spec = service.get("spec") or {}
    return spec.get("selector") is not None and spec.get("type") != "ExternalName"


def is_headless(service: Mapping[str, Any]) -> bool:
    return (service.get("spec") or {}).get("clusterIP") in (None, "", "None")


def _publishes_all(service: Mapping[str, Any]) -> bool:
    return bool((service.get("spec") or {}).get("publishNotReadyAddresses"))


def _may_be_endpoint(pod: Mapping[str, Any], *, terminating: bool) -> bool:
    return not is_terminated(pod) and bool(_addresses(pod)) and (terminating or not is_terminating(pod))


def _addresses(pod: Mapping[str, Any]) -> list[str]:
    status = pod.get("status") or {}
    listed = [entry["ip"] for entry in status.get("podIPs") or () if entry.get("ip")]
    return listed or ([status["podIP"]] if status.get("podIP") else [])


def _of_family(pod: Mapping[str, Any], address_type: str) -> list[str]:
    return [ip for ip in _addresses(pod) if (":" in ip) == (address_type == "IPv6")]


def _ports(service: Mapping[str, Any], pod: Mapping[str, Any]) -> list[JsonObject]:
    ports = []
    for port in (service.get("spec") or {}).get("ports") or ():
        number = _target(pod, port)
        if number is None:
            continue
        found: JsonObject = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
        if port.get("appProtocol"):
            found["appProtocol"] = port["appProtocol"]
        ports.append(found)
    return ports


def _target(pod: Mapping[str, Any], port: Mapping[str, Any]) -> int | None:
    """The number of a service's port in a pod; a name is looked up in containers and sidecars."""
    wanted = port.get("targetPort", port.get("port"))
    if isinstance(wanted, int):
        return wanted
    spec = pod.get("spec") or {}
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *sidecars):
        for offered in container.get("ports") or ():
            same = (offered.get("protocol") or "TCP") == (port.get("protocol") or "TCP")
            if offered.get("name") == wanted and same:
                return int(offered["containerPort"])
    return None


def _endpoint(
    pod: Mapping[str, Any], node: Mapping[str, Any] | None, service: Mapping[str, Any], address_type: str
) -> JsonObject:
    serving, terminating = is_pod_ready(pod), is_terminating(pod)
    meta = pod["metadata"]
    endpoint: JsonObject = {
        "addresses": _of_family(pod, address_type),
        "conditions": {
            "ready": _publishes_all(service) or (serving and not terminating),
            "serving": serving, "terminating": terminating,
        },
        "targetRef": {
            "kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"],
        },
    }  # fmt: skip
    if node_of(pod):
        endpoint["nodeName"] = node_of(pod)
    zone = ((node or {"metadata": {}})["metadata"].get("labels") or {}).get(_ZONE_LABEL)
    if zone:
        endpoint["zone"] = zone
    hostname = _hostname(pod, service)
    if hostname:
        endpoint["hostname"] = hostname
    return endpoint


def _hostname(pod: Mapping[str, Any], service: Mapping[str, Any]) -> str:
    spec = pod.get("spec") or {}
    fits = spec.get("subdomain") == service["metadata"]["name"]
    return str(spec.get("hostname") or "") if fits else ""


def slice_changes(
    service: JsonObject,
    pods: Sequence[JsonObject],
    nodes: Mapping[str, Mapping[str, Any]],
    slices: Sequence[JsonObject],
) -> SliceChanges:
    """What makes the slices of a service fit its pods, with as few writes as can be."""
    changes = SliceChanges()
    families = (service.get("spec") or {}).get("ipFamilies") or ["IPv4"]
    for address_type in families:
        of_family = [s for s in slices if s.get("addressType") == address_type]
        _family_changes(service, pods, nodes, of_family, address_type, changes)
    changes.delete += [s for s in slices if s.get("addressType") not in families]
    return changes


def _family_changes(
    service: JsonObject,
    pods: Sequence[JsonObject],
    nodes: Mapping[str, Mapping[str, Any]],
    slices: Sequence[JsonObject],
    address_type: str,
    changes: SliceChanges,
) -> None:
    wanted: dict[str, tuple[list[JsonObject], dict[str, JsonObject]]] = {}
    for pod in pods:
        if not _may_be_endpoint(pod, terminating=True):
            continue
        node = nodes.get(node_of(pod))
        if node is None and not _publishes_all(service):
            changes.without_node.append(pod["metadata"]["name"])
            continue
        ports = _ports(service, pod)
        _, endpoints = wanted.setdefault(port_key(ports), (ports, {}))
        endpoint = _endpoint(pod, node, service, address_type)
        if endpoint["addresses"]:
            endpoints[pod["metadata"]["uid"]] = endpoint
    _add_hints(service, [endpoint for _, endpoints in wanted.values() for endpoint in endpoints.values()])
    group: dict[str, list[JsonObject]] = {}
    doomed = []
    for found in slices:
        key = port_key(found.get("ports") or [])
        if _is_owned(found, service) and key in wanted:
            group.setdefault(key, []).append(found)
        else:
            doomed.append(found)
    create: list[JsonObject] = []
    for key, (ports, endpoints) in wanted.items():
        _group_changes(service, group.get(key, []), ports, endpoints, address_type, create, changes.update, doomed)
    if not create and len(doomed) == len(slices):
        # A service without endpoints has one empty slice that says so.
        placeholder = _new_slice(service, [], [], address_type)
        if any(_is_owned(s, service) and _same_content(s, placeholder) for s in doomed):
            kept = next(s for s in doomed if _is_owned(s, service) and _same_content(s, placeholder))
            doomed = [s for s in doomed if s is not kept]
        else:
            create.append(placeholder)
    _recycle(service, create, doomed, changes)


def _group_changes(
    service: JsonObject,
    slices: list[JsonObject],
    ports: list[JsonObject],
    endpoints: dict[str, JsonObject],
    address_type: str,
    create: list[JsonObject],
    update: list[JsonObject],
    doomed: list[JsonObject],
) -> None:
    """Brings the slices with one set of ports in order: keep in place, fill up, only then make new ones."""
    left = dict(endpoints)
    labels = _labels(service)
    contents: list[tuple[JsonObject, list[JsonObject], bool]] = []
    for found in slices:
        kept = []
        for endpoint in found.get("endpoints") or ():
            fresh = left.pop((endpoint.get("targetRef") or {}).get("uid") or "", None)
            if fresh is not None:
                kept.append(fresh)
        changed = kept != (found.get("endpoints") or []) or found["metadata"].get("labels") != labels
        contents.append((found, kept, changed))
    waiting = list(left.values())
    # Slices that are written anyway are filled first, the fullest before the others.
    for _, kept, changed in sorted(contents, key=lambda entry: -len(entry[1])):
        if changed and waiting and kept:
            room = MAX_PER_SLICE - len(kept)
            kept += waiting[:room]
            waiting = waiting[room:]
    if waiting and len(waiting) < MAX_PER_SLICE:
        fitting = [entry for entry in contents if entry[1] and len(entry[1]) + len(waiting) <= MAX_PER_SLICE]
        if fitting:
            fullest = max(fitting, key=lambda entry: len(entry[1]))
            fullest[1].extend(waiting)
            contents = [(f, k, c or k is fullest[1]) for f, k, c in contents]
            waiting = []
    for found, kept, changed in contents:
        if not kept:
            doomed.append(found)
        elif changed:
            meta = {**found["metadata"], "labels": labels}
            update.append({**found, "metadata": meta, "endpoints": kept})
    create.extend(
        _new_slice(service, ports, waiting[start : start + MAX_PER_SLICE], address_type)
        for start in range(0, len(waiting), MAX_PER_SLICE)
    )


def _recycle(
    service: JsonObject, create: list[JsonObject], doomed: list[JsonObject], changes: SliceChanges
) -> None:
    """A slice that would be deleted takes over the content of one that would be created."""
    for old in doomed:
        if create and _is_owned(old, service):
            new = create.pop()
            meta = {**old["metadata"], "labels": new["metadata"]["labels"]}
            changes.update.append({**old, "metadata": meta, "ports": new["ports"], "endpoints": new["endpoints"]})
        else:
            changes.delete.append(old)
    changes.create += create


def _new_slice(
    service: JsonObject, ports: list[JsonObject], endpoints: list[JsonObject], address_type: str
) -> JsonObject:
    meta = service["metadata"]
    owner = {
        "apiVersion": "v1", "kind": "Service", "name": meta["name"], "uid": meta["uid"], "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": address_type,
        "metadata": {
            "generateName": f"{meta['name']}-", "namespace": meta["namespace"], "labels": _labels(service),
            "ownerReferences": [owner],
        },
        "ports": ports, "endpoints": endpoints,
    }  # fmt: skip


def _labels(service: Mapping[str, Any]) -> dict[str, str]:
    own = service["metadata"].get("labels") or {}
    labels = {key: value for key, value in own.items() if key not in _RESERVED}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    return {**labels, SERVICE_LABEL: service["metadata"]["name"], MANAGED_BY_LABEL: MANAGER}


def _is_owned(found: Mapping[str, Any], service: Mapping[str, Any]) -> bool:
    references = found["metadata"].get("ownerReferences") or ()
    return any(ref["uid"] == service["metadata"]["uid"] and ref["kind"] == "Service" for ref in references)


def _same_content(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    same_labels = found["metadata"].get("labels") == wanted["metadata"]["labels"]
    return same_labels and not found.get("ports") and not found.get("endpoints")


def port_key(ports: Sequence[Mapping[str, Any]]) -> str:
    """The same for the same ports in any order."""
    return json.dumps(sorted(json.dumps(port, sort_keys=True) for port in ports))


def _add_hints(service: Mapping[str, Any], endpoints: Iterable[JsonObject]) -> None:
    """Hints for ``trafficDistribution``: each endpoint is for its own zone, or for its own node."""
    wish = (service.get("spec") or {}).get("trafficDistribution")
    if wish not in ("PreferClose", "PreferSameZone", "PreferSameNode"):
        return
    ready = [endpoint for endpoint in endpoints if endpoint["conditions"]["ready"]]
    if wish != "PreferSameNode" and not all(endpoint.get("zone") for endpoint in ready):
        return
    for endpoint in ready:
        hints: JsonObject = {}
        if endpoint.get("zone"):
            hints["forZones"] = [{"name": endpoint["zone"]}]
        if wish == "PreferSameNode" and endpoint.get("nodeName"):
            hints["forNodes"] = [{"name": endpoint["nodeName"]}]
        if hints:
            endpoint["hints"] = hints


def wanted_endpoints(
    service: JsonObject, pods: Sequence[JsonObject], found: JsonObject | None
) -> JsonObject | None:
    """The Endpoints object as it should be; None when the one that was ``found`` is."""
    subsets = _subsets(service, pods)
    truncated = _truncate(subsets)
    meta = service["metadata"]
    labels = {**(meta.get("labels") or {}), ENDPOINTS_MANAGED_BY_LABEL: ENDPOINTS_MANAGER}
    labels.pop(HEADLESS_LABEL, None)
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    old_meta = (found or {}).get("metadata") or {"name": meta["name"], "namespace": meta["namespace"]}
    annotations = {key: v for key, v in (old_meta.get("annotations") or {}).items() if key != OVER_CAPACITY}
    if truncated:
        annotations[OVER_CAPACITY] = "truncated"
    new_meta = {key: v for key, v in old_meta.items() if key != "annotations"} | {"labels": labels}
    if annotations:
        new_meta["annotations"] = annotations
    wanted: JsonObject = {"apiVersion": "v1", "kind": "Endpoints", "metadata": new_meta}
    if subsets:
        wanted["subsets"] = subsets
    if found is not None and found["metadata"] == new_meta and (found.get("subsets") or []) == subsets:
        return None
    return wanted


def _subsets(service: JsonObject, pods: Sequence[JsonObject]) -> list[JsonObject]:
    """Each port once, with all its addresses; ports with the same addresses share a subset."""
    by_port: dict[str, tuple[JsonObject | None, Addresses]] = {}
    publishes = _publishes_all(service)
    families = (service.get("spec") or {}).get("ipFamilies") or ["IPv4"]
    for pod in pods:
        if not _may_be_endpoint(pod, terminating=publishes):
            continue
        ips = _of_family(pod, families[0])
        ports: list[JsonObject | None] = list(_ports(service, pod))
        if is_headless(service) and not service["spec"].get("ports"):
            ports = [None]
        if not ips:
            continue
        address = _address(pod, service, ips[0])
        state = "addresses" if publishes or is_pod_ready(pod) else "notReadyAddresses"
        for port in ports:
            _, addresses = by_port.setdefault(json.dumps(port, sort_keys=True), (port, {}))
            addresses[ips[0], address["targetRef"]["uid"]] = (address, state)
    return shared_subsets(by_port)


def _address(pod: Mapping[str, Any], service: Mapping[str, Any], ip: str) -> JsonObject:
    meta = pod["metadata"]
    target = {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    address: JsonObject = {"ip": ip, "targetRef": target}
    if node_of(pod):
        address["nodeName"] = node_of(pod)
    if _hostname(pod, service):
        address["hostname"] = _hostname(pod, service)
    return address


def shared_subsets(by_port: Mapping[str, tuple[JsonObject | None, Addresses]]) -> list[JsonObject]:
    """Subsets of Endpoints: ports with the same addresses in the same state share one."""
    groups: dict[tuple[tuple[tuple[str, str], str], ...], list[str]] = {}
    for key, (_, addresses) in by_port.items():
        shape = tuple((identity, state) for identity, (_, state) in sorted(addresses.items(), key=lambda i: i[0]))
        groups.setdefault(shape, []).append(key)
    subsets = []
    for shape, keys in sorted(groups.items(), key=lambda group: min(group[1])):
        subset: JsonObject = {}
        for identity, state in shape:
            subset.setdefault(state, []).append(by_port[keys[0]][1][identity][0])
        ports = [port for key in sorted(keys) if (port := by_port[key][0]) is not None]
        if ports:
            subset["ports"] = [{name: value for name, value in port.items() if value != ""} for port in ports]
        subsets.append(subset)
    return subsets


def _truncate(subsets: list[JsonObject]) -> bool:
    """Cuts what is beyond the capacity of the old kind, ready addresses last; whether anything was cut."""
    total = sum(len(subset.get(state, ())) for subset in subsets for state in ("addresses", "notReadyAddresses"))
    surplus = total - MAX_ADDRESSES
    if surplus <= 0:
        return False
    for state in ("notReadyAddresses", "addresses"):
        for subset in reversed(subsets):
            cut = min(surplus, len(subset.get(state, ())))
            if cut:
                subset[state] = subset[state][:-cut]
                surplus -= cut
                if not subset[state]:
                    del subset[state]
    subsets[:] = [subset for subset in subsets if "addresses" in subset or "notReadyAddresses" in subset]
    return True
