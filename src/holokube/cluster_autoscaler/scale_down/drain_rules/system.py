"""Pods of kube-system without a budget hold their node for an hour after they came, then no longer."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import creation_s, pod_key
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DRAIN, DrainContext, DrainRule, Verdict, block
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject

NAMESPACE = "kube-system"


def judge(pod: JsonObject, context: DrainContext) -> Verdict | None:
    """Block a young system pod without a budget; drain an old one."""
    if pod["metadata"].get("namespace") != NAMESPACE or context.pdbs.matching(pod):
        return None
    created = bool(pod["metadata"].get("creationTimestamp"))
    timeout_s = context.options.blocking_system_pod_distruption_timeout_s
    if created and context.now_s > creation_s(pod) + timeout_s:
        return DRAIN
    return block(
        BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD, f"{pod_key(pod)} is a system pod without a disruption budget"
    )


RULE = DrainRule("System", judge, lambda options: options.skip_nodes_with_system_pods)
