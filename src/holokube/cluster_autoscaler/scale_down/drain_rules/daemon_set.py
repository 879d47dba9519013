"""Every node has its pod of a DaemonSet, so nobody misses the one of a node that goes."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import is_daemon_set_pod
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DRAIN, DrainContext, DrainRule, Verdict
from holokube.kube.types import JsonObject


def judge(pod: JsonObject, _context: DrainContext) -> Verdict | None:
    """A DaemonSet's pod never holds its node."""
    return DRAIN if is_daemon_set_pod(pod) else None


RULE = DrainRule("DaemonSet", judge)
