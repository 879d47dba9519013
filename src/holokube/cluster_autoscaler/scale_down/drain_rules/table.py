"""The drain rules in the order in which they are asked; the first that has something to say decides."""

from __future__ import annotations

from holokube.cluster_autoscaler.objects import is_daemon_set_pod
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


def depends_on_time(pod: JsonObject) -> bool:
    """Whether the rules may think otherwise of the same pod some time later: it may be dying, or young in a system."""
    metadata = pod["metadata"]
    if metadata.get("deletionTimestamp"):
        return True
    return metadata.get("namespace") == system.NAMESPACE and not is_daemon_set_pod(pod)


_BY_CIRCUMSTANCES = (replica_count.RULE, pdb.RULE)
"""The rules whose word on an ordinary pod is not the same for ever."""
_PODS_MAX = 16_384


class Judge:
    """The same as ``judge``, for those who ask again and again about the same pods.

    Most pods are ordinary: of all rules only those speak about them that look at controllers and budgets. Pods are
    immutable, so once that is known of one it holds.
    """

    def __init__(self, rules: tuple[DrainRule, ...]) -> None:
        self._rules = rules
        self._of_itself = tuple(rule for rule in rules if rule not in _BY_CIRCUMSTANCES)
        self._by_circumstances = tuple(rule for rule in rules if rule in _BY_CIRCUMSTANCES)
        # An object is remembered by itself, so that no other can have its id while it is.
        self._ordinary: dict[int, JsonObject] = {}

    def __call__(self, pod: JsonObject, context: DrainContext) -> Verdict:
        """What becomes of a pod when its node is drained."""
        if id(pod) not in self._ordinary:
            if depends_on_time(pod) or any(rule.judge(pod, context) is not None for rule in self._of_itself):
                return judge(pod, self._rules, context)
            if len(self._ordinary) >= _PODS_MAX:
                self._ordinary.clear()
            self._ordinary[id(pod)] = pod
        for rule in self._by_circumstances:
            verdict = rule.judge(pod, context)
            if verdict is not None:
                return verdict
        return DRAIN
