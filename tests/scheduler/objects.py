"""Pods for scheduler tests: as the packing tests' own, with a uid and a priority."""

from __future__ import annotations

from typing import Any

from tests.builders import JsonObject
from tests.packing.objects import make_node, make_pod

__all__ = ["make_node", "started", "waiting"]


def waiting(name: str = "p", *, priority: int = 0, cpu: str = "", nominated: str = "", **more: Any) -> JsonObject:
    """A pod, with a uid of its own."""
    if cpu:
        more["requests"] = {"cpu": cpu}
    pod = make_pod(name, priority=priority, **more)
    pod["metadata"]["uid"] = f"uid-{name}"
    pod["status"] = {"nominatedNodeName": nominated} if nominated else {}
    return pod


def started(pod: JsonObject, at: str) -> JsonObject:
    """The pod, running since a time of the first of January."""
    return {**pod, "status": {**(pod.get("status") or {}), "startTime": f"2026-01-01T{at}Z"}}
