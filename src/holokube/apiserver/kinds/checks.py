"""Rules that many kinds share: quantities, addresses, selectors, immutable fields, references."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

from holokube.apiserver.field_errors import FieldErrors, show
from holokube.kube import addresses, names, quantity
from holokube.kube.resources import is_extended_resource, is_native_resource
from holokube.kube.selectors import validate_label_selector
from holokube.kube.types import JsonObject

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
POSITIVE: Final = "must be greater than zero"
IMMUTABLE: Final = "field is immutable"
_NOT_INTEGER: Final = "must be an integer"

# Resources that are counted in whole numbers; extended resources are as well.
INTEGER_RESOURCES: Final = frozenset({
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
})  # fmt: skip


def masked(name: str, *, prefix: bool) -> str:
    """A name ready to be checked; a ``generateName`` may end in a dash."""
    return names.mask_trailing_dash(name) if prefix else name


def check_quantity(name: str, value: str, path: str, errors: FieldErrors) -> None:
    """A resource's amount: not negative, and whole for what is counted."""
    for problem in _quantity_problems(name, value):
        errors.invalid(path, value, problem)


# Nodes of a fleet are alike, and each of them reports its dozen amounts again and again.
@lru_cache(maxsize=16_384)
def _quantity_problems(name: str, value: str) -> tuple[str, ...]:
    amount = quantity.parse(value)
    problems = [NOT_NEGATIVE] if amount.sign() < 0 else []
    counted = name in INTEGER_RESOURCES or ("/" in name and is_extended_resource(name))
    if counted and amount.milli() % 1000:
        problems.append(_NOT_INTEGER)
    return tuple(problems)


def round_to_milli(resources: JsonObject | None) -> None:
    """Stored resource lists hold nothing finer than a thousandth."""
    for name, value in (resources or {}).items():
        if value[-1] in "nu":
            resources[name] = str(quantity.parse(value).rounded_up_to_milli())  # type: ignore[index]  # not empty here


def check_immutable(new: Any, old: Any, path: str, errors: FieldErrors) -> None:
    """``field is immutable`` unless both are the same; absent and None are the same."""
    if new != old:
        errors.invalid(path, new, IMMUTABLE)


def check_not_negative(value: int | None, path: str, errors: FieldErrors) -> None:
    if value is not None and value < 0:
        errors.invalid(path, value, NOT_NEGATIVE)


def check_selector(selector: Mapping[str, Any] | None, path: str, errors: FieldErrors) -> None:
    """A label selector in JSON."""
    errors.causes.extend(validate_label_selector(selector, path))


def check_one_of(value: str, allowed: Sequence[str], path: str, errors: FieldErrors) -> None:
    """Required, and one of a few words."""
    if not value:
        errors.required(path)
    elif value not in allowed:
        errors.not_supported(path, value, allowed)


def check_name(value: str, path: str, errors: FieldErrors, rule: Callable[[str], list[str]]) -> None:
    errors.all_invalid(path, value, rule(value))


def check_port_or_name(port: int | str, path: str, errors: FieldErrors) -> None:
    problems = names.is_port_number(port) if isinstance(port, int) else names.is_port_name(port)
    errors.all_invalid(path, port, problems)


def check_legacy_ip(value: str, path: str, errors: FieldErrors, known: Iterable[str] = ()) -> bool:
    """An address in an old field; what was there before stays acceptable. Returns whether it is fine."""
    if value in known:
        return True
    problems = addresses.is_legacy_ip(value)
    errors.all_invalid(path, value, problems)
    return not problems


def check_legacy_cidr(value: str, path: str, errors: FieldErrors, known: Iterable[str] = ()) -> None:
    if value not in known:
        errors.all_invalid(path, value, _legacy_cidr_problems(value))


@lru_cache(maxsize=16_384)
def _legacy_cidr_problems(value: str) -> tuple[str, ...]:
    return tuple(addresses.is_legacy_cidr(value))


def check_endpoint_ip(value: str, path: str, errors: FieldErrors) -> None:
    """An address that traffic can be sent to."""
    try:
        # Leading zeros are somebody else's complaint.
        ip = ip_address(_LEADING_ZEROS.sub("", value))
    except ValueError:
        errors.invalid(path, value, "must be a valid IP address")
        return
    if ip.is_unspecified:
        errors.invalid(path, value, f"may not be unspecified ({value})")
    if ip.is_loopback:
        errors.invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if ip.is_link_local:
        errors.invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if ip in _LINK_LOCAL_MULTICAST[ip.version]:
        errors.invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")
_LINK_LOCAL_MULTICAST: Final = {4: ip_network("224.0.0.0/24"), 6: ip_network("ff02::/16")}


def is_ipv6(value: str) -> bool:
    try:
        return isinstance(ip_address(value), IPv6Address)
    except ValueError:
        return False


def ip_warnings(value: str, path: str) -> list[str]:
    """IPv6 addresses are expected in canonical form."""
    if ":" not in value:
        return []
    try:
        ip = ip_address(value)
    except ValueError:
        return []
    if isinstance(ip, IPv6Address) and str(ip) != value:
        return [f"{path}: IPv6 address {show(value)} should be in RFC 5952 canonical format ({show(str(ip))})"]
    return []


def cidr_warnings(value: str, path: str) -> list[str]:
    """IPv6 ranges are expected in canonical form."""
    if ":" not in value:
        return []
    try:
        network = ip_network(value.strip())
    except ValueError:
        return []
    if network.version == 6 and str(network) != value:
        return [f"{path}: IPv6 CIDR value {show(value)} should be in RFC 5952 canonical format ({show(str(network))})"]
    return []


def child(obj: Mapping[str, Any], key: str) -> JsonObject:
    """A part of an object, for reading; empty if it is not there."""
    return obj.get(key) or {}


STANDARD_RESOURCES: Final = frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services",
    "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "storage", "requests.storage",
    "services.nodeports", "services.loadbalancers",
})  # fmt: skip
_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-")


def check_resource_name(name: str, path: str, errors: FieldErrors) -> None:
    """``cpu``, ``requests.storage``, ``example.com/gadget``: something that quotas and limits can count."""
    problems = names.is_qualified_name(name)
    if problems:
        errors.all_invalid(path, name, problems)
    elif "/" not in name and name not in STANDARD_RESOURCES and not name.startswith(_HUGE_PAGES):
        errors.invalid(path, name, "must be a standard resource type or fully qualified")


def check_container_resource_name(name: str, path: str, errors: FieldErrors) -> None:
    """Something that a container can ask for."""
    check_resource_name(name, path, errors)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith("hugepages-"):
            errors.invalid(path, name, "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        errors.invalid(path, name, "doesn't follow extended resource name standard")


# Node labels that got another name long ago.
_RENAMED_LABELS: Final = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}


def label_warnings(key: str, path: str) -> list[str]:
    """What is said about a selector on a node label that has been renamed."""
    renamed = _RENAMED_LABELS.get(key)
    return [f'{path}: deprecated since {renamed[0]}; use "{renamed[1]}" instead'] if renamed else []


def node_term_warnings(term: JsonObject, path: str) -> list[str]:
    found = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        at = f"{path}.matchExpressions[{index}].key"
        found += [f"{at}: {key} is {text.removeprefix(f'{at}: ')}" for text in label_warnings(key, at)]
    return found


def go_diff(before: Any, after: Any) -> str:
    """Two values as a unified diff of indented JSON, which some messages contain."""
    old, new = (json.dumps(value, indent=1, ensure_ascii=False).splitlines() for value in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=3))
    return "".join(f"{line}\n" for line in lines[2:])
