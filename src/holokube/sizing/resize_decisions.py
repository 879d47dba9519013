"""What to do about a pod that runs already: is it still of the size that its node and its annotations say?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holokube.kube.sizing import ORIGINAL_ANNOTATION, STATUS_ANNOTATION, Sizing, is_enabled, size
from holokube.kube.types import JsonObject
from holokube.sizing.review import patch_of

_EMPTY: Final[Mapping[str, Any]] = {}
_FINISHED: Final = ("Succeeded", "Failed")
_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """Up to three writes, in this order: so that at no point what was written is lost or the status untrue."""

    note: JsonObject | None
    """Merge patch of the pod: what its containers asked for, as far as that is not noted yet."""
    resize: JsonObject | None
    """Strategic merge patch of ``pods/resize``."""
    status: JsonObject | None
    """Merge patch of the pod: what was applied."""

    @property
    def is_empty(self) -> bool:
        return self.note is None and self.resize is None and self.status is None


NOTHING: Final = ResizePlan(None, None, None)


def can_be_resized(pod: Mapping[str, Any]) -> bool:
    """Whether a pod opts in, is on a node and will stay there; the kubelet's own pods follow their files."""
    metadata, status = pod.get("metadata") or _EMPTY, pod.get("status") or _EMPTY
    return (
        is_enabled(pod)
        and bool((pod.get("spec") or _EMPTY).get("nodeName"))
        and not metadata.get("deletionTimestamp")
        and status.get("phase") not in _FINISHED
        and _MIRROR not in (metadata.get("annotations") or _EMPTY)
    )


def plan_resize(pod: Mapping[str, Any], node: Mapping[str, Any]) -> ResizePlan:
    """What to write; raises a ``SizingProblem`` if the pod has no size there."""
    sizing = size(pod, node)
    if not sizing.annotations:
        return NOTHING
    existing = (pod.get("metadata") or _EMPTY).get("annotations") or _EMPTY
    note, status = (
        None if existing.get(name) == sizing.annotations[name] else _annotate(name, sizing.annotations[name])
        for name in (ORIGINAL_ANNOTATION, STATUS_ANNOTATION)
    )
    return ResizePlan(note, _resize(pod, sizing), status)


def _annotate(name: str, text: str) -> JsonObject:
    return {"metadata": {"annotations": {name: text}}}


def _resize(pod: Mapping[str, Any], sizing: Sizing) -> JsonObject | None:
    changed = [operation["path"] for operation in patch_of(pod, sizing)]
    spec: JsonObject = {}
    for sized in sizing.containers:
        if any(path.startswith(f"/spec/{sized.list_field}/{sized.index}/") for path in changed):
            change = {"name": sized.name, "resources": sized.resources}
            spec.setdefault(sized.list_field, []).append(change)
    if any(path.startswith("/spec/resources") for path in changed):
        spec["resources"] = sizing.pod_resources
    return {"spec": spec} if spec else None
