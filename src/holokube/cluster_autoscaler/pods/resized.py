"""Pods that take something else than their spec says, because they are in the middle of a resize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from holokube.cluster_autoscaler.pods.kinds import PodKind
from holokube.kube.resources import is_resize_infeasible
from holokube.kube.types import JsonObject
from holokube.packing import PodClass
from holokube.packing.podclass import requests_of

_EMPTY: Final[Mapping[str, Any]] = {}
_MOST_SIZES: Final = 16_384


def has_what_it_asks_for(pod: JsonObject) -> bool:
    """Whether the state of a pod tells plainly that its containers have what they ask for; False if it may not."""
    status = pod.get("status") or _EMPTY
    told = status.get("containerStatuses") or ()
    if status.get("resources") is not None or status.get("initContainerStatuses"):
        return False
    asked: Mapping[str, Any] | None = None
    for container in told:
        has, allocated = container.get("resources"), container.get("allocatedResources")
        if has is None and allocated is None:
            continue
        if asked is None:
            asked = {one["name"]: (one.get("resources") or _EMPTY).get("requests") for one in pod["spec"]["containers"]}
        wants = asked.get(container.get("name"))
        if (has is not None and has.get("requests") != wants) or (allocated is not None and allocated != wants):
            return False
    return True


class ResizedPods:
    """Tells such pods from others. Remembers the sizes it has seen."""

    def __init__(self, class_of: Callable[[JsonObject], PodClass]) -> None:
        self._class_of = class_of
        self._known: dict[tuple[PodKind, bytes], bool] = {}

    def has(self, pod: JsonObject, kind: PodKind, status: Mapping[str, Any]) -> bool:
        """Whether a pod of a kind with that status is one of them."""
        if has_what_it_asks_for(pod):
            return False
        sizes = [
            (container.get("name"), container.get("resources"), container.get("allocatedResources"))
            for field in ("containerStatuses", "initContainerStatuses")
            for container in status.get(field) or ()
            if container.get("resources") is not None
        ]
        whole = status.get("resources")
        if not sizes and whole is None:
            return False
        key = kind, orjson.dumps((sizes, whole, is_resize_infeasible(pod)))
        found = self._known.get(key)
        if found is None:
            if len(self._known) > _MOST_SIZES:
                self._known.clear()
            found = self._known[key] = requests_of(pod, use_status=True) != self._class_of(pod).requests
        return found
