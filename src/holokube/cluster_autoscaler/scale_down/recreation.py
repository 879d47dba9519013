"""Pods that were evicted and whose replacements are not there yet: they will want room."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from holokube.cluster_autoscaler.objects import is_daemon_set_pod, is_mirror, is_static
from holokube.cluster_autoscaler.observation import ControllerKey
from holokube.kube.types import JsonObject

_KNOWN_KINDS = ("StatefulSet", "Job", "ReplicaSet", "ReplicationController")


class Replicas(NamedTuple):
    """How many pods a controller wants, and how many it has."""

    target: int
    current: int


def not_recreated(
    pods: Iterable[JsonObject], controllers: Mapping[ControllerKey, JsonObject]
) -> list[JsonObject]:
    """The evicted pods that somebody will create again and has not yet.

    Of a controller that cannot be asked all are expected back, to be on the safe side.
    """
    expected: list[JsonObject] = []
    counted: dict[str, int] = {}
    for pod in pods:
        if is_static(pod) or is_mirror(pod) or is_daemon_set_pod(pod):
            continue
        owner = _known_owner(pod)
        controller = None
        if owner is not None:
            namespace = pod["metadata"].get("namespace") or ""
            controller = controllers.get((owner["kind"], namespace, owner.get("name", "")))
        if owner is None or controller is None:
            expected.append(pod)
            continue
        replicas = replicas_of(owner["kind"], controller)
        uid = owner.get("uid", "")
        if counted.get(uid, 0) < replicas.target - replicas.current:
            expected.append(pod)
            counted[uid] = counted.get(uid, 0) + 1
    return expected


def replicas_of(kind: str, controller: JsonObject) -> Replicas:
    """What a controller wants and has, by its own account."""
    spec, status = controller.get("spec") or {}, controller.get("status") or {}
    if kind == "Job":
        target = _or_one(spec.get("parallelism"))
        if spec.get("completions") is not None:
            target = min(target, spec["completions"] - (status.get("succeeded") or 0))
        return Replicas(target, status.get("active") or 0)
    current = status.get("currentReplicas" if kind == "StatefulSet" else "replicas") or 0
    return Replicas(_or_one(spec.get("replicas")), current)


def _known_owner(pod: JsonObject) -> Mapping[str, Any] | None:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("kind") in _KNOWN_KINDS:
            found: Mapping[str, Any] = owner
            return found
    return None


def _or_one(count: int | None) -> int:
    return 1 if count is None else count
