"""Which pods are on nodes, which wait for one in vain, and which are nobody's business yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}


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


def split_pods(pods: Iterable[JsonObject], options: AutoscalerOptions) -> PodLists:
    """Sort pods by what they mean to the autoscaler. What is in none of the lists means nothing to it."""
    lists = PodLists()
    allowed = frozenset(options.allowed_scheduler_names)
    bypassed = frozenset(options.bypassed_scheduler_names)
    for pod in pods:
        spec, status = pod.get("spec") or _EMPTY, pod.get("status") or _EMPTY
        if status.get("phase") in ("Succeeded", "Failed"):
            continue
        if allowed and (spec.get("schedulerName") or "") not in allowed:
            continue
        if spec.get("nodeName"):
            lists.scheduled.append(pod)
        elif pod["metadata"].get("deletionTimestamp"):
            continue
        elif status.get("nominatedNodeName"):
            lists.nominated.append(pod)
        else:
            verdict = _verdict(status)
            if verdict == "Unschedulable":
                lists.unschedulable.append(pod)
            elif verdict == "" and bypassed and (spec.get("schedulerName") or "") in bypassed:
                lists.unprocessed.append(pod)
    return lists


def _verdict(status: Mapping[str, Any]) -> str | None:
    """Why a scheduler has found no place: empty if none has looked yet, None if it has found one."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return condition.get("reason") or "" if condition.get("status") == "False" else None
    return ""
