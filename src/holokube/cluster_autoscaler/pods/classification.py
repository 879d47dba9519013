"""Which pods are on nodes, which wait for one in vain, and which are nobody's business yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from holokube.cluster_autoscaler.objects import priority_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}
_FINISHED: Final = ("Succeeded", "Failed")


@dataclass(slots=True)
class PodLists:
    """The pods of a cluster, each list in the order of the API's."""

    scheduled: list[JsonObject] = field(default_factory=list)
    nominated: list[JsonObject] = field(default_factory=list)
    """Those for whom others are being pushed out of a node."""
    unschedulable: list[JsonObject] = field(default_factory=list)
    """Those for whom a scheduler has found no place."""
    unprocessed: list[JsonObject] = field(default_factory=list)
    """Those at which no scheduler has looked yet, where one need not be waited for."""

    @property
    def allocated(self) -> list[JsonObject]:
        """Those that take, or will take, room on a node."""
        return self.scheduled + self.nominated

    @property
    def pending(self) -> list[JsonObject]:
        """Those that may need a new node."""
        return self.unschedulable + self.unprocessed


class Role(Enum):
    """What a pod means to the autoscaler."""

    SCHEDULED = "scheduled"
    NOMINATED = "nominated"
    UNSCHEDULABLE = "unschedulable"
    UNPROCESSED = "unprocessed"


def is_expendable(pod: JsonObject, options: AutoscalerOptions) -> bool:
    """Whether a pod is so unimportant that no node is kept or made for it."""
    priority = priority_of(pod)
    return priority is not None and priority < options.expendable_pods_priority_cutoff


class PodSorter:
    """Tells the roles of pods, by the settings."""

    def __init__(self, options: AutoscalerOptions) -> None:
        self._allowed = frozenset(options.allowed_scheduler_names)
        self._bypassed = frozenset(options.bypassed_scheduler_names)
        self._options = options

    def takes_room(self, pod: JsonObject, role: Role | None) -> bool:
        """Whether a pod of a role counts on its node: not one that others may push aside."""
        return (role is Role.SCHEDULED or role is Role.NOMINATED) and not is_expendable(pod, self._options)

    def role_of(self, pod: JsonObject) -> Role | None:
        """The role of a pod; None if it means nothing to the autoscaler."""
        spec, status = pod.get("spec") or _EMPTY, pod.get("status") or _EMPTY
        if status.get("phase") in _FINISHED:
            return None
        if self._allowed and (spec.get("schedulerName") or "") not in self._allowed:
            return None
        if spec.get("nodeName"):
            return Role.SCHEDULED
        if pod["metadata"].get("deletionTimestamp"):
            return None
        if status.get("nominatedNodeName"):
            return Role.NOMINATED
        verdict = _verdict(status)
        if verdict == "Unschedulable":
            return Role.UNSCHEDULABLE
        if verdict == "" and self._bypassed and (spec.get("schedulerName") or "") in self._bypassed:
            return Role.UNPROCESSED
        return None


def split_pods(pods: Iterable[JsonObject], options: AutoscalerOptions) -> PodLists:
    """Sort pods by what they mean to the autoscaler. What is in none of the lists means nothing to it."""
    lists = PodLists()
    into = {
        Role.SCHEDULED: lists.scheduled, Role.NOMINATED: lists.nominated,
        Role.UNSCHEDULABLE: lists.unschedulable, Role.UNPROCESSED: lists.unprocessed,
    }  # fmt: skip
    sorter = PodSorter(options)
    for pod in pods:
        role = sorter.role_of(pod)
        if role is not None:
            into[role].append(pod)
    return lists


def _verdict(status: Mapping[str, Any]) -> str | None:
    """Why a scheduler has found no place: empty if none has looked yet, None if it has found one."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return condition.get("reason") or "" if condition.get("status") == "False" else None
    return ""
