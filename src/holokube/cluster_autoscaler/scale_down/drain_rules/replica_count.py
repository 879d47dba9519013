"""A pod whose controller is gone would not come back; one of a small set may be one of the last."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import controller_of, is_daemon_set_pod, pod_key
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DrainContext, DrainRule, Verdict, block
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject

_COUNTED_KINDS = ("ReplicationController", "ReplicaSet")


def judge(pod: JsonObject, context: DrainContext) -> Verdict | None:
    """Block if the controller object is missing, or wants fewer replicas than ``--min-replica-count``."""
    owner = controller_of(pod)
    if context.controllers is None or owner is None:
        return None
    kind = owner.get("kind", "")
    if not _can_be_looked_up(kind, owner.get("apiVersion", ""), is_daemon_set_pod(pod)):
        return None
    # Owners are in the namespace of what they own.
    namespace = pod["metadata"].get("namespace") or ""
    controller = context.controllers.get((kind, namespace, owner.get("name", "")))
    if controller is None:
        return block(
            BlockingReason.CONTROLLER_NOT_FOUND, f"{kind} {owner.get('name')} of {pod_key(pod)} is not there"
        )
    if kind in _COUNTED_KINDS:
        replicas = (controller.get("spec") or {}).get("replicas")
        if replicas is not None and replicas < context.options.min_replica_count:
            return block(
                BlockingReason.MIN_REPLICAS_REACHED,
                f"{kind} {owner.get('name')} of {pod_key(pod)} wants {replicas} replicas, fewer than "
                f"{context.options.min_replica_count}",
            )
    return None


def _can_be_looked_up(kind: str, api_version: str, is_daemon_pod: bool) -> bool:
    """Kinds of other API groups that happen to have the same name are nobody we know."""
    group = api_version.rpartition("/")[0]
    if kind == "ReplicationController":
        return True
    if is_daemon_pod:
        return group == "apps" and kind == "DaemonSet"
    return kind in ("Job", "ReplicaSet") or (kind == "StatefulSet" and group == "apps")


RULE = DrainRule("ReplicaCount", judge, lambda options: options.skip_nodes_with_custom_controller_pods)
