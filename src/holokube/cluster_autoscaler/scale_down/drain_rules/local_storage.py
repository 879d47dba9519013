"""What a pod keeps on its node's disk would be lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.cluster_autoscaler.objects import SAFE_TO_EVICT_VOLUMES_ANNOTATION, annotations_of, pod_key
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DrainContext, DrainRule, Verdict, block
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, _context: DrainContext) -> Verdict | None:
    """Block a pod with a hostPath or an emptyDir on disk that it does not declare worthless."""
    volumes = (pod.get("spec") or {}).get("volumes")
    if not volumes:
        return None
    worthless = annotations_of(pod).get(SAFE_TO_EVICT_VOLUMES_ANNOTATION, "").split(",")
    for volume in volumes:
        if _is_local(volume) and volume.get("name") not in worthless:
            return block(
                BlockingReason.LOCAL_STORAGE_REQUESTED, f"{pod_key(pod)} keeps data on its node: {volume.get('name')}"
            )
    return None


def _is_local(volume: Mapping[str, Any]) -> bool:
    if volume.get("hostPath") is not None:
        return True
    empty_dir = volume.get("emptyDir")
    return empty_dir is not None and empty_dir.get("medium") != "Memory"


RULE = DrainRule("LocalStorage", judge, lambda options: options.skip_nodes_with_local_storage)
