"""IP addresses and CIDR ranges as the API checks them, with upstream's words for what is wrong.

Upstream first reads an address sloppily (leading zeros pass), then complains about what a careful reader
would not take. The ``legacy`` checks are those of old fields such as ``podIP``: they accept an address that
is valid but not in canonical form. Every function returns the list of complaints.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

from holokube.kube.quoting import go_quote

_DECIMAL_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN_IPV4 = re.compile(rf"(?:{_DECIMAL_OCTET}\.){{3}}{_DECIMAL_OCTET}", re.ASCII)
_OCTET = re.compile(r"0*([0-9]{1,3})", re.ASCII)
_GROUP = re.compile(r"0*([0-9a-fA-F]{1,4})", re.ASCII)
_PREFIX_LENGTH = re.compile(r"0*([0-9]{1,3})", re.ASCII)


def is_ip(value: str) -> list[str]:
    """An address in canonical form, as newer fields demand it."""
    errors = is_legacy_ip(value)
    if errors:
        return errors
    canonical = str(ip_address(value))
    return [] if value == canonical else [f"must be in canonical form ({go_quote(canonical)})"]


def is_legacy_ip(value: str) -> list[str]:
    """An address that every reader understands the same way, canonical or not."""
    if _PLAIN_IPV4.fullmatch(value):
        return []
    sloppy = _sloppy_ip(value)
    if sloppy is None:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    if _strict_ip(value) is None:
        return ["must not have leading 0s"]
    if isinstance(sloppy, IPv6Address) and sloppy.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return []


def is_cidr(value: str) -> list[str]:
    """A range in canonical form, as newer fields demand it."""
    errors = is_legacy_cidr(value)
    if errors:
        return errors
    address, _, length = value.partition("/")
    canonical = f"{ip_address(address)}/{int(length)}"
    return [] if value == canonical else [f"must be in canonical form ({go_quote(canonical)})"]


def is_legacy_cidr(value: str) -> list[str]:
    """A range without bits beyond its prefix, canonical or not."""
    text, slash, length_text = value.partition("/")
    sloppy = _sloppy_ip(text)
    length = _PREFIX_LENGTH.fullmatch(length_text)
    if not slash or sloppy is None or length is None or int(length[1]) > sloppy.max_prefixlen:
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    if _strict_ip(text) is None or (length_text != "0" and length_text.startswith("0")):
        return ["must not have leading 0s in IP or prefix length"]
    if isinstance(sloppy, IPv6Address) and sloppy.ipv4_mapped is not None:
        return ["must not have an IPv4-mapped IPv6 address"]
    if int(sloppy) & ((1 << (sloppy.max_prefixlen - int(length[1]))) - 1):
        return ["must not have bits set beyond the prefix length"]
    return []


def _strict_ip(value: str) -> IPv4Address | IPv6Address | None:
    # Python also reads zones (``fe80::1%eth0``), which the API does not.
    if "%" in value:
        return None
    try:
        return ip_address(value)
    except ValueError:
        return None


def _sloppy_ip(value: str) -> IPv4Address | IPv6Address | None:
    """The address with leading zeros ignored wherever they stand."""
    head, colon, tail = value.rpartition(":")
    if "." in tail:
        octets = [_OCTET.fullmatch(part) for part in tail.split(".")]
        tail = ".".join(match[1] if match else "x" for match in octets)
        tail = ".".join(str(int(part)) if part.isdigit() else part for part in tail.split("."))
    elif colon:
        tail = _plain_group(tail)
    if colon:
        head = ":".join(_plain_group(part) for part in head.split(":"))
    return _strict_ip(f"{head}{colon}{tail}")


def _plain_group(part: str) -> str:
    match = _GROUP.fullmatch(part)
    return match[1] if match else part
