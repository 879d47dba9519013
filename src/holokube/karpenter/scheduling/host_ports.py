"""Ports of the node that pods take for themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, NamedTuple

_EMPTY: Final[Mapping[str, Any]] = {}


class HostPort(NamedTuple):
    """A port, on one address of the node or on all."""

    protocol: str
    port: int
    address: IPv4Address | IPv6Address | None
    """None for all of them."""

    def conflicts_with(self, other: HostPort) -> bool:
        """Whether both cannot be taken on one node."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.address is None or other.address is None or self.address == other.address


def host_ports_of(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """The node's ports that the containers of a pod need; those of init containers do not count."""
    found = []
    for container in spec.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                address = _address(port.get("hostIP") or "")
                found.append(HostPort(port.get("protocol") or "TCP", int(port["hostPort"]), address))
    return tuple(found)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    if not text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        # An address that is none is still not that of another pod.
        return IPv6Address(0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return None if address.is_unspecified else address


def any_conflict(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Whether any wanted port is taken."""
    held = tuple(taken)
    return any(port.conflicts_with(other) for port in wanted for other in held)
