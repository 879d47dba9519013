"""A pod that no controller would create again is not taken from its node."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import controller_of, pod_key
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DrainContext, DrainRule, Verdict, block
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject

REPLICATING_KINDS = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})


def judge(pod: JsonObject, context: DrainContext) -> Verdict | None:
    """Block a pod without a controller, or with one of a kind whose habits are unknown."""
    owner = controller_of(pod)
    if owner is not None and (
        not context.options.skip_nodes_with_custom_controller_pods or owner.get("kind") in REPLICATING_KINDS
    ):
        return None
    return block(BlockingReason.NOT_REPLICATED, f"{pod_key(pod)} is not replicated")


RULE = DrainRule("Replicated", judge)
