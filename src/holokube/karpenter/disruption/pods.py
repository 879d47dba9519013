"""What a pod on a node means for the node's removal.

*Active* pods run; *reschedulable* ones need a new place when their node goes; *evictable* ones are those the eviction
API is asked about. A pod protects its node with ``karpenter.sh/do-not-disrupt``: ``true``, or for so long after it
started.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from holokube.karpenter.api.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT
from holokube.kube.taints import Toleration, is_tolerated
from holokube.kube.timeformat import TimeFormatError, parse_duration, parse_time
from holokube.kube.types import JsonObject

TERMINAL_PHASES: Final = ("Succeeded", "Failed")


def key_of(pod: JsonObject) -> str:
    """``namespace/name``."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def is_terminal(pod: JsonObject) -> bool:
    """Whether it has ended."""
    return (pod.get("status") or {}).get("phase") in TERMINAL_PHASES


def is_terminating(pod: JsonObject) -> bool:
    """Whether it has been told to end."""
    return pod["metadata"].get("deletionTimestamp") is not None


def is_active(pod: JsonObject) -> bool:
    """Whether it runs, or will, and nobody has told it to end."""
    return pod["metadata"].get("deletionTimestamp") is None and not is_terminal(pod)


def is_owned_by(pod: JsonObject, api_version: str, kind: str) -> bool:
    """Whether any of its owners is of that kind, the controlling one or not."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == kind and owner.get("apiVersion") == api_version:
            return True
    return False


def is_daemon(pod: JsonObject) -> bool:
    """Whether a DaemonSet owns it."""
    return is_owned_by(pod, "apps/v1", "DaemonSet")


def is_mirror(pod: JsonObject) -> bool:
    """Whether it shows a static pod of its node."""
    return is_owned_by(pod, "v1", "Node")


def is_reschedulable(pod: JsonObject) -> bool:
    """Whether it needs a place elsewhere if its node goes.

    A terminating pod of a StatefulSet does: its successor comes only once it is gone.
    """
    metadata = pod["metadata"]
    comes_back = False
    for owner in metadata.get("ownerReferences") or ():
        kind = owner.get("kind")
        if kind == "DaemonSet" or kind == "StatefulSet":
            if owner.get("apiVersion") == "apps/v1":
                if kind == "DaemonSet":
                    return False
                comes_back = True
        elif kind == "Node" and owner.get("apiVersion") == "v1":
            return False
    if metadata.get("deletionTimestamp") is not None:
        return comes_back
    return not is_terminal(pod)


def is_provisionable(pod: JsonObject) -> bool:
    """Whether it waits for a node: the scheduler found none, and it is nobody's preemptor."""
    status = pod.get("status") or {}
    if (pod.get("spec") or {}).get("nodeName") or status.get("nominatedNodeName"):
        return False
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return not is_daemon(pod) and not is_mirror(pod)
    return False


def tolerates_disruption(pod: JsonObject) -> bool:
    """Whether it stays on a node that is being emptied."""
    tolerations = (pod.get("spec") or {}).get("tolerations")
    if not tolerations:
        return False
    # Pods of one template share the list, and are asked about one after the other.
    last, answer = _last_tolerations[0]
    if tolerations is not last:
        answer = _tolerate_disruption(tuple(tuple(sorted(toleration.items())) for toleration in tolerations))
        _last_tolerations[0] = tolerations, answer
    return answer


_last_tolerations: list[tuple[list[JsonObject] | None, bool]] = [(None, False)]


@lru_cache(maxsize=4096)
def _tolerate_disruption(tolerations: tuple[tuple[tuple[str, Any], ...], ...]) -> bool:
    """Nearly all pods have the same two tolerations."""
    parsed = [Toleration.from_json(dict(toleration)) for toleration in tolerations]
    return is_tolerated(DISRUPTED_TAINT, parsed, comparison_operators=True)


def is_protected(pod: JsonObject, now_s: float) -> bool:
    """Whether its annotation forbids to disturb it now; one that cannot be read forbids nothing."""
    annotations = pod["metadata"].get("annotations")
    value = annotations.get(DO_NOT_DISRUPT) if annotations else None
    if value is None:
        return False
    if value == "true":
        return True
    try:
        protected_for_s = parse_duration(value)
    except TimeFormatError:
        return False
    if protected_for_s <= 0:
        return False
    started = (pod.get("status") or {}).get("startTime")
    if not started:
        return True
    return now_s - parse_time(started).timestamp() < protected_for_s


def is_evictable(pod: JsonObject, now_s: float) -> bool:
    """Whether emptying its node would ask the eviction API about it."""
    return (
        is_active(pod)
        and not tolerates_disruption(pod)
        and not is_mirror(pod)
        and not is_protected(pod, now_s)
    )
