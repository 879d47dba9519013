"""Which nodes are used by more than the threshold for sure, kept up to date pod by pod.

What is summed up is a part of what a turn counts: pods that are on their way out and those of DaemonSets are left out,
for a turn may leave them out too, and so are those that no turn counts. A node whose part is above the threshold is
above it in every turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holokube.client.informer import EventType
from holokube.cluster_autoscaler.objects import SAFE_TO_EVICT_ANNOTATION, is_daemon_set_pod, is_mirror
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.classification import PodSorter
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.kube.resources import CPU, MEMORY, parse_resources, pod_requests
from holokube.kube.types import JsonObject

_FINISHED: Final = ("Succeeded", "Failed")
_NEAR: Final = 1e-6
_EMPTY: Final[Mapping[str, Any]] = {}
_Needs = tuple[float, float] | None
_ALL: Final[tuple[float, float]] = (math.inf, math.inf)


class FirmUse:
    """A handler of the informer of pods."""

    def __init__(self, options: AutoscalerOptions) -> None:
        self._sorter = PodSorter(options)
        # Then pods count that no scheduler has looked at yet.
        self._wants_unseen = bool(options.bypassed_scheduler_names)
        self._taken: dict[str, tuple[str, int, int]] = {}
        """Node, millicores and milli-bytes by uid of pods."""
        self._sums: dict[str, list[int]] = {}
        self._touched: set[str] = set()
        self._needed: dict[str, tuple[float, float] | None] = {}
        """Above how much of cpu, or of memory, a node is used firmly; None for one of which it does not matter."""
        self._judged: dict[int, tuple[Unremovable, str, _Needs]] = {}
        """What was read of the last verdicts, which are remembered by themselves."""
        self._sizes: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._unread: Iterable[Unremovable] | None = None
        self._may_leave = self._has_waiters = False
        self._waits = False
        self.has_changed = False
        """Whether something has happened that may matter where removals are simulated."""

    def forget_changes(self) -> None:
        """A turn looks at everything anew."""
        self._touched.clear()
        self._waits = self.has_changed = self._may_leave = False

    def judge(self, unremovable: Iterable[Unremovable], *, may_leave: bool = False) -> None:
        """Take over what a turn thought of the nodes; pods on others always make a difference.

        ``may_leave`` if pods that leave nodes which stay firm are no change.
        """
        self._unread, self._may_leave = unremovable, may_leave

    def _read(self) -> None:
        """What was thought of the nodes is read when it is needed, which often it is not."""
        unremovable, self._unread = self._unread, None
        if unremovable is None:
            return
        known, self._judged, self._needed = self._judged, {}, {}
        for stays in unremovable:
            # Most nodes stay as they were thought to be the last time, with the very object that says so.
            judged = known.get(id(stays))
            if judged is None:
                judged = stays, stays.name, _needs(stays)
            self._judged[id(stays)] = judged
            _, name, needs = judged
            if needs is not _ALL:
                self._needed[name] = needs

    def stays_firm(self) -> bool:
        """Whether no pod waits, and all nodes whose pods have changed are still what they were thought to be."""
        if self._waits:
            return False
        self._read()
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
        if old is not None and new is not None and self._is_news_of_state(old, new):
            self.has_changed = True
            return
        if not self.has_changed:
            self.has_changed = not self._is_harmless(old, new)
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
            if old is None or old["spec"] is spec or old["spec"] == spec:
                return
            self._drop(uid)
        self._touched.add(node)
        is_left_out = obj["metadata"].get("deletionTimestamp") or is_daemon_set_pod(obj) or is_mirror(obj)
        if not is_there or is_left_out or not self._sorter.takes_room(obj, self._sorter.role_of(obj)):
            self._drop(uid)
            return
        annotations = obj["metadata"].get("annotations")
        if annotations and SAFE_TO_EVICT_ANNOTATION in annotations:
            self._has_waiters = True
        cpu, memory = self._size(obj)
        self._taken[uid] = node, cpu, memory
        sums = self._sums.setdefault(node, [0, 0])
        sums[0] += cpu
        sums[1] += memory

    def _is_news_of_state(self, old: JsonObject, new: JsonObject) -> bool:
        """Whether a pod that is counted goes on with what it asks for, as most changes are: only its state is new."""
        spec, metadata = new["spec"], new["metadata"]
        return (
            old["spec"] is spec and metadata["uid"] in self._taken and old["metadata"]["uid"] == metadata["uid"]
            and not metadata.get("deletionTimestamp") and not _has_ended(new) and bool(spec.get("nodeName"))
        )  # fmt: skip

    def _is_harmless(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a change of a pod makes no difference: it had ended, or it leaves a node that stays firm."""
        if old is None or (new is not None and not _has_ended(new)):
            return False
        uid = old["metadata"]["uid"]
        if new is not None and new["metadata"]["uid"] != uid:
            return False
        if _has_ended(old):
            return True
        node = old["spec"].get("nodeName")
        # A node on which pods are waited for may be empty all the same, which its place among the others goes by.
        if not self._may_leave or not node or self._has_waiters:
            return False
        self._read()
        limits, taken = self._needed.get(node), self._taken.get(uid)
        if limits is None or (taken is not None and taken[0] != node):
            return False
        cpu, memory = self._sums.get(node, (0, 0))
        if taken is not None:
            # It was not less before.
            cpu, memory = cpu - taken[1], memory - taken[2]
        return cpu > limits[0] or memory > limits[1]

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


def _has_ended(pod: JsonObject) -> bool:
    return (pod.get("status") or _EMPTY).get("phase") in _FINISHED


def _needs(stays: Unremovable) -> _Needs:
    """Above how much a node is used firmly; ``_ALL`` for one of which every change may matter."""
    if stays.reason is UnremovableReason.NOT_UNDERUTILIZED:
        used = stays.utilization
        if used is not None and used.resource in (CPU, MEMORY) and stays.threshold is not None:
            return _limits(stays.node, stays.threshold)
    elif stays.reason is UnremovableReason.RECENTLY_UNREMOVABLE:
        # Not looked at again before its time, whatever runs on it.
        return None
    return _ALL


def _limits(node: JsonObject, threshold: float) -> tuple[float, float]:
    status = node.get("status") or _EMPTY
    allocatable = parse_resources(status.get("allocatable"))
    share = threshold + _NEAR
    return share * allocatable.get(CPU, 0), share * allocatable.get(MEMORY, 0)
