"""What the scheduler reads from a Pod object."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from holokube.kube.conditions import get_condition
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

DEFAULT_SCHEDULER: Final = "default-scheduler"
FINISHED: Final = ("Succeeded", "Failed")
"""The phases in which a pod takes no room any more."""
PREEMPTION_REASON: Final = "PreemptionByScheduler"
_EMPTY: Final[Mapping[str, Any]] = {}


def key_of(pod: Mapping[str, Any]) -> str:
    """``namespace/name``."""
    metadata = pod["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def uid_of(pod: Mapping[str, Any]) -> str:
    return pod["metadata"].get("uid") or ""


def priority_of(pod: Mapping[str, Any]) -> int:
    """The priority that admission wrote into the pod; zero if there is none."""
    return (pod.get("spec") or _EMPTY).get("priority") or 0


def scheduler_of(pod: Mapping[str, Any]) -> str:
    return (pod.get("spec") or _EMPTY).get("schedulerName") or DEFAULT_SCHEDULER


def node_of(pod: Mapping[str, Any]) -> str:
    return (pod.get("spec") or _EMPTY).get("nodeName") or ""


def nominated_node_of(pod: Mapping[str, Any]) -> str:
    """The node that was promised to a pod, usually because others are leaving it."""
    return (pod.get("status") or _EMPTY).get("nominatedNodeName") or ""


def is_finished(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or _EMPTY).get("phase") in FINISHED


def is_gated(pod: Mapping[str, Any]) -> bool:
    return bool((pod.get("spec") or _EMPTY).get("schedulingGates"))


def is_being_deleted(pod: Mapping[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_leaving_by_preemption(pod: JsonObject) -> bool:
    """Whether a pod is on its way out because the scheduler asked it to go."""
    if not is_being_deleted(pod):
        return False
    condition = get_condition(pod, "DisruptionTarget") or _EMPTY
    return condition.get("status") == "True" and condition.get("reason") == PREEMPTION_REASON


def started_at(pod: Mapping[str, Any], now: datetime) -> datetime:
    """When a pod began to run; one that has not yet is as young as can be."""
    stamp = (pod.get("status") or _EMPTY).get("startTime")
    return parse_time(stamp) if stamp else now
