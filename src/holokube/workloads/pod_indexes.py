"""Indexes of the shared pod informer that several housekeeping controllers read."""

from __future__ import annotations

from typing import Final

from holokube.client.audience import DELETION, ENDING, LABELS, SPEC
from holokube.client.cache import Lister
from holokube.client.informer import Informer
from holokube.client.resources import PODS
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

NODE_INDEX: Final = "node"
"""Pods by the node they are bound to; the unbound ones are not in it."""
ENDING_INDEX: Final = "ending"
TERMINATED: Final = "terminated"
TERMINATING: Final = "terminating"
"""Pods whose containers are over, and pods that are being deleted: the few that a cleaner looks at."""
LABEL_INDEX: Final = "label"
"""Pods by each of their labels."""


def by_label(pod: JsonObject) -> list[str]:
    meta = pod["metadata"]
    labels = meta.get("labels")
    if not labels:
        return []
    # Written out as ``_labelled`` has it, since it is asked for each change of each pod.
    space = meta.get("namespace") or ""
    return [f"{space}/{key}={value}" for key, value in labels.items()]


def _labelled(space: str, key: str, value: str) -> str:
    return f"{space}/{key}={value}"


def selected_pods(pods: Lister, namespace: str, selector: LabelSelector) -> list[JsonObject]:
    """The pods of a namespace that a selector matches, of a lister with the index by label.

    Where the selector demands a label, only the pods that have it are looked at.
    """
    for requirement in selector.requirements:
        value = selector.required_value(requirement.key)
        if value is not None and not selector.matches_nothing:
            found = pods.by_index(LABEL_INDEX, _labelled(namespace, requirement.key, value))
            return [pod for pod in found if selector.matches(pod["metadata"].get("labels") or {})]
    return pods.list(namespace, selector=selector)


def by_node(pod: JsonObject) -> tuple[str, ...]:
    node = (pod.get("spec") or {}).get("nodeName")
    return (node,) if node else ()


def by_ending(pod: JsonObject) -> tuple[str, ...]:
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    leaving = bool(pod["metadata"].get("deletionTimestamp"))
    if over:
        return (TERMINATED, TERMINATING) if leaving else (TERMINATED,)
    return (TERMINATING,) if leaving else ()


def pods_by_node(informers: InformerSet) -> Informer:
    return informers.indexed(PODS, NODE_INDEX, by_node, heeds=SPEC)


def pods_by_label(informers: InformerSet) -> Informer:
    # Services and budgets ask for it; a cluster without them has no use for it.
    return informers.indexed(PODS, LABEL_INDEX, by_label, heeds=LABELS, when_asked=True)


def pods_by_ending(informers: InformerSet) -> Informer:
    return informers.indexed(PODS, ENDING_INDEX, by_ending, heeds=ENDING | DELETION)
