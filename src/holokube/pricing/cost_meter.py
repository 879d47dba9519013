"""What a cluster has cost: prices of nodes over the time they lived, and who caused them.

Sums are made from left to right in the order of events, so that the same run gives the same cost to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from holokube.kube.resources import CPU, MEMORY

_HOUR_S: Final = 3600.0
IDLE: Final = ""
"""The workload to which belongs what nobody asked for."""


class PodShare(NamedTuple):
    """What one pod asks of its node."""

    workload: str
    requests: Mapping[str, int]


def workload_fractions(allocatable: Mapping[str, int], pods: Iterable[PodShare]) -> dict[str, float]:
    """Which part of a node each workload takes by its requests, the rest under :data:`IDLE`; together 1.

    Cpu and memory count half each, as parts of what the node can give. On a node that is asked for more than it has
    nothing is idle, and all parts shrink alike.
    """
    parts: dict[str, float] = {}
    total = 0.0
    for pod in pods:
        part = 0.0
        for name in (CPU, MEMORY):
            available = allocatable.get(name, 0)
            if available > 0:
                part += 0.5 * (pod.requests.get(name, 0) / available)
        parts[pod.workload] = parts.get(pod.workload, 0.0) + part
        total += part
    if total > 1.0:
        return {workload: part / total for workload, part in parts.items()}
    if total < 1.0:
        parts[IDLE] = parts.get(IDLE, 0.0) + (1.0 - total)
    return parts


class _Running:
    """A node that costs."""

    __slots__ = ("fractions", "fractions_since_s", "group", "price_usd_per_hour", "since_s")

    def __init__(self, price_usd_per_hour: float, since_s: float, group: str) -> None:
        self.price_usd_per_hour = price_usd_per_hour
        self.since_s = since_s
        self.group = group
        self.fractions: dict[str, float] = {IDLE: 1.0}
        self.fractions_since_s = since_s

    def cost(self, since_s: float, now_s: float) -> float:
        return self.price_usd_per_hour * (now_s - since_s) / _HOUR_S


@dataclass(frozen=True, slots=True)
class Bill:
    """What was spent up to a moment."""

    total_usd: float
    usd_per_hour: float
    """What the nodes that run at this moment cost in an hour."""
    nodes: int
    node_hours: float
    by_group: Mapping[str, float]
    """USD by what nodes were counted under: pools, capacity types or instance types, as the caller chose."""
    by_workload: Mapping[str, float]
    """USD by whose requests took the nodes up; what was idle is under :data:`IDLE`."""


class _Sums:
    """USD and seconds so far."""

    def __init__(self) -> None:
        self.total_usd = 0.0
        self.node_s = 0.0
        self.by_group: dict[str, float] = {}
        self.by_workload: dict[str, float] = {}

    def copy(self) -> _Sums:
        made = _Sums()
        made.total_usd, made.node_s = self.total_usd, self.node_s
        made.by_group, made.by_workload = dict(self.by_group), dict(self.by_workload)
        return made

    def take(self, running: _Running, now_s: float) -> float:
        cost = running.cost(running.since_s, now_s)
        self.total_usd += cost
        self.node_s += now_s - running.since_s
        self.by_group[running.group] = self.by_group.get(running.group, 0.0) + cost
        self.take_fractions(running, now_s)
        return cost

    def take_fractions(self, running: _Running, now_s: float) -> None:
        cost = running.cost(running.fractions_since_s, now_s)
        for workload, part in running.fractions.items():
            self.by_workload[workload] = self.by_workload.get(workload, 0.0) + cost * part


class CostMeter:
    """Counts each node from :meth:`start` to :meth:`stop`; times are seconds on the caller's clock.

    A change of price ends one count and begins another. Time never goes backwards.
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s
        self._running: dict[str, _Running] = {}
        self._sums = _Sums()

    def start(self, node: str, price_usd_per_hour: float, now_s: float, group: str = "") -> None:
        """A node begins to cost; one that runs already goes on at this price, with the same pods."""
        if not 0 <= price_usd_per_hour < math.inf:
            raise ValueError(f"node {node}: {price_usd_per_hour} is no price")
        self._advance(now_s)
        before = self._running.get(node)
        if before is not None:
            self.stop(node, now_s)
        running = self._running[node] = _Running(price_usd_per_hour, now_s, group)
        if before is not None:
            running.fractions = before.fractions

    def set_pods(self, node: str, fractions: Mapping[str, float], now_s: float) -> None:
        """Who takes the node up from now on, see :func:`workload_fractions`. Unknown nodes cost nobody anything."""
        self._advance(now_s)
        running = self._running.get(node)
        if running is not None:
            self._sums.take_fractions(running, now_s)
            running.fractions, running.fractions_since_s = dict(fractions), now_s

    def stop(self, node: str, now_s: float) -> float:
        """A node ceases to cost; returns what it cost since it started. An unknown node cost nothing."""
        self._advance(now_s)
        running = self._running.pop(node, None)
        return 0.0 if running is None else self._sums.take(running, now_s)

    @property
    def usd_per_hour(self) -> float:
        """What the running nodes cost in an hour."""
        total = 0.0
        for running in self._running.values():
            total += running.price_usd_per_hour
        return total

    def bill(self, now_s: float) -> Bill:
        """What was spent up to now; the nodes run on."""
        self._advance(now_s)
        sums = self._sums.copy()
        for running in self._running.values():
            sums.take(running, now_s)
        node_hours = sums.node_s / _HOUR_S
        return Bill(
            sums.total_usd, self.usd_per_hour, len(self._running), node_hours, sums.by_group, sums.by_workload
        )

    def _advance(self, now_s: float) -> None:
        if now_s < self._now_s:
            raise ValueError(f"the cost meter cannot go back from {self._now_s} s to {now_s} s")
        self._now_s = now_s
