"""What of a node is not used, and what of that can never be used by pods like those on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holokube.cluster_autoscaler.objects import is_daemon_set_pod, is_finished, is_mirror, requests_milli
from holokube.kube import quantity
from holokube.kube.types import JsonObject

RESOURCES = ("cpu", "memory")


class Waste(NamedTuple):
    """The room on a node, in milli-units by resource."""

    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    free: Mapping[str, int]
    remainder: Mapping[str, int]
    """What would be left of each resource, taken by itself, after as many more pods of the commonest kind as it holds:
    the part that does not divide."""
    stranded: Mapping[str, int]
    """What is left after as many more pods of that kind as really fit: the one resource that is used up holds back the
    others."""
    kind: Mapping[str, int] | None
    """What a pod of the commonest kind asks for; None if the node has no pods but daemons."""

    def as_json(self) -> dict[str, Any]:
        """Plain values: cores as numbers, memory in bytes."""
        found: dict[str, Any] = {
            "allocatable": _plain(self.allocatable), "requested": _plain(self.requested), "free": _plain(self.free)}
        if self.kind is not None:
            found |= {
                "wasted": _plain(self.remainder), "stranded": _plain(self.stranded),
                "commonestRequest": _plain(self.kind)}
        return found


def waste_of(node: JsonObject, pods: Sequence[JsonObject]) -> Waste:
    """What of a node is not used by these pods."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    allocatable = {name: quantity.milli_of(offered.get(name, 0)) for name in RESOURCES}
    requests = [requests_milli(pod) for pod in pods if not is_finished(pod)]
    requested = {name: sum(one.get(name, 0) for one in requests) for name in RESOURCES}
    free = {name: max(0, allocatable[name] - requested[name]) for name in RESOURCES}
    kinds = Counter(
        tuple(requests_milli(pod).get(name, 0) for name in RESOURCES)
        for pod in pods if not (is_finished(pod) or is_mirror(pod) or is_daemon_set_pod(pod)))
    kinds.pop((0,) * len(RESOURCES), None)
    if not kinds:
        return Waste(allocatable, requested, free, free, free, None)
    # Of kinds that are equally common the largest decides: the small ones fill the gaps.
    commonest = max(kinds.items(), key=lambda item: (item[1], item[0]))[0]
    kind = dict(zip(RESOURCES, commonest, strict=True))
    remainder = {name: free[name] % kind[name] if kind[name] else free[name] for name in RESOURCES}
    more = min(free[name] // kind[name] for name in RESOURCES if kind[name])
    stranded = {name: free[name] - more * kind[name] for name in RESOURCES}
    return Waste(allocatable, requested, free, remainder, stranded, kind)


def _plain(amounts: Mapping[str, int]) -> dict[str, Any]:
    return {"cpu": amounts["cpu"] / 1000, "memory": amounts["memory"] // 1000}
