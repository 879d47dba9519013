"""Whoever annotates a pod as safe to evict has the last word over all blocking rules, budgets included.

The eviction itself still asks the budget.
"""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import SAFE_TO_EVICT_ANNOTATION, annotations_of
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DRAIN, DrainContext, DrainRule, Verdict
from holokube.kube.types import JsonObject


def safe_to_evict(pod: JsonObject) -> str | None:
    """The value of the annotation."""
    return annotations_of(pod).get(SAFE_TO_EVICT_ANNOTATION)


def judge(pod: JsonObject, _context: DrainContext) -> Verdict | None:
    """Drain a pod that says so."""
    return DRAIN if safe_to_evict(pod) == "true" else None


RULE = DrainRule("SafeToEvict", judge)
