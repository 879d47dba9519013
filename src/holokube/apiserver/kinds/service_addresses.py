"""Which cluster IPs, IP families and node ports a Service has.

Nothing is kept beside the Services themselves: what is taken is what they show. The cluster is single-stack IPv4, as
``kubeadm`` makes it by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import check_legacy_ip, is_ipv6
from holokube.base.rng import Rng
from holokube.kube.errors import ApiError, BadRequest, invalid
from holokube.kube.types import JsonObject

SERVICE_RANGE: Final = IPv4Network("10.96.0.0/16")
NODE_PORTS: Final = range(30000, 32768)
# Dynamic allocation leaves the lower end of both ranges to people who choose for themselves.
_STATIC_IPS: Final = 256
_STATIC_PORTS: Final = 86
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_BALANCED: Final = ("NodePort", "LoadBalancer")


def is_headless(spec: JsonObject) -> bool:
    return bool(spec.get("clusterIPs") == ["None"])


def needs_cluster_ip(spec: JsonObject) -> bool:
    return bool(spec["type"] != "ExternalName")


def needs_health_check(spec: JsonObject) -> bool:
    return bool(spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def _needs_node_ports(spec: JsonObject) -> bool:
    return bool(
        spec["type"] == "NodePort"
        or (spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))
    )


def allocate_for_create(new: JsonObject, context: WriteContext) -> None:
    """Give a new Service what it did not ask for, and check that what it asked for is free."""
    spec = new["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _set_families(new, None)
    if needs_cluster_ip(spec):
        _allocate_cluster_ips(new, context)
    ports = _PortAllocation(new, context)
    if spec["type"] in _BALANCED:
        _allocate_node_ports(new, ports)
    if needs_health_check(spec):
        _allocate_health_check(new, ports)


def allocate_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    """Same for a change: values that the client left out come from the old object, if they still apply."""
    after, before = new["spec"], old["spec"]
    _keep_allocated(after, before)
    _follow_cluster_ip(after, before)
    _set_families(new, old)
    if before["type"] == "ExternalName" and after["type"] != "ExternalName":
        _allocate_cluster_ips(new, context)
    ports = _PortAllocation(new, context)
    if after["type"] in _BALANCED:
        _update_node_ports(new, old, ports)
    if needs_health_check(after) and not needs_health_check(before):
        _allocate_health_check(new, ports)


# -- cluster IPs -----------------------------------------------------------------------------------------------------


def _keep_allocated(after: JsonObject, before: JsonObject) -> None:
    """People apply the same YAML again and again without naming what the server chose."""
    if needs_cluster_ip(before) and needs_cluster_ip(after):
        for key in ("clusterIP", "clusterIPs"):
            if not after.get(key) and before.get(key):
                after[key] = before[key]
    if _needs_node_ports(before) and _needs_node_ports(after):
        known = {port["nodePort"] for port in before.get("ports") or () if "nodePort" in port}
        used = known & {port["nodePort"] for port in after.get("ports") or () if "nodePort" in port}
        by_name = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        for port in after.get("ports") or ():
            if not port.get("nodePort"):
                earlier = by_name.get(port.get("name", ""), 0)
                if earlier and earlier not in used:
                    port["nodePort"] = earlier
    both_checked = needs_health_check(before) and needs_health_check(after)
    if both_checked and not after.get("healthCheckNodePort") and before.get("healthCheckNodePort"):
        after["healthCheckNodePort"] = before["healthCheckNodePort"]


def _follow_cluster_ip(after: JsonObject, before: JsonObject) -> None:
    """The list follows the single field when a client changed only the latter."""
    unchanged = before.get("clusterIP") == after.get("clusterIP")
    if before.get("clusterIPs") and not after.get("clusterIPs") and unchanged:
        after["clusterIPs"] = before["clusterIPs"]
    same_list = (after.get("clusterIPs") or []) == (before.get("clusterIPs") or [])
    if before.get("clusterIP", "") != after.get("clusterIP", "") and same_list:
        if after.get("clusterIP"):
            after["clusterIPs"] = [after["clusterIP"]]
        else:
            after.pop("clusterIPs", None)


def _set_families(new: JsonObject, old: JsonObject | None) -> None:
    """Choose ``ipFamilyPolicy`` and ``ipFamilies`` where the user did not."""
    spec = new["spec"]
    before = old["spec"] if old else None
    if spec["type"] == "ExternalName" or (before is not None and _is_same_dual_stack(spec, before)):
        return
    selectorless = spec.get("clusterIP") == "None" and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        if before is not None and before.get("ipFamilyPolicy"):
            spec["ipFamilyPolicy"] = before["ipFamilyPolicy"]
        else:
            spec["ipFamilyPolicy"] = "RequireDualStack" if selectorless else "SingleStack"
    _refuse_if(new, lambda errors: check_cluster_ips(spec, before, errors))
    _refuse_if(new, lambda errors: _check_policy(spec, errors))
    policy = spec["ipFamilyPolicy"]
    families: list[str] = list(spec.get("ipFamilies") or ())
    for ip in (spec.get("clusterIPs") or [])[len(families):]:
        if ip == "None":
            break
        families.append("IPv4")
    if selectorless:
        families = families or ["IPv4"]
        if len(families) < 2 and policy != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        spec["ipFamilies"] = families
        return
    _refuse_if(new, lambda errors: _check_families(spec, families, errors))
    spec["ipFamilies"] = families or ["IPv4"]


def _is_same_dual_stack(after: JsonObject, before: JsonObject) -> bool:
    return (
        after.get("ipFamilyPolicy") == "PreferDualStack"
        and before.get("ipFamilyPolicy") in (None, "PreferDualStack")
        and all((after.get(key) or None) == (before.get(key) or None) for key in ("type", "clusterIPs", "ipFamilies"))
    )


def _check_policy(spec: JsonObject, errors: FieldErrors) -> None:
    path = "spec.ipFamilyPolicy"
    if spec["ipFamilyPolicy"] == "SingleStack":
        must = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
        if len(spec.get("clusterIPs") or ()) == 2:
            errors.invalid(path, "SingleStack", f"{must} cluster IPs are specified")
        if len(spec.get("ipFamilies") or ()) == 2:
            errors.invalid(path, "SingleStack", f"{must} IP families are specified")
    ips = spec.get("clusterIPs") or []
    for index, ip in enumerate(ips):
        if ip == "None":
            break
        if index >= len(spec.get("ipFamilies") or ()) and is_ipv6(ip):
            errors.invalid(f"spec.clusterIPs[{index}]", ips, "IPv6 is not configured on this cluster")


def _check_families(spec: JsonObject, families: Iterable[str], errors: FieldErrors) -> None:
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        message = "this cluster is not configured for dual-stack services"
        errors.invalid("spec.ipFamilyPolicy", "RequireDualStack", message)
    for index, family in enumerate(families):
        if family != "IPv4":
            errors.invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _refuse_if(service: JsonObject, check: Callable[[FieldErrors], None]) -> None:
    """Problems found before validation are answered alone, as upstream does."""
    errors = FieldErrors()
    check(errors)
    if errors:
        raise invalid("", "Service", service["metadata"].get("name", ""), errors.causes)


def _allocate_cluster_ips(service: JsonObject, context: WriteContext) -> None:
    spec = service["spec"]
    if spec.get("clusterIPs", [])[:1] == ["None"]:
        return
    used = {
        ip
        for other in context.lookup.objects("", "services")
        if not _is_same(other, service)
        for ip in other["spec"].get("clusterIPs") or ()
    }
    wanted = (spec.get("clusterIPs") or [""])[0]
    if wanted:
        problem = ""
        if not SERVICE_RANGE[0] < IPv4Address(wanted) < SERVICE_RANGE[-1]:
            problem = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {SERVICE_RANGE}"
        elif wanted in used and not context.dry_run:
            problem = "provided IP is already allocated"
        if problem:
            ips = spec["clusterIPs"]
            text = f"failed to allocate IP {wanted}: {problem}"
            _refuse_if(service, lambda errors: errors.invalid("spec.clusterIPs", ips, text))
        return
    spec["clusterIP"] = _free_ip(used, context.rng)
    spec["clusterIPs"] = [spec["clusterIP"]]


def _free_ip(used: set[str], rng: Rng) -> str:
    # The first and the last address of the range belong to nobody.
    lowest, highest = 1, SERVICE_RANGE.num_addresses - 1
    dynamic = highest - _STATIC_IPS
    start = rng.randrange(dynamic)
    for step in range(dynamic):
        ip = str(SERVICE_RANGE[_STATIC_IPS + (start + step) % dynamic])
        if ip not in used:
            return ip
    for offset in range(lowest, _STATIC_IPS):
        ip = str(SERVICE_RANGE[offset])
        if ip not in used:
            return ip
    raise BadRequest("failed to allocate a serviceIP: range is full; delete Services that are no longer needed")


def check_cluster_ips(spec: JsonObject, before: JsonObject | None, errors: FieldErrors) -> None:
    """``clusterIP``, ``clusterIPs``, ``ipFamilies`` and ``ipFamilyPolicy`` must agree."""
    if spec["type"] == "ExternalName":
        return
    path = "spec.clusterIPs"
    single, ips = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if single:
        if not ips:
            errors.required(path)
        elif ips[0] != single:
            errors.invalid(path, ips, "first value must match `clusterIP`")
    elif ips:
        errors.invalid(path, ips, "must be empty when `clusterIP` is not specified")
    families = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            errors.not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in families[:index]:
            errors.duplicate(f"spec.ipFamilies[{index}]", family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        errors.not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    if not _check_ip_list(ips, (before or {}).get("clusterIPs") or [], errors):
        return
    if len(ips) > 1 and len({is_ipv6(ip) for ip in ips}) < 2:
        errors.invalid(path, ips, "may specify no more than one IP for each IP family")
    if not is_headless(spec):
        for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
            if (family == "IPv6") is not is_ipv6(ip):
                expected = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                errors.invalid(f"{path}[{index}]", ip, expected)


def _check_ip_list(ips: list[str], known: list[str], errors: FieldErrors) -> bool:
    path, fine = "spec.clusterIPs", True
    for index, ip in enumerate(ips):
        if index == 0 and ip == "None":
            if len(ips) > 1:
                fine = False
                errors.invalid(path, ips, "'None' must be the first and only value")
        elif not check_legacy_ip(ip, f"{path}[{index}]", errors, known):
            fine = False
    if len(ips) > 2:
        errors.invalid(path, ips, "may only hold up to 2 values")
    return fine


def check_cluster_ips_change(after: JsonObject, before: JsonObject, errors: FieldErrors) -> None:
    """A cluster IP stays for life, unless the Service is or becomes an ExternalName."""
    if "ExternalName" in (after["type"], before["type"]):
        return
    new_ips, old_ips = after.get("clusterIPs") or [], before.get("clusterIPs") or []
    if not (is_headless(after) and is_headless(before)):
        if len(old_ips) > len(new_ips) and not new_ips:
            errors.invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")
        count = len(old_ips) if len(old_ips) == len(new_ips) else 1
        for index, (was, now) in enumerate(zip(old_ips[:count], new_ips[:count], strict=False)):
            if was != now:
                errors.invalid(f"spec.clusterIPs[{index}]", new_ips, "may not change once set")
    if is_headless(after) or is_headless(before):
        return
    new_families, old_families = after.get("ipFamilies") or [], before.get("ipFamilies") or []
    count = len(old_families) if len(old_families) == len(new_families) else 1
    for was, now in zip(old_families[:count], new_families[:count], strict=False):
        if was != now:
            errors.invalid("spec.ipFamilies[0]", new_families, "may not change once set")


# -- node ports ------------------------------------------------------------------------------------------------------


def _is_same(one: JsonObject, other: JsonObject) -> bool:
    a, b = one["metadata"], other["metadata"]
    return bool(a["name"] == b.get("name") and a["namespace"] == b.get("namespace"))


class _PortAllocation:
    """The node ports that are free for one Service."""

    def __init__(self, service: JsonObject, context: WriteContext) -> None:
        self._service = service
        self._context = context
        self._used: set[int] | None = None
        self._reserved: set[int] = set()

    def _taken(self) -> set[int]:
        if self._used is None:
            self._used = set()
            for other in self._context.lookup.objects("", "services"):
                if not _is_same(other, self._service):
                    spec = other["spec"]
                    self._used.update(port["nodePort"] for port in spec.get("ports") or () if "nodePort" in port)
                    if spec.get("healthCheckNodePort"):
                        self._used.add(spec["healthCheckNodePort"])
        return self._used

    def problem(self, port: int) -> str:
        """Reserve a port that was asked for; says why if that is not possible. A dry run reserves nothing."""
        if self._context.dry_run:
            taken = port in self._reserved
            self._reserved.add(port)
            return "provided port is already allocated" if taken else ""
        if port not in NODE_PORTS:
            valid = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            return f"provided port is not in the valid range. The range of valid ports is {valid}"
        if port in self._taken():
            return "provided port is already allocated"
        self._taken().add(port)
        return ""

    def next(self) -> int:
        used = self._taken()
        dynamic = len(NODE_PORTS) - _STATIC_PORTS
        start = self._context.rng.randrange(dynamic)
        for step in range(dynamic):
            port = NODE_PORTS[_STATIC_PORTS + (start + step) % dynamic]
            if port not in used:
                used.add(port)
                return port
        for port in NODE_PORTS[:_STATIC_PORTS]:
            if port not in used:
                used.add(port)
                return port
        raise _no_port_left()


def _no_port_left() -> ApiError:
    return BadRequest("failed to allocate a nodePort: range is full; delete Services that are no longer needed")


def _reserve(service: JsonObject, ports: _PortAllocation, index: int, port: int) -> None:
    problem = ports.problem(port)
    if problem:
        path = f"spec.ports[{index}].nodePort"
        _refuse_if(service, lambda errors: errors.invalid(path, port, problem))


def _wants_node_ports(spec: JsonObject) -> bool:
    return bool(spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True))


def _allocate_node_ports(service: JsonObject, ports: _PortAllocation) -> None:
    """Entries with the same port (TCP and UDP) share a node port."""
    spec = service["spec"]
    by_port: dict[int, int] = {}
    entries: list[JsonObject] = spec.get("ports") or []
    for index, entry in enumerate(entries):
        asked = entry.get("nodePort", 0)
        if not asked and not _wants_node_ports(spec):
            continue
        shared = by_port.get(entry["port"], 0)
        if not shared:
            wanted = next((e["nodePort"] for e in entries if e["port"] == entry["port"] and e.get("nodePort")), 0)
            if wanted:
                _reserve(service, ports, index, wanted)
            entry["nodePort"] = by_port[entry["port"]] = wanted or ports.next()
        elif not asked:
            entry["nodePort"] = shared
        elif asked != shared:
            _reserve(service, ports, index, asked)


def _update_node_ports(new: JsonObject, old: JsonObject, ports: _PortAllocation) -> None:
    spec = new["spec"]
    known = {port["nodePort"] for port in old["spec"].get("ports") or () if "nodePort" in port}
    reserved: set[int] = set()
    for index, entry in enumerate(spec.get("ports") or ()):
        asked = entry.get("nodePort", 0)
        if not asked:
            if _wants_node_ports(spec):
                entry["nodePort"] = ports.next()
        elif asked not in known and asked not in reserved:
            _reserve(new, ports, index, asked)
            reserved.add(asked)


def _allocate_health_check(service: JsonObject, ports: _PortAllocation) -> None:
    spec = service["spec"]
    asked = spec.get("healthCheckNodePort", 0)
    if not asked:
        spec["healthCheckNodePort"] = ports.next()
        return
    problem = ports.problem(asked)
    if problem:
        text = f"failed to allocate requested HealthCheck NodePort {asked}: {problem}"
        # Upstream fails with an internal error here, although the request is at fault.
        raise BadRequest(text)
