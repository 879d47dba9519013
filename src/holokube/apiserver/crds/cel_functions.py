"""Functions that Kubernetes adds to CEL: quantities, addresses, URLs, lists, regular expressions, name formats.

The evaluator knows no types of our own, so that a quantity, an address and the like are maps with one key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_interface, ip_network
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from holokube.apiserver.crds import formats
from holokube.apiserver.crds.cel_syntax import OPTIONAL_FIELD, SIZE
from holokube.kube import names, quantity

Function = Callable[..., Any]


def _quantity_of(value: Any) -> quantity.Quantity:
    return quantity.parse(value["quantity"])


def _as_quantity(text: str) -> dict[str, str]:
    return {"quantity": str(quantity.parse(text))}


def _accepts(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _sign(value: Any) -> int:
    return _quantity_of(value).sign()


def _compare(left: Any, right: Any) -> int:
    if "quantity" in left:
        a, b = _quantity_of(left), _quantity_of(right)
        return (a > b) - (a < b)
    x, y = _semver_key(left["semver"]), _semver_key(right["semver"])
    return (x > y) - (x < y)


def _add(left: Any, right: Any) -> dict[str, str]:
    other = _quantity_of(right) if isinstance(right, Mapping) else quantity.parse(right)
    return {"quantity": str(_quantity_of(left) + other)}


def _sub(left: Any, right: Any) -> dict[str, str]:
    other = _quantity_of(right) if isinstance(right, Mapping) else quantity.parse(right)
    return {"quantity": str(_quantity_of(left) - other)}


def _is_integer(value: Any) -> bool:
    return _quantity_of(value).milli() % 1000 == 0


_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


def _as_semver(text: str) -> dict[str, str]:
    if _SEMVER.fullmatch(text) is None:
        raise ValueError(f"{text} is not a semantic version")
    return {"semver": text}


def _semver_key(text: str) -> tuple[Any, ...]:
    match = _SEMVER.fullmatch(text)
    assert match is not None
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in (match[4] or "").split(".") if p]
    return int(match[1]), int(match[2]), int(match[3]), not match[4], parts


def _as_ip(value: Any) -> dict[str, str]:
    """``ip('10.0.0.1')``, and the address of a range."""
    if isinstance(value, Mapping):
        return {"ip": str(ip_interface(value["cidr"]).ip)}
    if "%" in value:
        raise ValueError(f"{value} has a zone")
    return {"ip": str(ip_address(value))}


def _as_cidr(text: str) -> dict[str, str]:
    if "/" not in text:
        raise ValueError(f"{text} is not a CIDR")
    return {"cidr": str(ip_interface(text))}


def _network(value: Any) -> Any:
    return ip_network(value["cidr"] if isinstance(value, Mapping) else value, strict=False)


def _contains_ip(value: Any, address: Any) -> bool:
    found = ip_address(address["ip"] if isinstance(address, Mapping) else address)
    return found in _network(value)


def _contains_cidr(value: Any, other: Any) -> bool:
    outer, inner = _network(value), _network(other)
    return outer.version == inner.version and bool(inner.subnet_of(outer))


def _about_ip(attribute: str) -> Function:
    return lambda value: bool(getattr(ip_address(value["ip"]), attribute))


def _as_url(text: str) -> dict[str, str]:
    if not formats.is_uri(text):
        raise ValueError(f"{text} is not a URL")
    return {"url": text}


def _is_sorted(values: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(values))


def _index_of(value: Any, part: Any, *start: int) -> int:
    if isinstance(value, str):
        return value.find(part, *start)
    return value.index(part) if part in value else -1


def _last_index_of(value: Any, part: Any) -> int:
    if isinstance(value, str):
        return value.rfind(part)
    return len(value) - 1 - value[::-1].index(part) if part in value else -1


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text, re.ASCII)
    return found[0] if found is not None else ""


def _find_all(text: str, pattern: str, *limit: int) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text, re.ASCII)]
    return found[: limit[0]] if limit and limit[0] >= 0 else found


def _format(template: str, values: list[Any]) -> str:
    """``'%s is %d'.format([...])``."""
    remaining = list(values)

    def replace(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        value = remaining.pop(0)
        if match[2] == "s":
            return _text(value)
        if match[2] == "d":
            return str(int(value))
        if match[2] in "fe":
            return f"%{match[1] or '.6'}{match[2]}" % float(value)
        return format(int(value), match[2])

    return re.sub(r"%(?:(\.\d+)?([sdfexXob])|%)", replace, template)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_text(item) for item in value)}]"
    return "null" if value is None else str(value)


_NAME_FORMATS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "dns1123Label": names.is_dns1123_label,
    "dns1123Subdomain": names.is_dns1123_subdomain,
    "dns1035Label": names.is_dns1035_label,
    "qualifiedName": names.is_qualified_name,
    "labelValue": names.is_label_value,
    "uri": lambda text: [] if formats.is_uri(text) else ["invalid URI"],
    "uuid": lambda text: [] if formats.FORMATS["uuid"](text) else ["does not match the UUID format"],
    "byte": lambda text: [] if formats.FORMATS["byte"](text) else ["invalid base64"],
    "date": lambda text: [] if formats.is_date(text) else ["invalid date"],
    "datetime": lambda text: [] if formats.is_date_time(text) else ["invalid datetime"],
}


_FUNCTIONS: Final[Mapping[str, Function]] = {
    SIZE: len,
    "quantity": _as_quantity,
    "isQuantity": _accepts(_as_quantity),
    "sign": _sign,
    "isInteger": _is_integer,
    "asInteger": lambda value: _quantity_of(value).value(),
    "asApproximateFloat": lambda value: _quantity_of(value).milli() / 1000,
    "add": _add,
    "sub": _sub,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "compareTo": _compare,
    "semver": _as_semver,
    "isSemver": _accepts(_as_semver),
    "major": lambda value: _semver_key(value["semver"])[0],
    "minor": lambda value: _semver_key(value["semver"])[1],
    "patch": lambda value: _semver_key(value["semver"])[2],
    "ip": _as_ip,
    "isIP": _accepts(_as_ip),
    "ip.isCanonical": lambda text: str(ip_address(text)) == text,
    "family": lambda value: ip_address(value["ip"]).version,
    "isLoopback": _about_ip("is_loopback"),
    "isUnspecified": _about_ip("is_unspecified"),
    "isGlobalUnicast": lambda value: (
        not any(
            getattr(ip_address(value["ip"]), name)
            for name in ("is_multicast", "is_loopback", "is_link_local", "is_unspecified")
        )
    ),
    "isLinkLocalUnicast": _about_ip("is_link_local"),
    "isLinkLocalMulticast": lambda value: value["ip"].startswith(("224.0.0.", "ff02:")),
    "cidr": _as_cidr,
    "isCIDR": _accepts(_as_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": lambda value: {"cidr": str(_network(value))},
    "prefixLength": lambda value: _network(value).prefixlen,
    "url": _as_url,
    "isURL": _accepts(_as_url),
    "getScheme": lambda value: urlsplit(value["url"]).scheme,
    "getHost": lambda value: urlsplit(value["url"]).netloc.rpartition("@")[2],
    "getHostname": lambda value: urlsplit(value["url"]).hostname or "",
    "getPort": lambda value: str(urlsplit(value["url"]).port or ""),
    "getEscapedPath": lambda value: urlsplit(value["url"]).path,
    "getQuery": lambda value: parse_qs(urlsplit(value["url"]).query, keep_blank_values=True),
    "isSorted": _is_sorted,
    "sum": sum,
    "min": lambda *values: min(values[0] if len(values) == 1 else values),
    "max": lambda *values: max(values[0] if len(values) == 1 else values),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "find": _find,
    "findAll": _find_all,
    "format": _format,
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
}


def functions(optional: Any) -> dict[str, Function]:
    """All functions by name; ``optional`` is the evaluator's class of optional values."""

    def select(value: Any, key: Any) -> Any:
        if isinstance(value, optional):
            if not value.has_value():
                return value
            value = value.value()
        if isinstance(value, list):
            present = isinstance(key, int) and 0 <= key < len(value)
        else:
            present = isinstance(value, Mapping) and key in value
        return optional.of(value[key]) if present else optional.none()

    def validate(form: Any, text: str) -> Any:
        problems = _NAME_FORMATS[form["format"]](text)
        return optional.of(problems) if problems else optional.none()

    found: dict[str, Function] = {**_FUNCTIONS, OPTIONAL_FIELD: select, "validate": validate}
    for name in _NAME_FORMATS:
        found[f"format.{name}"] = lambda name=name: {"format": name}
    return found
