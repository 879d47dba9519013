"""Whether this is the moment to think about new nodes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from holokube.cluster_autoscaler.objects import creation_s, requests_gpu
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.pods.kinds import PodKinds
from holokube.kube.types import JsonObject

POD_BUFFER_S: Final = 2.0
"""Pods seldom come alone: the first one waits this long for the others."""
GPU_POD_BUFFER_S: Final = 30.0
"""Nodes with accelerators are dear, so their pods wait longer."""


class Gate(Enum):
    """What comes next."""

    OPEN = "open"
    NOT_NEEDED = "not needed"
    """No pod is left that a node would help."""
    TOO_MANY_NODES = "too many nodes"
    """The cluster has all the nodes it may have."""
    TOO_YOUNG = "too young"
    """More pods like these are likely to come; no node is removed meanwhile either."""


def scale_up_gate(
    pods: Sequence[JsonObject],
    ready_nodes: int,
    options: AutoscalerOptions,
    now_s: float,
    kinds: PodKinds | None = None,
) -> Gate:
    """Whether to look for new nodes for these pods, of which there may be none.

    ``kinds`` may remember pods that were seen before.
    """
    if not pods:
        return Gate.NOT_NEEDED
    if 0 < options.max_nodes_total <= ready_nodes:
        return Gate.TOO_MANY_NODES
    if not options.bypassed_scheduler_names and are_all_new(pods, now_s, kinds):
        return Gate.TOO_YOUNG
    return Gate.OPEN


def are_all_new(pods: Sequence[JsonObject], now_s: float, kinds: PodKinds | None = None) -> bool:
    """Whether even the oldest pod is very young, or the oldest of those that ask for accelerators."""
    if kinds is None:
        ages = [(creation_s(pod), requests_gpu(pod)) for pod in pods]
    else:
        ages = [(facts.created_s, facts.kind.is_gpu) for facts in kinds.facts_of_all(pods)]
    if min(now_s, min(created_s for created_s, _ in ages)) + POD_BUFFER_S > now_s:
        return True
    oldest_gpu_s = min((created_s for created_s, is_gpu in ages if is_gpu), default=None)
    return oldest_gpu_s is not None and min(now_s, oldest_gpu_s) + GPU_POD_BUFFER_S > now_s
