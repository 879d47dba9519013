"""Which pods nobody will clean up any more: upstream's pod garbage collector, as a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holokube.client.cache import Lister
from holokube.kube.conditions import is_true
from holokube.kube.taints import NODE_OUT_OF_SERVICE, taints_of
from holokube.kube.types import JsonObject
from holokube.workloads.pod_status import is_terminated, node_of

TERMINATED_THRESHOLD: Final = 12_500
"""``--terminated-pod-gc-threshold``."""
QUARANTINE_S: Final = 40.0
"""How long a node has to be missing before its pods go: it may only be late in the cache."""


@dataclass(frozen=True, slots=True)
class Removal:
    """A pod to be deleted by force; with a message it is marked as disrupted before."""

    pod: JsonObject
    disruption: str = ""

    @property
    def fails(self) -> bool:
        """Whether it has to be marked Failed first: no kubelet will say how it ended."""
        return not is_terminated(self.pod)


def surplus_terminated(terminated: Sequence[JsonObject], threshold: int) -> list[Removal]:
    """The oldest of the pods that are over, beyond the threshold; evicted ones go first. 0 keeps all."""
    surplus = len(terminated) - threshold
    if threshold <= 0 or surplus <= 0:
        return []
    ordered = sorted(terminated, key=_eviction_and_age)
    return [Removal(pod) for pod in ordered[:surplus]]


def stuck_terminating(terminating: Iterable[JsonObject], nodes: Lister) -> list[Removal]:
    """Pods being deleted that no kubelet will finish: on a node out of service, or on none at all."""
    removals = []
    for pod in terminating:
        name = node_of(pod)
        if not name:
            removals.append(Removal(pod))
            continue
        node = nodes.get(name)
        if node is not None and not is_true(node, "Ready") and is_out_of_service(node):
            removals.append(Removal(pod))
    return removals


def is_out_of_service(node: Mapping[str, Any]) -> bool:
    return any(taint.key == NODE_OUT_OF_SERVICE for taint in taints_of(node))


def orphaned(pods: Iterable[JsonObject]) -> list[Removal]:
    """Pods of a node that is known to be gone."""
    return [Removal(pod, "PodGC: node no longer exists") for pod in pods]


def _eviction_and_age(pod: Mapping[str, Any]) -> tuple[bool, str, str]:
    status = pod.get("status") or {}
    evicted = status.get("phase") == "Failed" and status.get("reason") == "Evicted"
    meta = pod["metadata"]
    return not evicted, str(meta.get("creationTimestamp") or ""), str(meta["name"])
