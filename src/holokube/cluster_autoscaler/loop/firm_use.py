"""Which nodes are used by more than the threshold for sure, kept up to date pod by pod.

What is summed up is a part of what a turn counts: pods that are on their way out and those of DaemonSets are left out,
for a turn may leave them out too. A node whose part is above the threshold is above it in every turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holokube.client.informer import EventType
from holokube.cluster_autoscaler.objects import is_daemon_set_pod, is_mirror
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.kube.resources import CPU, MEMORY, parse_resources, pod_requests
from holokube.kube.types import JsonObject

_FINISHED: Final = ("Succeeded", "Failed")
_NEAR: Final = 1e-6
_EMPTY: Final[Mapping[str, Any]] = {}


class FirmUse:
    """A handler of the informer of pods."""

    def __init__(self, *, wants_unseen: bool = False) -> None:
        """``wants_unseen``: pods count that no scheduler has looked at yet."""
        self._wants_unseen = wants_unseen
        self._taken: dict[str, tuple[str, int, int]] = {}
        """Node, millicores and milli-bytes by uid of pods."""
        self._sums: dict[str, list[int]] = {}
        self._touched: set[str] = set()
        self._needed: dict[str, tuple[float, float] | None] = {}
        """Above how much of cpu, or of memory, a node is used firmly; None for one of which it does not matter."""
        self._sizes: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._waits = False
        self.has_changed = False

    def forget_changes(self) -> None:
        """A turn looks at everything anew."""
        self._touched.clear()
        self._waits = self.has_changed = False

    def judge(self, unremovable: Iterable[Unremovable]) -> None:
        """Take over what a turn thought of the nodes; pods on others always make a difference."""
        self._needed = {}
        for stays in unremovable:
            if stays.reason is UnremovableReason.NOT_UNDERUTILIZED:
                used = stays.utilization
                if used is not None and used.resource in (CPU, MEMORY) and stays.threshold is not None:
                    self._needed[stays.name] = _limits(stays.node, stays.threshold)
            elif stays.reason is UnremovableReason.RECENTLY_UNREMOVABLE:
                # Not looked at again before its time, whatever runs on it.
                self._needed[stays.name] = None

    def stays_firm(self) -> bool:
        """Whether no pod waits, and all nodes whose pods have changed are still what they were thought to be."""
        if self._waits:
            return False
        for name in self._touched:
            if name not in self._needed:
                return False
            limits = self._needed[name]
            cpu, memory = self._sums.get(name, (0, 0))
            if limits is not None and cpu <= limits[0] and memory <= limits[1]:
                return False
        self._touched.clear()
        return True

    def on_pod(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """A pod came, changed or went."""
        self.has_changed = True
        obj = new if new is not None else old
        assert obj is not None
        uid = obj["metadata"]["uid"]
        if old is not None and old["metadata"]["uid"] != uid:
            self._drop(old["metadata"]["uid"])
        spec, status = obj["spec"], obj.get("status") or _EMPTY
        node = spec.get("nodeName")
        if not node:
            self._waits = self._waits or (new is not None and self._may_wait(status))
            return
        is_there = new is not None and status.get("phase") not in _FINISHED
        if is_there and uid in self._taken and not obj["metadata"].get("deletionTimestamp"):
            # What a running pod asks for changes only when it is resized, which its status tells.
            if old is None or old["spec"] == spec:
                return
            self._drop(uid)
        self._touched.add(node)
        if not is_there or obj["metadata"].get("deletionTimestamp") or is_daemon_set_pod(obj) or is_mirror(obj):
            self._drop(uid)
            return
        cpu, memory = self._size(obj)
        self._taken[uid] = node, cpu, memory
        sums = self._sums.setdefault(node, [0, 0])
        sums[0] += cpu
        sums[1] += memory

    def _may_wait(self, status: Mapping[str, Any]) -> bool:
        if status.get("nominatedNodeName") or self._wants_unseen:
            return True
        return any(
            one.get("type") == "PodScheduled" and one.get("status") == "False" for one in status.get("conditions") or ()
        )

    def _drop(self, uid: str) -> None:
        taken = self._taken.pop(uid, None)
        if taken is None:
            return
        node, cpu, memory = taken
        self._touched.add(node)
        sums = self._sums[node]
        sums[0] -= cpu
        sums[1] -= memory
        if not any(sums):
            del self._sums[node]

    def _size(self, pod: JsonObject) -> tuple[int, int]:
        """What a pod asks for; most are like another."""
        spec = pod["spec"]
        requests = [(one.get("resources") or _EMPTY).get("requests") or _EMPTY for one in spec["containers"]]
        is_plain = not (spec.get("initContainers") or spec.get("overhead") or spec.get("resources"))
        key = tuple((one.get(CPU), one.get(MEMORY)) for one in requests) if is_plain else ()
        known = self._sizes.get(key) if key else None
        if known is None:
            amounts = pod_requests(pod)
            known = amounts.get(CPU, 0), amounts.get(MEMORY, 0)
            if key:
                self._sizes[key] = known
        return known


def _limits(node: JsonObject, threshold: float) -> tuple[float, float]:
    status = node.get("status") or _EMPTY
    allocatable = parse_resources(status.get("allocatable"))
    share = threshold + _NEAR
    return share * allocatable.get(CPU, 0), share * allocatable.get(MEMORY, 0)
