"""Which nodes are being deleted, how earlier deletions ended, and which pods were evicted a moment ago."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.actuation.results import NodeDeleteResult
from holokube.kube.types import JsonObject

EVICTIONS_REMEMBERED_S = 0.0
"""How long an evicted pod is expected to be created anew elsewhere. Upstream counts on controllers being quick."""


class _Evicted(NamedTuple):
    at_s: float
    pod: JsonObject


class _Ended(NamedTuple):
    at_s: float
    node_name: str
    result: NodeDeleteResult


class NodeDeletionTracker:
    """The deletions in flight and the recent past. Nothing here waits or does I/O."""

    def __init__(self, clock: Clock, *, evictions_ttl_s: float = EVICTIONS_REMEMBERED_S) -> None:
        self._clock = clock
        self._evictions_ttl_s = evictions_ttl_s
        self._per_group: Counter[str] = Counter()
        # Dicts are sets that keep the order in which deletions were started: node name -> group id.
        self._empty: dict[str, str] = {}
        self._drained: dict[str, str] = {}
        self._evictions: list[_Evicted] = []
        self._results: list[_Ended] = []
        self._log = get_logger("holokube.cluster_autoscaler.actuation")

    def start(self, group_id: str, node_name: str, *, drain: bool) -> None:
        """The deletion of a node begins."""
        self._per_group[group_id] += 1
        (self._drained if drain else self._empty)[node_name] = group_id

    def end(self, group_id: str, node_name: str, result: NodeDeleteResult) -> None:
        """The deletion of a node has ended, well or not."""
        self._results.append(_Ended(self._clock.time(), node_name, result))
        if not self.is_in_flight(node_name):
            self._log.error("A deletion ended that was never started", node=node_name, group=group_id)
            return
        self._empty.pop(node_name, None)
        self._drained.pop(node_name, None)
        self._per_group[group_id] -= 1
        if self._per_group[group_id] <= 0:
            del self._per_group[group_id]

    def is_in_flight(self, node_name: str) -> bool:
        """Whether a node is being deleted."""
        return node_name in self._empty or node_name in self._drained

    def in_flight(self) -> tuple[list[str], list[str]]:
        """The names of the empty nodes and of the drained nodes that are being deleted."""
        return list(self._empty), list(self._drained)

    def group_of(self, node_name: str) -> str | None:
        """The group of a node that is being deleted."""
        return self._empty.get(node_name) or self._drained.get(node_name)

    def deletions_in_group(self, group_id: str) -> int:
        """How many nodes of a group are being deleted."""
        return self._per_group.get(group_id, 0)

    def deletions_per_group(self) -> dict[str, int]:
        """The same for every group that has any."""
        return dict(self._per_group)

    def evicted(self, pod: JsonObject) -> None:
        """A pod was evicted just now."""
        self._evictions.append(_Evicted(self._clock.time(), pod))

    def recent_evictions(self) -> list[JsonObject]:
        """The pods whose replacements may not have been created yet."""
        since_s = self._clock.time() - self._evictions_ttl_s
        self._evictions = [entry for entry in self._evictions if entry.at_s > since_s]
        return [entry.pod for entry in self._evictions]

    def results(self) -> tuple[dict[str, NodeDeleteResult], float]:
        """The results not cleared yet, by node, and the time of the newest; now if there are none."""
        if not self._results:
            return {}, self._clock.time()
        return {entry.node_name: entry.result for entry in self._results}, self._results[-1].at_s

    def clear_results_not_newer_than(self, at_s: float) -> None:
        """Forget the results up to and including a time."""
        self._results = [entry for entry in self._results if entry.at_s > at_s]
