"""Indexes of the shared pod informer that several housekeeping controllers read."""

from __future__ import annotations

from typing import Final

from holokube.client.informer import Informer
from holokube.client.resources import PODS
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet

NODE_INDEX: Final = "node"
"""Pods by the node they are bound to; the unbound ones are not in it."""
ENDING_INDEX: Final = "ending"
TERMINATED: Final = "terminated"
TERMINATING: Final = "terminating"
"""Pods whose containers are over, and pods that are being deleted: the few that a cleaner looks at."""


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
    return informers.indexed(PODS, NODE_INDEX, by_node)


def pods_by_ending(informers: InformerSet) -> Informer:
    return informers.indexed(PODS, ENDING_INDEX, by_ending)
