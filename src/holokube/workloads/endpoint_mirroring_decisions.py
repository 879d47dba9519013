"""EndpointSlices that say the same as an Endpoints object which somebody wrote by hand."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holokube.kube.types import JsonObject
from holokube.workloads.endpoint_decisions import (
    MANAGED_BY_LABEL,
    SERVICE_LABEL,
    Addresses,
    SliceChanges,
    port_key,
    shared_subsets,
)
from holokube.workloads.trigger_times import LAST_CHANGE

MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
MAX_PER_SUBSET: Final = 1000
"""``--mirroring-max-endpoints-per-subset``."""
_SKIP_LABEL: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_NOT_MIRRORED: Final = (LAST_CHANGE, "kubectl.kubernetes.io/last-applied-configuration")
_FAMILIES: Final = ("IPv4", "IPv6")


@dataclass(slots=True)
class Mirrored:
    """What has to be written, and how many addresses were left out, and why."""

    changes: SliceChanges
    invalid: int = 0
    too_many: int = 0


def should_mirror(endpoints: Mapping[str, Any] | None, service: Mapping[str, Any] | None) -> bool:
    """Whether slices are to be made: not for what the endpoint controller writes, nor for old leader locks."""
    if endpoints is None or service is None:
        return False
    meta = endpoints["metadata"]
    if (meta.get("labels") or {}).get(_SKIP_LABEL) == "true" or _LEADER in (meta.get("annotations") or {}):
        return False
    return (service.get("spec") or {}).get("selector") is None


def mirror(endpoints: JsonObject, slices: Sequence[JsonObject]) -> Mirrored:
    """One slice for each subset and family."""
    result = Mirrored(SliceChanges())
    wanted: dict[tuple[str, str], tuple[list[JsonObject], list[JsonObject]]] = {}
    for subset in _repacked(endpoints):
        ports = [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()]
        for family, listed in _by_family(subset, result).items():
            if listed:
                wanted[family, port_key(ports)] = (ports, listed)
    present: dict[tuple[str, str], list[JsonObject]] = {}
    for found in slices:
        present.setdefault((found["addressType"], port_key(found.get("ports") or [])), []).append(found)
    changes = result.changes
    doomed = [found for key, group in present.items() for found in (group[1:] if key in wanted else group)]
    for key, (ports, listed) in wanted.items():
        new = _new_slice(endpoints, ports, listed, key[0])
        group = present.get(key, [])
        if not group:
            changes.create.append(new)
        elif not _is_same(group[0], new):
            renewed = _renewed(group[0], new)
            # Upstream writes it anew under its name, and so loses the prefix that the name was made from.
            renewed["metadata"].pop("generateName", None)
            changes.update.append(renewed)
    # An address type cannot change, so a slice is only reused for the same one.
    for found in doomed:
        heir = next((new for new in changes.create if new["addressType"] == found["addressType"]), None)
        if heir is None:
            changes.delete.append(found)
        else:
            changes.create.remove(heir)
            changes.update.append(_renewed(found, heir))
    return result


def _repacked(endpoints: Mapping[str, Any]) -> list[JsonObject]:
    by_port: dict[str, tuple[JsonObject | None, Addresses]] = {}
    for subset in endpoints.get("subsets") or ():
        ports: list[JsonObject | None] = list(subset.get("ports") or ()) or [None]
        # In this order, so that an address that is listed as both counts as not ready.
        for state in ("addresses", "notReadyAddresses"):
            for address in subset.get(state) or ():
                identity = (address["ip"], (address.get("targetRef") or {}).get("uid") or "")
                for port in ports:
                    known = by_port.setdefault(port_key([port] if port else []), (port, {}))
                    known[1][identity] = (address, state)
    return shared_subsets(by_port)


def _by_family(subset: Mapping[str, Any], result: Mirrored) -> dict[str, list[JsonObject]]:
    families: dict[str, list[JsonObject]] = {family: [] for family in _FAMILIES}
    added = 0
    for state in ("addresses", "notReadyAddresses"):
        for address in subset.get(state) or ():
            if added >= MAX_PER_SUBSET:
                result.too_many += 1
                continue
            try:
                ip = ipaddress.ip_address(address["ip"])
            except ValueError:
                result.invalid += 1
                continue
            endpoint = {"addresses": [str(ip)], "conditions": {"ready": state == "addresses"}}
            for name in ("targetRef", "nodeName", "hostname"):
                if address.get(name):
                    endpoint[name] = address[name]
            families[f"IPv{ip.version}"].append(endpoint)
            added += 1
    return families


def _new_slice(
    endpoints: JsonObject, ports: list[JsonObject], listed: list[JsonObject], family: str
) -> JsonObject:
    meta = endpoints["metadata"]
    owner = {
        "apiVersion": "v1", "kind": "Endpoints", "name": meta["name"], "uid": meta["uid"], "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    new_meta: JsonObject = {
        "generateName": f"{meta['name']}-", "namespace": meta["namespace"], "ownerReferences": [owner],
        "labels": {**(meta.get("labels") or {}), SERVICE_LABEL: meta["name"], MANAGED_BY_LABEL: MANAGER},
    }  # fmt: skip
    annotations = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in _NOT_MIRRORED}
    if annotations:
        new_meta["annotations"] = annotations
    return {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family, "metadata": new_meta,
        "ports": ports, "endpoints": listed,
    }  # fmt: skip


def _is_same(found: JsonObject, new: JsonObject) -> bool:
    old_meta, meta = found["metadata"], new["metadata"]
    return (
        _sorted(found.get("endpoints") or []) == _sorted(new["endpoints"])
        and old_meta.get("labels") == meta["labels"]
        and (old_meta.get("annotations") or {}) == meta.get("annotations", {})
    )


def _sorted(listed: Sequence[JsonObject]) -> list[JsonObject]:
    return sorted(listed, key=lambda endpoint: str(endpoint["addresses"]))


def _renewed(found: JsonObject, new: JsonObject) -> JsonObject:
    meta = {k: v for k, v in found["metadata"].items() if k != "annotations"}
    more = {k: v for k, v in new["metadata"].items() if k in ("labels", "annotations", "ownerReferences")}
    return {**found, "metadata": {**meta, **more}, "ports": new["ports"], "endpoints": new["endpoints"]}
