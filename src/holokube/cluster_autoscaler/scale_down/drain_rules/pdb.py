"""A pod whose disruption budget is used up stays where it is."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import pod_key
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DrainContext, DrainRule, Verdict, block
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, context: DrainContext) -> Verdict | None:
    """Block if any budget of the pod allows no disruption."""
    for budget in context.pdbs.matching(pod):
        if budget.allowed < 1:
            return block(
                BlockingReason.NOT_ENOUGH_PDB,
                f"disruption budget {budget.namespace}/{budget.name} does not let {pod_key(pod)} go",
            )
    return None


RULE = DrainRule("PDB", judge)
