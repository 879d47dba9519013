"""Host ports in use: by protocol and port, on which node and on which addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from holokube.packing.podclass import WILDCARD_IP, HostPort


class PortUsage:
    """Who has which port. The address ``0.0.0.0`` overlaps with every other."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def add(self, row: int, ports: Iterable[HostPort], pods: int) -> None:
        """A pod with these ports came to a node (1) or left it (-1)."""
        for ip, protocol, port in ports:
            rows = self._users.setdefault((protocol, port), {})
            addresses = rows.setdefault(row, Counter())
            addresses[ip] += pods
            if not addresses[ip]:
                del addresses[ip]
            if not addresses:
                del rows[row]
            if not rows:
                del self._users[(protocol, port)]

    def conflicts(self, row: int, ports: Iterable[HostPort]) -> bool:
        """Whether one of the wanted ports is taken on a node."""
        for wanted in ports:
            addresses = self._users.get((wanted.protocol, wanted.port), {}).get(row)
            if addresses and _overlap(wanted.ip, addresses):
                return True
        return False

    def rows_in_conflict(self, ports: Iterable[HostPort]) -> Iterator[int]:
        """The nodes on which one of the wanted ports is taken."""
        for wanted in ports:
            for row, addresses in self._users.get((wanted.protocol, wanted.port), {}).items():
                if _overlap(wanted.ip, addresses):
                    yield row


def _overlap(ip: str, taken: Counter[str]) -> bool:
    return ip == WILDCARD_IP or ip in taken or WILDCARD_IP in taken
