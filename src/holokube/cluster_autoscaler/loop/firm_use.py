"""Which nodes are used by more than the threshold for sure, kept up to date pod by pod.

What is summed up is a part of what a turn counts: pods that are on their way out and those of DaemonSets are left out,
for a turn may leave them out too, and so are those that no turn counts. A node whose part is above the threshold is
above it in every turn.

Where removals are simulated, and all pods that would move have a place that is known, a pod that comes to such a node
makes no difference either unless it takes the room of one of those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from holokube.client.informer import EventType
from holokube.cluster_autoscaler.objects import SAFE_TO_EVICT_ANNOTATION, is_daemon_set_pod, is_mirror
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.classification import PodSorter
from holokube.cluster_autoscaler.pods.resized import has_what_it_asks_for
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import Unremovable
from holokube.kube.resources import CPU, MEMORY, parse_resources, pod_requests
from holokube.kube.types import JsonObject

_FINISHED: Final = ("Succeeded", "Failed")
_NEAR: Final = 1e-6
_EMPTY: Final[Mapping[str, Any]] = {}
_Needs = tuple[float, float] | None
_ALL: Final[tuple[float, float]] = (math.inf, math.inf)
_PLAIN_REQUESTS: Final = frozenset({CPU, MEMORY})
_UNUSUAL: Final = ("affinity", "topologySpreadConstraints", "initContainers", "overhead", "resources")
"""What a pod may ask for besides room for its containers, or in another way."""
_ONE_POD: Final = 1000
Room = dict[str, list[int]]
"""What nodes have left for others: millicores, milli-bytes and thousandths of pods."""


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
        self._judged: dict[int, tuple[Unremovable, str]] = {}
        """The verdicts that this was read from, which are remembered by themselves, and whose they are."""
        self._sizes: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._unread: Iterable[Unremovable] | None = None
        self._may_leave = self._has_waiters = False
        self._room_left: Callable[[], Room] | None = None
        self._room: Room | None = None
        self._waits = False
        self.has_changed = False
        """Whether something has happened that may matter where removals are simulated."""

    def forget_changes(self) -> None:
        """A turn looks at everything anew."""
        self._touched.clear()
        self._waits = self.has_changed = self._may_leave = False
        self._room_left = self._room = None

    def judge(
        self, unremovable: Iterable[Unremovable], *, may_leave: bool = False,
        room_left: Callable[[], Room] | None = None,
    ) -> None:  # fmt: skip
        """Take over what a turn thought of the nodes; pods on others always make a difference.

        ``may_leave`` if pods that leave nodes which stay firm are no change. ``room_left`` tells, for those of them
        that other pods would move to, how much may be taken before it is one that a pod comes; without it, it always
        is. It is asked at most once, and not after the next turn has begun.
        """
        self._unread, self._may_leave = unremovable, may_leave
        self._room_left, self._room = room_left if may_leave else None, None

    def _read(self) -> None:
        """What was thought of the nodes is read when it is needed, which often it is not."""
        unremovable, self._unread = self._unread, None
        if unremovable is None:
            return
        # Most nodes stay as they were thought to be the last time, with the very object that says so.
        judged, needed = self._judged, self._needed
        now = {id(stays): stays for stays in unremovable}
        for number in judged.keys() - now.keys():
            needed.pop(judged.pop(number)[1], None)
        for number in now.keys() - judged.keys():
            stays = now[number]
            name, needs = stays.name, _needs(stays)
            judged[number] = stays, name
            if needs is not _ALL:
                needed[name] = needs

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
        if old is not None and new is not None and old["spec"] is new["spec"] and self._is_news_of_state(old, new):
            if not self.has_changed:
                self.has_changed = not self._is_nothing_new(new)
            return
        if not self.has_changed:
            self.has_changed = not (self._is_harmless(old, new) or self._is_welcome(old, new))
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
        """Whether a pod whose spec is the same object is counted and goes on, as most do: only its state is new."""
        metadata = new["metadata"]
        uid = metadata["uid"]
        return (
            uid in self._taken and old["metadata"]["uid"] == uid and not metadata.get("deletionTimestamp")
            and (new.get("status") or _EMPTY).get("phase") not in _FINISHED and bool(new["spec"].get("nodeName"))
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

    def _is_nothing_new(self, pod: JsonObject) -> bool:
        """Whether the news of a pod that is counted make no difference: it is on a firm node, and has what it had."""
        if self._room_left is None or self._has_waiters:
            return False
        annotations = pod["metadata"].get("annotations")
        if annotations and SAFE_TO_EVICT_ANNOTATION in annotations:
            return False
        return self._is_firm(pod["spec"]["nodeName"]) and has_what_it_asks_for(pod)

    def _is_welcome(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether it makes no difference that a pod comes: nobody looks at it yet, or there is room to spare for it.

        That room is taken then.
        """
        if self._room_left is None or new is None or self._has_waiters:
            return False
        metadata, spec, status = new["metadata"], new["spec"], new.get("status") or _EMPTY
        if metadata.get("deletionTimestamp") or status.get("phase") in _FINISHED:
            return False
        if old is not None and (
            old["metadata"]["uid"] != metadata["uid"] or old["spec"].get("nodeName")
            or self._may_wait(old.get("status") or _EMPTY)
        ):  # fmt: skip
            return False
        node = spec.get("nodeName")
        if not node:
            return not self._may_wait(status)
        annotations = metadata.get("annotations")
        if (
            not _asks_plainly_for_room(spec) or not has_what_it_asks_for(new) or is_daemon_set_pod(new)
            or is_mirror(new) or (annotations and SAFE_TO_EVICT_ANNOTATION in annotations)
            or not self._sorter.takes_room(new, self._sorter.role_of(new)) or not self._is_firm(node)
        ):  # fmt: skip
            return False
        if self._room is None:
            self._room = self._room_left()
        room = self._room.get(node)
        if room is None:
            return True
        wanted = (*self._size(new), _ONE_POD)
        for column, amount in enumerate(wanted):
            room[column] -= amount
        return min(room) >= 0

    def _is_firm(self, node: str) -> bool:
        """Whether a node is used firmly as things are now."""
        self._read()
        limits = self._needed.get(node)
        if limits is None:
            return False
        cpu, memory = self._sums.get(node, (0, 0))
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


def _asks_plainly_for_room(spec: Mapping[str, Any]) -> bool:
    """Whether a pod means nothing to other pods but the cpu and the memory that its containers take."""
    for field in _UNUSUAL:
        if spec.get(field):
            return False
    return all(
        ((one.get("resources") or _EMPTY).get("requests") or _EMPTY).keys() <= _PLAIN_REQUESTS
        for one in spec["containers"]
    )


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
