"""The small steps between pods that wait and pods for which a node might be added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holokube.cluster_autoscaler.objects import (
    TPU_PREFIX,
    has_tpu_requests,
    is_daemon_set_pod,
    is_mirror,
    is_static,
    is_terminating,
    without_node,
)
from holokube.cluster_autoscaler.pods.kinds import PodFacts
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.timeformat import TimeFormatError, parse_duration
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}


def without_tpu_requests(pods: Sequence[JsonObject]) -> list[JsonObject]:
    """Pods that ask for no TPUs, which no node offers and which are not a node's to offer."""
    return [_without_tpus(pod) if has_tpu_requests(pod) else pod for pod in pods]


def _without_tpus(pod: JsonObject) -> JsonObject:
    containers = []
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        requests = resources.get("requests") or {}
        kept = {name: amount for name, amount in requests.items() if not name.startswith(TPU_PREFIX)}
        containers.append({**container, "resources": {**resources, "requests": kept}})
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def without_expendable(pods: Iterable[JsonObject], cutoff: int) -> list[JsonObject]:
    """Pods that are worth a node: those whose priority is not below the cutoff, or that have none."""
    return [
        pod for pod in pods
        if (priority := (pod.get("spec") or _EMPTY).get("priority")) is None or priority >= cutoff
    ]  # fmt: skip


def recreatable_pods(snapshot: ClusterSnapshot, drained_nodes: Iterable[str]) -> list[JsonObject]:
    """The pods of nodes that are being drained, as their controllers will make them again: without a node."""
    return [
        without_node(pod)
        for name in drained_nodes
        if snapshot.has_node(name)
        for pod in snapshot.pods_on(name)
        if not (is_terminating(pod) or is_static(pod) or is_mirror(pod) or is_daemon_set_pod(pod))
    ]


def without_daemon_set_pods(pods: Iterable[PodFacts]) -> list[PodFacts]:
    """Pods that a new node can help: a daemon needs a node that is there."""
    return [facts for facts in pods if not facts.is_daemon]


def without_young(pods: Iterable[PodFacts], now_s: float, delay_s: float) -> list[PodFacts]:
    """Pods that are older than the delay. A pod may ask for a longer one by an annotation, not for a shorter."""
    latest_s = now_s - delay_s
    return [
        facts for facts in pods
        if facts.created_s < latest_s and (facts.delay_text is None or _has_waited(facts, facts.delay_text, now_s))
    ]  # fmt: skip


def _has_waited(facts: PodFacts, delay_text: str, now_s: float) -> bool:
    try:
        return now_s - facts.created_s > parse_duration(delay_text)
    except TimeFormatError:
        # Upstream logs this and goes by the flag alone.
        return True
