"""A pod that has finished has nothing left to lose."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import is_terminal
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DRAIN, DrainContext, DrainRule, Verdict
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, _context: DrainContext) -> Verdict | None:
    """Drain a failed pod, and one that succeeded and will not be started again."""
    return DRAIN if is_terminal(pod) else None


RULE = DrainRule("Terminal", judge)
