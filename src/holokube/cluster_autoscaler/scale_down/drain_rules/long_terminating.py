"""A pod that should be gone by now, its grace period and half a minute being over, is taken for gone."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import is_long_terminating
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import SKIP, DrainContext, DrainRule, Verdict
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, context: DrainContext) -> Verdict | None:
    """Skip a pod that has been terminating for too long."""
    return SKIP if is_long_terminating(pod, context.now_s) else None


RULE = DrainRule("LongTerminating", judge)
