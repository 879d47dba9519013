"""A pod may ask to be left alone."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import pod_key
from holokube.cluster_autoscaler.scale_down.drain_rules.safe_to_evict import safe_to_evict
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DrainContext, DrainRule, Verdict, block
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, _context: DrainContext) -> Verdict | None:
    """Block a pod that says so."""
    if safe_to_evict(pod) != "false":
        return None
    return block(BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION, f"{pod_key(pod)} is annotated as not safe to evict")


RULE = DrainRule("NotSafeToEvict", judge)
