"""Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import (
    check_endpoint_ip,
    check_immutable,
    check_legacy_ip,
    check_one_of,
    ip_warnings,
    is_ipv6,
)
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import addresses, names
from holokube.kube.types import JsonObject

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_ENDPOINTS_MAX: Final = 1000
_ADDRESSES_MAX: Final = 100
_PORTS_MAX: Final = 20000
_HINTS_MAX: Final = 8
_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"


class Endpoints(GoKind):
    go_type = "core.v1.Endpoints"
    allow_create_on_update = True

    def set_defaults(self, obj: JsonObject) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        for index, subset in enumerate(new.get("subsets") or ()):
            path = f"subsets[{index}]"
            ready, not_ready = subset.get("addresses") or [], subset.get("notReadyAddresses") or []
            if not ready and not not_ready:
                errors.required(path, "must specify `addresses` or `notReadyAddresses`")
            for field, listed in (("addresses", ready), ("notReadyAddresses", not_ready)):
                for number, address in enumerate(listed):
                    _check_address(address, f"{path}.{field}[{number}]", errors)
            ports = subset.get("ports") or []
            for number, port in enumerate(ports):
                _check_port(port, f"{path}.ports[{number}]", errors, needs_name=len(ports) > 1)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        # What was stored under older rules may stay.
        if new.get("subsets") != old.get("subsets"):
            self.validate(new, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        found: list[str] = []
        if (new["metadata"].get("labels") or {}).get(_MANAGED_BY) == "endpoint-controller":
            return found
        for index, subset in enumerate(new.get("subsets") or ()):
            for field in ("addresses", "notReadyAddresses"):
                for number, address in enumerate(subset.get(field) or ()):
                    found += ip_warnings(address["ip"], f"subsets[{index}].{field}[{number}].ip")
        return found


def _check_address(address: JsonObject, path: str, errors: FieldErrors) -> None:
    check_legacy_ip(address["ip"], f"{path}.ip", errors)
    hostname, node = address.get("hostname"), address.get("nodeName")
    if hostname:
        errors.all_invalid(f"{path}.hostname", hostname, names.is_dns1123_label(hostname))
    if node is not None:
        errors.all_invalid(f"{path}.nodeName", node, names.is_dns1123_subdomain(node))
    check_endpoint_ip(address["ip"], f"{path}.ip", errors)


def _check_port(port: JsonObject, path: str, errors: FieldErrors, *, needs_name: bool) -> None:
    name = port.get("name")
    if name:
        errors.all_invalid(f"{path}.name", name, names.is_dns1123_label(name))
    elif needs_name:
        errors.required(f"{path}.name")
    errors.all_invalid(f"{path}.port", port["port"], names.is_port_number(port["port"]))
    check_one_of(port["protocol"], _PROTOCOLS, f"{path}.protocol", errors)
    protocol = port.get("appProtocol")
    if protocol is not None:
        errors.all_invalid(f"{path}.appProtocol", protocol, names.is_qualified_name(protocol))


class EndpointSlice(GoKind):
    go_type = "discovery.v1.EndpointSlice"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        for port in obj["ports"] or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        _drop_topology(new)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        if new["endpoints"] != old["endpoints"]:
            _drop_topology(new)

    def spec_changed(self, new: JsonObject, old: JsonObject) -> bool:
        labels = [obj["metadata"].get("labels") or {} for obj in (new, old)]
        return super().spec_changed(new, old) or labels[0] != labels[1]

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        check_one_of(new["addressType"], _ADDRESS_TYPES, "addressType", errors)
        self._check_ports(new["ports"] or [], errors)
        self._check_endpoints(new, errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        check_one_of(new["addressType"], _ADDRESS_TYPES, "addressType", errors)
        self._check_ports(new["ports"] or [], errors)
        if new["endpoints"] != old["endpoints"]:
            self._check_endpoints(new, errors)
        check_immutable(new["addressType"], old["addressType"], "addressType", errors)

    def _check_ports(self, ports: list[JsonObject], errors: FieldErrors) -> None:
        if len(ports) > _PORTS_MAX:
            errors.too_many("ports", len(ports), _PORTS_MAX)
            return
        seen: set[str] = set()
        for index, port in enumerate(ports):
            path, name = f"ports[{index}]", port["name"]
            if name:
                errors.all_invalid(f"{path}.name", name, names.is_dns1123_label(name))
            if name in seen:
                errors.duplicate(f"{path}.name", name)
            seen.add(name)
            if port["protocol"] not in _PROTOCOLS:
                errors.not_supported(f"{path}.protocol", port["protocol"], _PROTOCOLS)
            protocol = port.get("appProtocol")
            if protocol is not None:
                errors.all_invalid(f"{path}.appProtocol", protocol, names.is_qualified_name(protocol))

    def _check_endpoints(self, new: JsonObject, errors: FieldErrors) -> None:
        endpoints = new["endpoints"] or []
        if len(endpoints) > _ENDPOINTS_MAX:
            errors.too_many("endpoints", len(endpoints), _ENDPOINTS_MAX)
            return
        for index, endpoint in enumerate(endpoints):
            path = f"endpoints[{index}]"
            _check_addresses(endpoint["addresses"] or [], new["addressType"], f"{path}.addresses", errors)
            node, hostname = endpoint.get("nodeName"), endpoint.get("hostname")
            if node is not None:
                errors.all_invalid(f"{path}.nodeName", node, names.is_dns1123_subdomain(node))
            if hostname is not None:
                errors.all_invalid(f"{path}.hostname", hostname, names.is_dns1123_label(hostname))
            hints = endpoint.get("hints")
            if hints is not None:
                _check_hints(hints, f"{path}.hints", errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        found = []
        kind = new["addressType"]
        if old is None and kind == "FQDN":
            found.append("spec.addressType: FQDN endpoints are deprecated")
        if kind in ("IPv4", "IPv6"):
            for index, endpoint in enumerate(new["endpoints"] or ()):
                for number, address in enumerate(endpoint["addresses"] or ()):
                    found += ip_warnings(address, f"endpoints[{index}].addresses[{number}]")
        return found


def _drop_topology(new: JsonObject) -> None:
    """The old topology map can be read in v1, not written."""
    for endpoint in new["endpoints"] or ():
        endpoint.pop("deprecatedTopology", None)


def _check_addresses(listed: list[str], kind: str, path: str, errors: FieldErrors) -> None:
    if not listed:
        errors.required(path, "must contain at least 1 address")
    elif len(listed) > _ADDRESSES_MAX:
        errors.too_many(path, len(listed), _ADDRESSES_MAX)
    for index, address in enumerate(listed):
        at = f"{path}[{index}]"
        if kind == "FQDN":
            _check_fqdn(address, at, errors)
        elif kind in ("IPv4", "IPv6"):
            problems = addresses.is_legacy_ip(address) if kind == "IPv4" else addresses.is_ip(address)
            errors.all_invalid(at, address, problems)
            if not problems:
                if is_ipv6(address) is not (kind == "IPv6"):
                    errors.invalid(path, address, f"must be an {kind} address")
                check_endpoint_ip(address, at, errors)


def _check_fqdn(name: str, path: str, errors: FieldErrors) -> None:
    if not name:
        errors.required(path)
        return
    name = name.removesuffix(".")
    problems = names.is_dns1123_subdomain(name)
    if problems:
        errors.all_invalid(path, name, problems)
        return
    if name.count(".") < 1:
        errors.invalid(path, name, "should be a domain with at least two segments separated by dots")
        return
    for label in name.split("."):
        errors.all_invalid(path, label, names.is_dns1123_label(label))


def _check_hints(hints: JsonObject, path: str, errors: FieldErrors) -> None:
    for field, rule in (("forZones", names.is_label_value), ("forNodes", names.is_dns1123_subdomain)):
        listed = hints.get(field) or []
        if len(listed) > _HINTS_MAX:
            errors.too_many(f"{path}.{field}", len(listed), _HINTS_MAX)
            return
        seen: set[str] = set()
        for index, hint in enumerate(listed):
            name = hint["name"]
            at = f"{path}.{field}[{index}].name"
            if name in seen:
                errors.duplicate(at, name)
            seen.add(name)
            errors.all_invalid(at, name, rule(name))
