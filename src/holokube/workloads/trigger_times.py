"""When the change happened that endpoints are written for: the annotation by which their delay is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holokube.client.cache import object_key
from holokube.kube.conditions import get_condition
from holokube.kube.types import JsonObject

LAST_CHANGE: Final = "endpoints.kubernetes.io/last-change-trigger-time"


class TriggerTimes:
    """Remembers, per service, the times at which it and its pods last changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, dict[str, str]]] = {}

    def look(self, service: JsonObject, pods: Iterable[Mapping[str, Any]]) -> str:
        """The earliest change since the last look, as RFC 3339; empty if nothing with a time changed."""
        key = object_key(service)
        created = str(service["metadata"].get("creationTimestamp") or "")
        known = self._known.get(key)
        before, pods_before = known or ("", {})
        times = {pod["metadata"]["name"]: at for pod in pods if (at := _ready_changed_at(pod))}
        self._known[key] = (created, times)
        if known is None:
            return created
        # Times of the API are all in one format and zone, so they sort as text.
        changed = [at for name, at in times.items() if at > pods_before.get(name, "")]
        if created > before:
            changed.append(created)
        return min(changed, default="")

    def forget(self, key: str) -> None:
        self._known.pop(key, None)


def _ready_changed_at(pod: Mapping[str, Any]) -> str:
    return str((get_condition(pod, "Ready") or {}).get("lastTransitionTime") or "")


def with_trigger_time(obj: JsonObject, at: str) -> JsonObject:
    """An object with the annotation, or without it if no time is known."""
    annotations = {k: v for k, v in (obj["metadata"].get("annotations") or {}).items() if k != LAST_CHANGE}
    if at:
        annotations[LAST_CHANGE] = at
    meta = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        meta["annotations"] = annotations
    return {**obj, "metadata": meta}
