"""Services, endpoints, ingresses, network policies, address ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.tables.cells import (
    SHOWN_AT_MOST,
    annotations_of,
    cut_short,
    labels_text,
    name_of,
    selector_text,
    spec_of,
    status_of,
)
from holokube.apiserver.tables.layout import AGE, NAME, NONE, Ages, Layout, column, wide
from holokube.kube.types import JsonObject

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def service_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    return [
        name_of(obj),
        spec.get("type") or "",
        addresses[0],
        _external_address(spec, status_of(obj)),
        ",".join(_service_port(port) for port in spec.get("ports") or ()) or NONE,
        ages.of(obj),
        labels_text(spec.get("selector")),
    ]


def _external_address(spec: JsonObject, status: JsonObject) -> str:
    given: list[str] = spec.get("externalIPs") or []
    kind = spec.get("type")
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        balanced = _ingress_points(status)
        return ",".join([*([balanced] if balanced else []), *given]) or "<pending>"
    return spec.get("externalName") or "" if kind == "ExternalName" else "<unknown>"


def _ingress_points(status: JsonObject) -> str:
    points = (status.get("loadBalancer") or {}).get("ingress") or ()
    found = {point.get("ip") or point.get("hostname") or "" for point in points}
    return ",".join(sorted(found - {""}))


def _service_port(port: JsonObject) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol') or 'TCP'}"


def endpoints_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    subsets = obj.get("subsets") or ()
    found: list[str] = []
    for subset in subsets:
        hosts = [address.get("ip") or "" for address in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            found += hosts
        for port in ports or ():
            found += [_host_port(host, port.get("port")) for host in hosts]
    return [name_of(obj), cut_short(found, empty="") if subsets else NONE, ages.of(obj)]


def _host_port(host: str, port: Any) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_slice_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    ports = [_slice_port(port) for port in obj.get("ports") or ()]
    addresses = [a for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return [name_of(obj), obj.get("addressType") or "", cut_short(ports), cut_short(addresses), ages.of(obj)]


def _slice_port(port: JsonObject) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    name = port.get("name")
    return "*" if name is None else str(name)


def ingress_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("ingressClassName") or NONE,
        _hosts(spec.get("rules") or []),
        _ingress_points(status_of(obj)),
        "80, 443" if spec.get("tls") else "80",
        ages.of(obj),
    ]


def _hosts(rules: list[JsonObject]) -> str:
    """The first three hosts. All rules after the third host are counted, even those without a host."""
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == SHOWN_AT_MOST:
            return f"{','.join(hosts)} + {len(rules) - SHOWN_AT_MOST} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def ingress_class_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    name = name_of(obj)
    if annotations_of(obj).get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    parameters = spec.get("parameters")
    shown = NONE
    if parameters is not None:
        group = parameters.get("apiGroup")
        kind = parameters.get("kind") or ""
        shown = f"{kind}.{group}" if group is not None else kind
        shown = f"{shown}/{parameters.get('name') or ''}"
    return [name, spec.get("controller") or "", shown, ages.of(obj)]


def network_policy_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), selector_text(spec_of(obj).get("podSelector") or {}), ages.of(obj)]


def ip_address_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    """Upstream sends the age without a column for it; kubectl leaves it out."""
    parent = spec_of(obj).get("parentRef")
    shown = NONE
    if parent is not None:
        resource = (parent.get("resource") or "").lower()
        group = (parent.get("group") or "").lower()
        qualified = f"{resource}.{group}" if group else resource
        shown = "/".join(filter(None, (qualified, parent.get("namespace"), parent.get("name"))))
    return [name_of(obj), shown, ages.of(obj)]


def service_cidr_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), ",".join(spec_of(obj).get("cidrs") or ()), ages.of(obj)]


LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("", "services"): Layout(
        (
            NAME,
            column("Type", "How the service is reached."),
            column("Cluster-IP", "Address inside the cluster."),
            column("External-IP", "Addresses outside the cluster."),
            column("Port(s)", "Ports, with node ports where there are any."),
            AGE,
            wide("Selector", "Labels of the pods behind the service."),
        ),
        service_cells,
    ),
    ("", "endpoints"): Layout(
        (NAME, column("Endpoints", "Addresses and ports behind the service."), AGE), endpoints_cells
    ),
    ("discovery.k8s.io", "endpointslices"): Layout(
        (
            NAME,
            column("AddressType", "IPv4, IPv6 or FQDN."),
            column("Ports", "Ports of every endpoint in the slice."),
            column("Endpoints", "Addresses in the slice."),
            AGE,
        ),
        endpoint_slice_cells,
    ),
    ("networking.k8s.io", "ingresses"): Layout(
        (
            NAME,
            column("Class", "Ingress class."),
            column("Hosts", "Host names that the rules match."),
            column("Address", "Where the ingress is reached."),
            column("Ports", "Ports that are open."),
            AGE,
        ),
        ingress_cells,
    ),
    ("networking.k8s.io", "ingressclasses"): Layout(
        (
            NAME,
            column("Controller", "Controller in charge of the class."),
            column("Parameters", "Object with further settings."),
            AGE,
        ),
        ingress_class_cells,
    ),
    ("networking.k8s.io", "networkpolicies"): Layout(
        (NAME, column("Pod-Selector", "Pods the policy is about."), AGE), network_policy_cells
    ),
    ("networking.k8s.io", "ipaddresses"): Layout(
        (NAME, column("ParentRef", "Object that owns the address.")), ip_address_cells
    ),
    ("networking.k8s.io", "servicecidrs"): Layout(
        (NAME, column("CIDRs", "Ranges that cluster IPs come from."), AGE), service_cidr_cells
    ),
}
