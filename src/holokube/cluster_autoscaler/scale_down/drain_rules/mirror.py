"""Mirror pods live and die with their kubelet."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import is_mirror
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import SKIP, DrainContext, DrainRule, Verdict
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, _context: DrainContext) -> Verdict | None:
    """Skip a mirror pod."""
    return SKIP if is_mirror(pod) else None


RULE = DrainRule("Mirror", judge)
