"""A pod may ask that its node waits until it has finished by itself."""

from __future__ import annotations

from holokube.cluster_autoscaler.scale_down.drain_rules.safe_to_evict import safe_to_evict
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import WAIT, DrainContext, DrainRule, Verdict
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, _context: DrainContext) -> Verdict | None:
    """Wait for a pod that says so."""
    return WAIT if safe_to_evict(pod) == "on-completion" else None


RULE = DrainRule("OnCompletion", judge)
