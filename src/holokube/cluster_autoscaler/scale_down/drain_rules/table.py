"""The drain rules in the order in which they are asked; the first that has something to say decides."""

from __future__ import annotations

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import (
    daemon_set,
    local_storage,
    long_terminating,
    mirror,
    not_safe_to_evict,
    on_completion,
    pdb,
    replica_count,
    replicated,
    safe_to_evict,
    system,
    terminal,
)
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DRAIN, DrainContext, DrainRule, Verdict
from holokube.kube.types import JsonObject

ALL_RULES: tuple[DrainRule, ...] = (
    # Pods that are not there to be moved.
    mirror.RULE,
    long_terminating.RULE,
    # Even a pod that may leave must not leave for ever.
    replica_count.RULE,
    # Pods that may go whatever the rules below would say.
    daemon_set.RULE,
    safe_to_evict.RULE,
    terminal.RULE,
    on_completion.RULE,
    # Pods that hold their node.
    replicated.RULE,
    system.RULE,
    not_safe_to_evict.RULE,
    local_storage.RULE,
    pdb.RULE,
)


def rules_for(options: AutoscalerOptions) -> tuple[DrainRule, ...]:
    """The rules that the settings leave on, in order."""
    return tuple(rule for rule in ALL_RULES if rule.is_on is None or rule.is_on(options))


def judge(pod: JsonObject, rules: tuple[DrainRule, ...], context: DrainContext) -> Verdict:
    """What becomes of a pod when its node is drained; a pod about which no rule speaks is moved."""
    for rule in rules:
        verdict = rule.judge(pod, context)
        if verdict is not None:
            return verdict
    return DRAIN
