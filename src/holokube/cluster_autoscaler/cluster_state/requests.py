"""What was asked of the provider and is not done yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class ScaleUpRequest:
    """Machines that a group was asked for."""

    group_id: str
    time_s: float
    expected_by_s: float
    increase: int


class ScaleDownRequest(NamedTuple):
    """A node that is being removed."""

    group_id: str
    node_name: str
    time_s: float
    expected_by_s: float


class ScaleUpRequests:
    """At most one request per group; a further one is added to it."""

    def __init__(self) -> None:
        self._by_group: dict[str, ScaleUpRequest] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group

    def get(self, group_id: str) -> ScaleUpRequest | None:
        """The open request of a group."""
        return self._by_group.get(group_id)

    def all(self) -> list[ScaleUpRequest]:
        """The open requests."""
        return list(self._by_group.values())

    def add(self, group_id: str, delta: int, now_s: float, provision_time_s: float) -> None:
        """More machines were asked for; or fewer are wanted, which does not give the others more time."""
        request = self._by_group.get(group_id)
        if request is None:
            if delta > 0:
                self._by_group[group_id] = ScaleUpRequest(group_id, now_s, now_s + provision_time_s, delta)
            return
        if request.increase + delta <= 0:
            del self._by_group[group_id]
            return
        request.increase += delta
        if delta > 0:
            request.time_s = now_s
            request.expected_by_s = now_s + provision_time_s

    def remove(self, group_id: str) -> None:
        """The request is fulfilled or given up."""
        self._by_group.pop(group_id, None)
