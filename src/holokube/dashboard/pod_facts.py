"""What the page tells of a pod, read from its object. All pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holokube.dashboard.node_facts import MIB_MILLI, created_s
from holokube.kube.conditions import get_condition
from holokube.kube.resources import CPU, MEMORY, pod_requests

RUNNING, STARTING, ENDING, FAILING, LOST = range(5)
"""States of pods on nodes, in the order of :data:`POD_STATES`."""
POD_STATES: Final = ("running", "starting", "ending", "failing", "lost")
_BAD_WAITS: Final = frozenset({
    "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "RunContainerError",
})  # fmt: skip
_SIZED_BY: Final = ("containers", "initContainers", "resources", "overhead")
REASON_MAX: Final = 400
"""Characters kept of why a pod is pending: the first sentences say it."""
_EMPTY: Final[Mapping[str, Any]] = {}


class PodFacts(NamedTuple):
    """A pod that takes up room, or waits for some."""

    key: str
    workload: str
    """``namespace/name`` of the Deployment, StatefulSet and so on, else the pod's own."""
    node: str
    """Empty while it is pending."""
    state: int
    cpu_milli: int
    memory_mib: int
    created_s: float
    reason: str
    """Why it is pending."""


def read_pod(pod: Mapping[str, Any], before: Mapping[str, Any] | None, known: PodFacts | None) -> PodFacts | None:
    """The facts of a Pod; None for one that is over and takes no room.

    ``before`` is the object that ``known`` was read from: what cannot have changed since is not read again.
    """
    status, spec, meta = pod.get("status") or _EMPTY, pod.get("spec") or _EMPTY, pod["metadata"]
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    node = spec.get("nodeName") or ""
    if not node and meta.get("deletionTimestamp"):
        return None
    if known is not None and before is not None and _asks_alike(before, pod):
        workload, cpu, memory, made_s = known.workload, known.cpu_milli, known.memory_mib, known.created_s
    else:
        requests = pod_requests(pod)
        cpu, memory = requests.get(CPU, 0), -(-requests.get(MEMORY, 0) // MIB_MILLI)
        workload, made_s = workload_of(pod), created_s(pod)
    key = f"{meta.get('namespace', '')}/{meta['name']}"
    if node:
        return PodFacts(key, workload, node, _state(pod, status), cpu, memory, made_s, "")
    return PodFacts(key, workload, "", STARTING, cpu, memory, made_s, pending_reason(pod))


def _asks_alike(before: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether two states of a pod share what its requests are read from: objects are never changed once stored."""
    old, new = before.get("spec") or _EMPTY, pod.get("spec") or _EMPTY
    if before["metadata"].get("uid") != pod["metadata"].get("uid"):
        return False
    return old is new or all(old.get(part) is new.get(part) for part in _SIZED_BY)


def workload_of(pod: Mapping[str, Any]) -> str:
    """``namespace/name`` of what a person would call the workload: the Deployment rather than its ReplicaSet."""
    meta = pod["metadata"]
    name = meta["name"]
    owner = next((owner for owner in meta.get("ownerReferences") or () if owner.get("controller")), None)
    if owner is not None:
        name = owner["name"]
        hashed = (meta.get("labels") or _EMPTY).get("pod-template-hash")
        if owner.get("kind") == "ReplicaSet" and hashed:
            name = name.removesuffix(f"-{hashed}")
        elif owner.get("kind") == "Job":
            # A CronJob names its Jobs by the minute.
            stem, dash, minute = name.rpartition("-")
            name = stem if dash and len(minute) >= 8 and minute.isdecimal() else name
    return f"{meta.get('namespace', '')}/{name}"


def pending_reason(pod: Mapping[str, Any]) -> str:
    """Why nobody has found a node yet, in the scheduler's words."""
    condition = get_condition(pod, "PodScheduled")
    if condition is None or condition.get("status") == "True":
        return "waiting for the scheduler"
    if condition.get("reason") == "SchedulingGated":
        return "held back by a scheduling gate"
    text = str(condition.get("message") or condition.get("reason") or "unschedulable")
    # What claims and preemption would or would not do is a second thought.
    for second in (" no new claims to deallocate", " preemption:"):
        text = text.split(second)[0]
    return text.strip()[:REASON_MAX]


def _state(pod: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    if pod["metadata"].get("deletionTimestamp"):
        return ENDING
    are_containers_ready = False
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            return RUNNING
        if condition.get("type") == "ContainersReady":
            are_containers_ready = condition.get("status") == "True"
    # Its containers were ready when its kubelet last said something, and no gate holds it back: the node lifecycle
    # controller took its readiness away, because the node is not ready any more.
    if are_containers_ready and not (pod.get("spec") or _EMPTY).get("readinessGates"):
        return LOST
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or _EMPTY).get("waiting") or _EMPTY
        if waiting.get("reason") in _BAD_WAITS:
            return FAILING
    return STARTING
