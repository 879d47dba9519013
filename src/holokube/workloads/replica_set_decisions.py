"""How many pods a ReplicaSet or ReplicationController lacks or has too many, and what its status says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holokube.kube.conditions import conditions_of, find_condition, remove_condition
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.workloads.pod_control import BURST_PODS
from holokube.workloads.pod_status import deletion_order, is_available, is_pod_ready


@dataclass(frozen=True, slots=True)
class ReplicaChanges:
    """So many pods to create, these to delete; one of the two is always nothing."""

    create: int = 0
    delete: Sequence[JsonObject] = field(default_factory=tuple)


def decide_replicas(
    replicas: int, active: Sequence[JsonObject], related: Sequence[JsonObject], now: datetime
) -> ReplicaChanges:
    """``related`` are the pods of all sets of the same owner: a node that has several loses one first."""
    surplus = len(active) - replicas
    if surplus < 0:
        return ReplicaChanges(create=min(-surplus, BURST_PODS))
    surplus = min(surplus, BURST_PODS)
    if surplus == 0:
        return ReplicaChanges()
    if surplus == len(active):
        return ReplicaChanges(delete=active)
    return ReplicaChanges(delete=deletion_order(active, related, now)[:surplus])


def replicas_of(obj: JsonObject) -> int:
    """The wanted number; the API's default where a server leaves it out."""
    replicas = obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def decide_status(
    owner: JsonObject,
    active: Sequence[JsonObject],
    terminating: int | None,
    failure: str,
    now: datetime,
) -> JsonObject:
    """The new status. ``terminating`` is None for kinds that do not report it; ``failure`` is empty if none."""
    spec = owner["spec"]
    min_ready_s = int(spec.get("minReadySeconds") or 0)
    wanted_labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    ready = [pod for pod in active if is_pod_ready(pod)]
    counts = {
        "fullyLabeledReplicas": sum(_has_labels(pod, wanted_labels) for pod in active),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, min_ready_s, now) for pod in ready),
        "observedGeneration": int(owner["metadata"].get("generation") or 0),
    }
    status: JsonObject = {"replicas": len(active)}
    status.update({name: count for name, count in counts.items() if count})
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    conditions = _conditions(owner, len(active), failure, now)
    if conditions:
        status["conditions"] = conditions
    return status


def _conditions(owner: JsonObject, active: int, failure: str, now: datetime) -> list[JsonObject]:
    conditions = conditions_of(owner)
    if not failure:
        return remove_condition(conditions, "ReplicaFailure")
    if find_condition(conditions, "ReplicaFailure") is not None:
        # The first failure stands until all is well again, so that a changing message is no new status.
        return conditions
    reason = "FailedCreate" if active < replicas_of(owner) else "FailedDelete"
    condition = {
        "type": "ReplicaFailure", "status": "True", "lastTransitionTime": format_time(now),
        "reason": reason, "message": failure,
    }  # fmt: skip
    return [*conditions, condition]


def _has_labels(pod: JsonObject, wanted: dict[str, Any]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items())
