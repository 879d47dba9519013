"""Services: defaults, rules, and what a change of type means. Addresses and ports are in ``service_addresses``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holokube.apiserver.field_errors import FieldErrors, show
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import (
    check_endpoint_ip,
    check_legacy_cidr,
    check_legacy_ip,
    check_one_of,
    check_port_or_name,
    cidr_warnings,
    ip_warnings,
    masked,
)
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.apiserver.kinds.service_addresses import (
    allocate_for_create,
    allocate_for_update,
    check_cluster_ips,
    check_cluster_ips_change,
    is_headless,
    needs_cluster_ip,
    needs_health_check,
)
from holokube.apiserver.metadata import validate_labels
from holokube.kube import names
from holokube.kube.types import JsonObject

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_POLICIES: Final = ("Cluster", "Local")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES: Final = ("Proxy", "VIP")
_AFFINITY_TIMEOUT_S: Final = 10800
_AFFINITY_TIMEOUT_MAX_S: Final = 86400
_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_ONLY_LOAD_BALANCER: Final = "may only be used when `type` is 'LoadBalancer'"


class Service(GoKind):
    go_type = "core.v1.Service"
    allow_create_on_update = True
    returns_deleted_object = True
    field_labels = frozenset({"metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"})

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return names.is_dns1123_label(masked(name, prefix=prefix))

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        affinity = spec.setdefault("sessionAffinity", "None")
        if affinity == "None":
            spec.pop("sessionAffinityConfig", None)
        elif affinity == "ClientIP":
            config = spec.get("sessionAffinityConfig") or {}
            if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
                spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_TIMEOUT_S}}
        kind = spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if port["targetPort"] in (0, ""):
                port["targetPort"] = port["port"]
        if _is_external(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in obj["status"]["loadBalancer"].get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        super().prepare_create(new, context)
        allocate_for_create(new, context)
        _drop_internal_policy(new)

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        allocate_for_update(new, old, context)
        _drop_what_the_type_does_not_need(new, old)
        _drop_internal_policy(new)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _check_service(new, None, errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        after, before = new["spec"], old["spec"]
        check_cluster_ips_change(after, before, errors)
        both_balanced = after["type"] == before["type"] == "LoadBalancer"
        if both_balanced and after.get("loadBalancerClass") != before.get("loadBalancerClass"):
            errors.invalid("spec.loadBalancerClass", after.get("loadBalancerClass"), "may not change once set")
        both_checked = needs_health_check(before) and needs_health_check(after)
        if both_checked and after.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
            errors.forbidden("spec.healthCheckNodePort", "field is immutable")
        _check_service(new, old, errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        path = "status.loadBalancer.ingress"
        ingresses = new["status"]["loadBalancer"].get("ingress") or []
        if ingresses and new["spec"]["type"] != "LoadBalancer":
            errors.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
            return
        known = [i["ip"] for i in old["status"]["loadBalancer"].get("ingress") or () if i.get("ip")]
        for index, ingress in enumerate(ingresses):
            _check_ingress_point(ingress, known, f"{path}[{index}]", errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        # A change of the status keeps the very spec that was there.
        return [] if old is not None and new["spec"] is old["spec"] else _warnings(new)

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        spec = obj["spec"]
        return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec["type"]}


def _drop_internal_policy(service: JsonObject) -> None:
    """Upstream stores it for ExternalName Services, but never shows it."""
    if service["spec"]["type"] == "ExternalName":
        service["spec"].pop("internalTrafficPolicy", None)


def _is_external(spec: JsonObject) -> bool:
    """Reachable from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def _drop_what_the_type_does_not_need(new: JsonObject, old: JsonObject) -> None:
    """Take back, after a change of type, what the server or the user set for the old type and nobody touched."""
    after, before = new["spec"], old["spec"]
    if needs_cluster_ip(before) and not needs_cluster_ip(after):
        if all(after.get(key) == before.get(key) for key in ("clusterIP", "clusterIPs")):
            after.pop("clusterIP", None)
            after.pop("clusterIPs", None)
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if after.get(key) == before.get(key):
                after.pop(key, None)
    balanced = ("NodePort", "LoadBalancer")
    if before["type"] in balanced and after["type"] not in balanced:
        known = {port.get("nodePort", 0) for port in before.get("ports") or ()}
        given = {port["nodePort"] for port in after.get("ports") or () if "nodePort" in port}
        if given <= known:
            for port in after.get("ports") or ():
                port.pop("nodePort", None)
    same_check = after.get("healthCheckNodePort") == before.get("healthCheckNodePort")
    if needs_health_check(before) and not needs_health_check(after) and same_check:
        after.pop("healthCheckNodePort", None)
    if before["type"] == "LoadBalancer" != after["type"]:
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if after.get(key) == before.get(key):
                after.pop(key, None)
    same_policy = after.get("externalTrafficPolicy") == before.get("externalTrafficPolicy")
    if _is_external(before) and not _is_external(after) and same_policy:
        after.pop("externalTrafficPolicy", None)
    if after["type"] != "LoadBalancer" and new["status"].get("loadBalancer"):
        new["status"] = {**new["status"], "loadBalancer": {}}


def _check_service(new: JsonObject, old: JsonObject | None, errors: FieldErrors) -> None:
    spec = new["spec"]
    annotations = new["metadata"].get("annotations") or {}
    hints, mode = annotations.get(_HINTS), annotations.get(_TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        message = f"must match annotations[{_HINTS}] when both are specified"
        errors.invalid(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, message)
    kind = spec["type"]
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        errors.required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        errors.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    elif kind == "ExternalName":
        _check_external_name(spec, errors)
    _check_ports(spec, errors)
    validate_labels(spec.get("selector"), "spec.selector", errors)
    check_one_of(spec["sessionAffinity"], _AFFINITIES, "spec.sessionAffinity", errors)
    if spec["sessionAffinity"] == "ClientIP":
        timeout = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < timeout <= _AFFINITY_TIMEOUT_MAX_S:
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            errors.invalid(path, timeout, f"must be greater than 0 and less than {_AFFINITY_TIMEOUT_MAX_S}")
    check_cluster_ips(spec, old["spec"] if old else None, errors)
    known = (old["spec"].get("externalIPs") if old else None) or []
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        if check_legacy_ip(ip, path, errors, known):
            check_endpoint_ip(ip, path, errors)
    check_one_of(kind, _TYPES, "spec.type", errors)
    _check_duplicate_ports(spec, errors)
    _check_source_ranges(spec, annotations, old, errors)
    _check_load_balancer(spec, errors)
    _check_traffic(spec, errors)


def _check_external_name(spec: JsonObject, errors: FieldErrors) -> None:
    if spec.get("clusterIPs"):
        errors.forbidden("spec.clusterIPs", "may not be set for ExternalName services")
    if spec.get("ipFamilies"):
        errors.forbidden("spec.ipFamilies", "may not be set for ExternalName services")
    if spec.get("ipFamilyPolicy") is not None:
        errors.forbidden("spec.ipFamilyPolicy", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        errors.all_invalid("spec.externalName", name, names.is_dns1123_subdomain(name))
    else:
        errors.required("spec.externalName")


def _check_ports(spec: JsonObject, errors: FieldErrors) -> None:
    ports = spec.get("ports") or []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name")
        if name:
            errors.all_invalid(f"{path}.name", name, names.is_dns1123_label(name))
            if name in seen:
                errors.duplicate(f"{path}.name", name)
            seen.add(name)
        elif len(ports) > 1:
            errors.required(f"{path}.name")
        errors.all_invalid(f"{path}.port", port["port"], names.is_port_number(port["port"]))
        check_one_of(port["protocol"], _PROTOCOLS, f"{path}.protocol", errors)
        check_port_or_name(port["targetPort"], f"{path}.targetPort", errors)
        protocol = port.get("appProtocol")
        if protocol is not None:
            errors.all_invalid(f"{path}.appProtocol", protocol, names.is_qualified_name(protocol))


def _check_duplicate_ports(spec: JsonObject, errors: FieldErrors) -> None:
    ports = spec.get("ports") or []
    if spec["type"] == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                errors.forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen_node_ports: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        node_port = port.get("nodePort")
        if node_port:
            key = (port["protocol"], node_port)
            if key in seen_node_ports:
                errors.duplicate(f"spec.ports[{index}].nodePort", node_port)
            seen_node_ports.add(key)
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port["protocol"], port["port"])
        if key in seen:
            shown = {
                "Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1], "TargetPort": 0, "NodePort": 0,
            }  # fmt: skip
            errors.duplicate(f"spec.ports[{index}]", shown)
        seen.add(key)


def _check_source_ranges(
    spec: JsonObject, annotations: Mapping[str, str], old: JsonObject | None, errors: FieldErrors
) -> None:
    ranges = spec.get("loadBalancerSourceRanges")
    if ranges:
        path = "spec.LoadBalancerSourceRanges"
        if spec["type"] != "LoadBalancer":
            errors.forbidden(path, _ONLY_LOAD_BALANCER)
        known = [r.strip() for r in (old["spec"].get("loadBalancerSourceRanges") if old else None) or ()]
        for index, text in enumerate(ranges):
            check_legacy_cidr(text.strip(), f"{path}[{index}]", errors, known)
    elif _SOURCE_RANGES in annotations:
        path = f"metadata.annotations[{_SOURCE_RANGES}]"
        value = annotations[_SOURCE_RANGES]
        if spec["type"] != "LoadBalancer":
            errors.forbidden(path, _ONLY_LOAD_BALANCER)
        before = (old["metadata"].get("annotations") or {}).get(_SOURCE_RANGES) if old else None
        if before != value and value.strip():
            for text in value.strip().split(","):
                check_legacy_cidr(text.strip(), path, errors)


def _check_load_balancer(spec: JsonObject, errors: FieldErrors) -> None:
    balanced = spec["type"] == "LoadBalancer"
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        errors.forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_LOAD_BALANCER)
    balancer = spec.get("loadBalancerClass")
    if balancer is not None:
        if balanced:
            errors.all_invalid("spec.loadBalancerClass", balancer, names.is_qualified_name(balancer))
        else:
            errors.forbidden("spec.loadBalancerClass", _ONLY_LOAD_BALANCER)


def _check_traffic(spec: JsonObject, errors: FieldErrors) -> None:
    policy = spec.get("externalTrafficPolicy", "")
    if _is_external(spec):
        check_one_of(policy, _POLICIES, "spec.externalTrafficPolicy", errors)
    elif policy:
        errors.invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services")
    port = spec.get("healthCheckNodePort", 0)
    if needs_health_check(spec):
        if not port:
            errors.required("spec.healthCheckNodePort")
        else:
            errors.all_invalid("spec.healthCheckNodePort", port, names.is_port_number(port))
    elif port:
        message = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.invalid("spec.healthCheckNodePort", port, message)
    internal = spec.get("internalTrafficPolicy")
    if internal is not None and internal not in _POLICIES:
        errors.not_supported("spec.internalTrafficPolicy", internal, _POLICIES)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.not_supported("spec.trafficDistribution", distribution, _DISTRIBUTIONS)


def _check_ingress_point(ingress: JsonObject, known: list[str], path: str, errors: FieldErrors) -> None:
    ip, mode = ingress.get("ip", ""), ingress.get("ipMode")
    if ip:
        check_legacy_ip(ip, f"{path}.ip", errors, known)
    if mode is None:
        if ip:
            errors.required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not ip:
        errors.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in _IP_MODES:
        errors.not_supported(f"{path}.ipMode", mode, _IP_MODES)
    hostname = ingress.get("hostname")
    if hostname:
        errors.all_invalid(f"{path}.hostname", hostname, names.is_dns1123_subdomain(hostname))
        if check_legacy_ip(hostname, path, FieldErrors()):
            errors.invalid(f"{path}.hostname", hostname, "must be a DNS name, not an IP address")


def _warnings(new: JsonObject) -> list[str]:
    spec = new["spec"]
    found = []
    kind, external_ips = spec["type"], spec.get("externalIPs") or []
    if _HINTS in (new["metadata"].get("annotations") or {}):
        found.append(f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    if spec.get("clusterIP", "None") != "None":
        for index, ip in enumerate(spec.get("clusterIPs") or ()):
            found += ip_warnings(ip, f"spec.clusterIPs[{index}]")
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if headless:
        if spec.get("loadBalancerIP"):
            found.append("spec.loadBalancerIP is ignored for headless services")
        if external_ips:
            found.append("spec.externalIPs is ignored for headless services")
        if spec["sessionAffinity"] != "None":
            found.append("spec.SessionAffinity is ignored for headless services")
    for index, ip in enumerate(external_ips):
        found += ip_warnings(ip, f"spec.externalIPs[{index}]")
    if external_ips and not headless and kind != "ExternalName":
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        found += ip_warnings(spec["loadBalancerIP"], "spec.loadBalancerIP")
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        found += cidr_warnings(text, f"spec.loadBalancerSourceRanges[{index}]")
    if kind == "ExternalName" and external_ips:
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append(f'spec.trafficDistribution: {show("PreferClose")} is deprecated; use {show("PreferSameZone")}')
    return found
