"""In which order an estimate takes the pods: the largest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from holokube.cluster_autoscaler.scale_up.grouping import PodGroup
from holokube.kube.resources import CPU, MEMORY, parse_resources, pod_requests
from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.kube.types import JsonObject

_HOSTNAME = "kubernetes.io/hostname"
_G = TypeVar("_G", bound=PodGroup)


def largest_first(groups: Sequence[_G], node: JsonObject) -> list[_G]:
    """Groups of pods by the share that each of their pods takes of a node, descending; equals keep their order."""
    allocatable = parse_resources((node.get("status") or {}).get("allocatable"))
    cpu_milli, memory_bytes = allocatable.get(CPU, 0), _whole(allocatable.get(MEMORY, 0))

    def share(group: _G) -> float:
        requests = pod_requests(group.pods[0])
        score = 0.0
        if cpu_milli > 0:
            score += requests.get(CPU, 0) / cpu_milli
        if memory_bytes > 0:
            score += _whole(requests.get(MEMORY, 0)) / memory_bytes
        return score

    return sorted(groups, key=share, reverse=True)


def with_shortcut_last(groups: Sequence[_G], node: JsonObject) -> tuple[list[_G], bool]:
    """The groups with the one last that gains the most from arithmetic, and whether there is one that may.

    The gain is upstream's guess of how many pods need not be placed one by one. Of equals the last is taken, which
    stays closest to the order.
    """
    capacity = parse_resources((node.get("status") or {}).get("capacity"))
    best, most_saved = -1, 0
    for i, group in enumerate(groups):
        saved = _placements_saved(group, capacity)
        if saved >= most_saved and _may_be_counted(group.pods[0]):
            best, most_saved = i, saved
    if best < 0:
        return list(groups), False
    return [*groups[:best], *groups[best + 1 :], groups[best]], True


def _placements_saved(group: PodGroup, capacity: dict[str, int]) -> int:
    pods = len(group.pods)
    nodes = max(_nodes_by_anti_affinity(group), _nodes_by_requests(group, capacity))
    return pods - pods // nodes if nodes > 0 else 0


def _nodes_by_anti_affinity(group: PodGroup) -> int:
    pod = group.pods[0]
    labels = (pod["metadata"].get("labels")) or {}
    for term in _anti_affinity_terms(pod):
        selector = term.get("labelSelector")
        if term.get("topologyKey") != _HOSTNAME or selector is None:
            continue
        try:
            if LabelSelector.from_json(selector).matches(labels):
                return len(group.pods)
        except SelectorError:
            continue
    return 0


def _nodes_by_requests(group: PodGroup, capacity: dict[str, int]) -> int:
    # Upstream looks at the first container only; it is a guess, and has to be the same guess.
    containers = group.pods[0]["spec"].get("containers") or ()
    requests = parse_resources((containers[0].get("resources") or {}).get("requests")) if containers else {}
    nodes = 0
    for name in (CPU, MEMORY):
        if requests.get(name) and capacity.get(name):
            nodes = max(nodes, math.ceil(len(group.pods) * requests[name] / capacity[name]))
    return nodes


def _may_be_counted(pod: JsonObject) -> bool:
    """Whether a node that is full stays full, and the next node takes as many pods as this one did."""
    if pod["spec"].get("topologySpreadConstraints"):
        return False
    return all(term.get("topologyKey") == _HOSTNAME for term in _anti_affinity_terms(pod))


def _anti_affinity_terms(pod: JsonObject) -> Sequence[dict[str, Any]]:
    anti_affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    terms: Sequence[dict[str, Any]] = anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return terms


def _whole(milli: int) -> int:
    return -(-milli // 1000)
