"""networking.k8s.io: Ingresses, IngressClasses, NetworkPolicies, and the ranges that Services take addresses from."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import (
    IMMUTABLE,
    check_immutable,
    check_legacy_cidr,
    check_legacy_ip,
    check_selector,
    cidr_warnings,
    is_ipv6,
)
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import addresses, names
from holokube.kube.types import JsonObject

_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_SUFFIXES: Final = ("/..", "/.")
_CONTROLLER_MAX: Final = 250
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_POLICY_TYPES: Final = ("Ingress", "Egress")
_SCOPES: Final = ("Cluster", "Namespace")
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_NOT_AN_IP: Final = "must be a DNS name, not an IP address"


def _is_ip(text: str) -> bool:
    return not addresses.is_legacy_ip(text)


class Ingress(GoKind):
    go_type = "networking.v1.Ingress"
    tracks_generation = True

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        self._check_spec(new["spec"], errors)
        annotation = (new["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
        chosen = new["spec"].get("ingressClassName")
        if annotation is not None and chosen is not None and annotation != chosen:
            message = "must match `ingressClassName` when both are specified"
            errors.invalid(f"annotations.{_CLASS_ANNOTATION}", annotation, message)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self._check_spec(new["spec"], errors)

    def _check_spec(self, spec: JsonObject, errors: FieldErrors) -> None:
        backend, rules = spec.get("defaultBackend"), spec.get("rules") or []
        if not rules and backend is None:
            errors.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
        if backend is not None:
            _check_backend(backend, "spec.defaultBackend", errors)
        for index, rule in enumerate(rules):
            _check_rule(rule, f"spec.rules[{index}]", errors)
        for index, tls in enumerate(spec.get("tls") or ()):
            for number, host in enumerate(tls.get("hosts") or ()):
                _check_host(host, f"spec.tls[{index}].hosts[{number}]", errors)
            secret = tls.get("secretName")
            if secret:
                errors.all_invalid(f"spec.tls[{index}].secretName", secret, names.is_dns1123_subdomain(secret))
        chosen = spec.get("ingressClassName")
        if chosen is not None:
            errors.all_invalid("spec.ingressClassName", chosen, names.is_dns1123_subdomain(chosen))

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        known = [i.get("ip") for i in old["status"]["loadBalancer"].get("ingress") or ()]
        for index, ingress in enumerate(new["status"]["loadBalancer"].get("ingress") or ()):
            path = f"status.loadBalancer.ingress[{index}]"
            if ingress.get("ip") and ingress["ip"] not in known:
                check_legacy_ip(ingress["ip"], f"{path}.ip", errors)
            hostname = ingress.get("hostname")
            if hostname:
                errors.all_invalid(f"{path}.hostname", hostname, names.is_dns1123_subdomain(hostname))
                if _is_ip(hostname):
                    errors.invalid(f"{path}.hostname", hostname, _NOT_AN_IP)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        annotations = new["metadata"].get("annotations") or {}
        if old is None and _CLASS_ANNOTATION in annotations and new["spec"].get("ingressClassName") is None:
            return [f'annotation "{_CLASS_ANNOTATION}" is deprecated, please use \'spec.ingressClassName\' instead']
        return []


def _check_host(host: str, path: str, errors: FieldErrors) -> None:
    rule = names.is_wildcard_dns1123_subdomain if "*" in host else names.is_dns1123_subdomain
    errors.all_invalid(path, host, rule(host))


def _check_rule(rule: JsonObject, path: str, errors: FieldErrors) -> None:
    host = rule.get("host")
    if host:
        if _is_ip(host):
            errors.invalid(f"{path}.host", host, _NOT_AN_IP)
        _check_host(host, f"{path}.host", errors)
    http = rule.get("http")
    if http is None:
        return
    if not http["paths"]:
        errors.required(f"{path}.http.paths")
    for index, entry in enumerate(http["paths"] or ()):
        _check_path(entry, f"{path}.http.paths[{index}]", errors)


def _check_path(entry: JsonObject, path: str, errors: FieldErrors) -> None:
    kind, text = entry.get("pathType"), entry.get("path", "")
    if kind is None:
        errors.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            errors.invalid(f"{path}.path", text, "must be an absolute path")
        for sequence in _BAD_SEQUENCES:
            if sequence in text:
                errors.invalid(f"{path}.path", text, f"must not contain '{sequence}'")
        for suffix in _BAD_SUFFIXES:
            if text.endswith(suffix):
                errors.invalid(f"{path}.path", text, f"cannot end with '{suffix}'")
    elif kind == "ImplementationSpecific":
        if text and not text.startswith("/"):
            errors.invalid(f"{path}.path", text, "must be an absolute path")
    else:
        errors.not_supported(f"{path}.pathType", kind, _PATH_TYPES)
    _check_backend(entry["backend"], f"{path}.backend", errors)


def _check_backend(backend: JsonObject, path: str, errors: FieldErrors) -> None:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        errors.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        check_typed_reference(resource, f"{path}.resource", errors)
    elif service is None:
        errors.invalid(path, "", "resource or service backend is required")
    else:
        if not service["name"]:
            errors.required(f"{path}.service.name")
        else:
            errors.all_invalid(f"{path}.service.name", service["name"], names.is_dns1123_label(service["name"]))
        port_name, number = service["port"].get("name"), service["port"].get("number")
        if port_name and number:
            errors.invalid(path, "", "cannot set both port name & port number")
        elif port_name:
            errors.all_invalid(f"{path}.service.port.name", port_name, names.is_port_name(port_name))
        elif number:
            errors.all_invalid(f"{path}.service.port.number", number, names.is_port_number(number))
        else:
            errors.required(path, "port name or number is required")


def check_typed_reference(reference: JsonObject, path: str, errors: FieldErrors) -> None:
    """apiGroup, kind and name of some object."""
    group = reference.get("apiGroup")
    if group is not None:
        errors.all_invalid(f"{path}.apiGroup", group, names.is_dns1123_subdomain(group))
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if not value:
            errors.required(f"{path}.{field}")
        else:
            errors.all_invalid(f"{path}.{field}", value, names.is_path_segment_name(value))


def check_domain_prefixed_path(value: str, path: str, errors: FieldErrors) -> None:
    """``example.com/controller``."""
    if not value:
        errors.required(path)
        return
    domain, slash, rest = value.partition("/")
    if not slash or not domain or not rest:
        errors.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    if domain and slash:
        errors.all_invalid(path, domain, names.is_dns1123_subdomain(domain))
    if rest and not _HTTP_PATH.fullmatch(rest):
        message = names.regex_error("Invalid path", _HTTP_PATH.pattern)
        errors.invalid(path, rest, message)


class IngressClass(GoKind):
    go_type = "networking.v1.IngressClass"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        parameters = obj["spec"].get("parameters")
        if parameters is not None:
            parameters["scope"] = parameters["scope"] or "Cluster"

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        controller = spec.get("controller", "")
        if len(controller) > _CONTROLLER_MAX:
            errors.too_long("spec.controller", "", _CONTROLLER_MAX)
        check_domain_prefixed_path(controller, "spec.controller", errors)
        parameters = spec.get("parameters")
        if parameters is None:
            return
        path = "spec.parameters"
        check_typed_reference(parameters, path, errors)
        scope, namespace = parameters["scope"], parameters.get("namespace")
        if scope not in _SCOPES:
            errors.not_supported(f"{path}.scope", scope, _SCOPES)
        elif scope == "Namespace":
            if namespace is None:
                errors.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
            else:
                errors.all_invalid(f"{path}.namespace", namespace, names.is_dns1123_label(namespace))
        elif namespace is not None:
            errors.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        after, before = new["spec"].get("controller", ""), old["spec"].get("controller", "")
        check_immutable(after, before, "spec.controller", errors)
        self.validate(new, errors)


class NetworkPolicy(GoKind):
    go_type = "networking.v1.NetworkPolicy"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        spec.setdefault("podSelector", {})
        for _, _, rule in _rules(spec):
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        self._check(new["spec"], (), errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        known: list[str] = []
        for _, peers, rule in _rules(old["spec"]):
            for peer in rule.get(peers) or ():
                block = peer.get("ipBlock") or {}
                known += [block.get("cidr", ""), *(block.get("except") or ())]
        self._check(new["spec"], tuple(known), errors)

    def _check(self, spec: JsonObject, known: tuple[str, ...], errors: FieldErrors) -> None:
        check_selector(spec["podSelector"], "spec.podSelector", errors)
        for path, peers, rule in _rules(spec):
            for index, port in enumerate(rule.get("ports") or ()):
                _check_policy_port(port, f"{path}.ports[{index}]", errors)
            for index, peer in enumerate(rule.get(peers) or ()):
                _check_peer(peer, f"{path}.{peers}[{index}]", known, errors)
        types = spec["policyTypes"]
        if len(types) > len(_POLICY_TYPES):
            errors.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
            return
        for index, kind in enumerate(types):
            if kind not in _POLICY_TYPES:
                errors.not_supported(f"spec.policyTypes[{index}]", kind, _POLICY_TYPES)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        found = []
        for path, peers, rule in _rules(new["spec"]):
            for index, peer in enumerate(rule.get(peers) or ()):
                block = peer.get("ipBlock") or {}
                at = f"{path}.{peers}[{index}].ipBlock"
                found += cidr_warnings(block.get("cidr", ""), f"{at}.cidr")
                for number, text in enumerate(block.get("except") or ()):
                    found += cidr_warnings(text, f"{at}.except[{number}]")
        return found


def _rules(spec: JsonObject) -> list[tuple[str, str, JsonObject]]:
    """Path, field of the peers, and rule, for both directions."""
    found = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            found.append((f"spec.{direction}[{index}]", peers, rule))
    return found


def _check_policy_port(port: JsonObject, path: str, errors: FieldErrors) -> None:
    if port["protocol"] not in _PROTOCOLS:
        errors.not_supported(f"{path}.protocol", port["protocol"], _PROTOCOLS)
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, int):
        errors.all_invalid(f"{path}.port", number, names.is_port_number(number))
        if end is not None:
            if end < number:
                errors.invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
            errors.all_invalid(f"{path}.endPort", end, names.is_port_number(end))
    elif number is not None:
        if end is not None:
            errors.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        errors.all_invalid(f"{path}.port", number, names.is_port_name(number))
    elif end is not None:
        errors.invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")


def _check_peer(peer: JsonObject, path: str, known: tuple[str, ...], errors: FieldErrors) -> None:
    for field in ("podSelector", "namespaceSelector"):
        check_selector(peer.get(field), f"{path}.{field}", errors)
    block = peer.get("ipBlock")
    others = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    if block is not None:
        _check_block(block, f"{path}.ipBlock", known, errors)
        if others:
            errors.forbidden(path, "may not specify both ipBlock and another peer")
    elif not others:
        errors.required(path, "must specify a peer")


def _check_block(block: JsonObject, path: str, known: tuple[str, ...], errors: FieldErrors) -> None:
    if not block["cidr"]:
        errors.required(f"{path}.cidr")
        return
    check_legacy_cidr(block["cidr"], f"{path}.cidr", errors, known)
    try:
        whole = ip_network(block["cidr"], strict=False)
    except ValueError:
        return
    for index, text in enumerate(block.get("except") or ()):
        at = f"{path}.except[{index}]"
        check_legacy_cidr(text, at, errors, known)
        try:
            part = ip_network(text, strict=False)
        except ValueError:
            continue
        inside = part.version == whole.version and part.network_address in whole
        if not inside or whole.prefixlen >= part.prefixlen:
            errors.invalid(at, text, "must be a strict subset of `cidr`")


class IPAddress(GoKind):
    go_type = "networking.v1.IPAddress"

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return addresses.is_ip(name)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        reference = new["spec"].get("parentRef")
        path = "spec.parentRef"
        if reference is None:
            errors.required(path)
            return
        if reference.get("group"):
            errors.all_invalid(f"{path}.group", reference["group"], names.is_dns1123_subdomain(reference["group"]))
        for field in ("resource", "name"):
            value = reference.get(field, "")
            if not value:
                errors.required(f"{path}.{field}")
            else:
                errors.all_invalid(f"{path}.{field}", value, names.is_path_segment_name(value))
        if reference.get("namespace"):
            problems = names.is_path_segment_name(reference["namespace"])
            errors.all_invalid(f"{path}.namespace", reference["namespace"], problems)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        after = new["spec"].get("parentRef")
        if after != old["spec"].get("parentRef"):
            shown = None
            if after is not None:
                keys = (("Group", "group"), ("Resource", "resource"), ("Namespace", "namespace"), ("Name", "name"))
                shown = {name: after.get(key, "") for name, key in keys}
            errors.invalid("spec.parentRef", shown, IMMUTABLE)


class ServiceCIDR(GoKind):
    go_type = "networking.v1.ServiceCIDR"

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        path, cidrs = "spec.cidrs", new["spec"].get("cidrs") or []
        if not cidrs:
            errors.required(path, "at least one CIDR required")
            return
        if len(cidrs) > 2:
            errors.invalid(path, {"CIDRs": cidrs}, "may only hold up to 2 values")
            return
        problems = [addresses.is_cidr(cidr) for cidr in cidrs]
        for index, cidr in enumerate(cidrs):
            errors.all_invalid(f"{path}[{index}]", cidr, problems[index])
        families = {is_ipv6(cidr.partition("/")[0]) for cidr in cidrs}
        if len(cidrs) == 2 and len(families) == 1 and not any(problems):
            message = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            errors.invalid(path, cidrs, message)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        after, before = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
        if len(after) == len(before):
            for index, (now, was) in enumerate(zip(after, before, strict=True)):
                check_immutable(now, was, f"spec.cidrs[{index}]", errors)
        elif len(before) == 1 and len(after) == 2:
            check_immutable(after[0], before[0], "spec.cidrs[0]", errors)
            self.validate(new, errors)
        else:
            errors.invalid("spec.cidrs", after or None, IMMUTABLE)
