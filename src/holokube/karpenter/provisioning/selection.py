"""Which pods are worth a solve: pending ones that ask for something that can be read, and those of nodes that go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holokube.karpenter.api.labels import NODEPOOL_LABEL
from holokube.karpenter.api.validation import requirement_problems
from holokube.karpenter.disruption.eviction_limits import EvictionLimits
from holokube.karpenter.disruption.pods import is_provisionable
from holokube.karpenter.scheduling.pod_facts import is_plain
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.scheduling.volume_demands import VolumeReader
from holokube.kube.requirements import Requirements
from holokube.kube.types import JsonObject


@dataclass(frozen=True, slots=True)
class Ignored:
    """A pod that is left out."""

    pod: JsonObject
    reason: str
    is_wanted: bool = False
    """Whether its owner wants it so: then nobody needs to be told."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a solve is about."""

    pending: list[JsonObject]
    ignored: list[Ignored]


_Found = tuple[JsonObject, bool, Ignored | None]
"""A pod, whether it waits, and why it is left out."""


class Selector:
    """Sorts the pods of a cluster, and remembers what it found about those that are still the same."""

    def __init__(self) -> None:
        self._known: dict[int, _Found] = {}
        self._last: tuple[tuple[JsonObject, ...], Selection] | None = None
        """Pods that were sorted last, if it shows of each of them alone how."""

    def select(
        self, pods: tuple[JsonObject, ...], volumes: VolumeReader, well_known: frozenset[str]
    ) -> Selection:
        """Those that something is provided for, and those that are left out."""
        if self._last is not None and self._last[0] is pods:
            return self._last[1]
        selection, before, known = Selection([], []), self._known, dict[int, _Found]()
        for pod in pods:
            found = before.get(id(pod))
            if found is None:
                is_waiting = is_provisionable(pod)
                found = pod, is_waiting, why_ignored(pod, volumes, well_known) if is_waiting else None
                # Volumes may change under a pod that is the same. The pod is kept, so that no other has its identity.
                if not is_waiting or is_plain(pod):
                    known[id(pod)] = found
            else:
                known[id(pod)] = found
            if not found[1]:
                continue
            if found[2] is None:
                selection.pending.append(pod)
            else:
                selection.ignored.append(found[2])
        self._known = known
        self._last = (pods, selection) if len(known) == len(pods) else None
        return selection


def select(pods: Iterable[JsonObject], volumes: VolumeReader, well_known: frozenset[str]) -> Selection:
    """Sorts the pods of a cluster."""
    return Selector().select(tuple(pods), volumes, well_known)


def why_ignored(pod: JsonObject, volumes: VolumeReader, well_known: frozenset[str]) -> Ignored | None:
    """Why nothing is provided for a pod; None if something is."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeSelector") and not spec.get("affinity"):
        # As nearly all: it asks nothing of nodes.
        unusable = volumes.why_unusable(pod)
        return Ignored(pod, unusable) if unusable else None
    problems = [problem for entry in _expressions(pod) for problem in requirement_problems(entry, well_known)]
    if any(term.get("matchFields") is not None for term in _required_terms(pod)):
        problems.append("node selector term with matchFields is not supported")
    if not problems and _avoids_us(pod):
        message = f"configured to not run on a Karpenter provisioned node ({NODEPOOL_LABEL} DoesNotExist)"
        return Ignored(pod, message, is_wanted=True)
    unusable = volumes.why_unusable(pod)
    if unusable:
        problems.append(unusable)
    return Ignored(pod, "; ".join(problems)) if problems else None


def moving_pods(nodes: Iterable[StateNode], limits: EvictionLimits, now_s: float) -> list[JsonObject]:
    """Pods of nodes on their way out that will look for another place soon."""
    return [
        pod
        for node in nodes
        if node.is_marked_for_deletion and node.node is not None
        for pod in node.pods
        if limits.is_movable(pod, now_s)
    ]


def _avoids_us(pod: JsonObject) -> bool:
    requirements = Requirements.of_pod(pod)
    return NODEPOOL_LABEL in requirements and requirements[NODEPOOL_LABEL].operator == "DoesNotExist"


def _expressions(pod: JsonObject) -> list[dict[str, Any]]:
    selector = (pod.get("spec") or {}).get("nodeSelector") or {}
    found: list[dict[str, Any]] = [{"key": k, "operator": "In", "values": [v]} for k, v in selector.items()]
    for term in _required_terms(pod):
        found.extend(term.get("matchExpressions") or ())
    return found


def _required_terms(pod: JsonObject) -> list[JsonObject]:
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return list(required.get("nodeSelectorTerms") or ())
