"""Which pods of a node that is to go are asked to leave next.

Four groups leave one after the other: ordinary pods, ordinary DaemonSet pods, critical pods, critical DaemonSet pods. A
deadline overrides the order: pods whose own grace period reaches beyond it are deleted at once, whatever their group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holokube.karpenter.disruption.pods import (
    is_active,
    is_daemon,
    is_mirror,
    is_terminal,
    is_terminating,
    tolerates_disruption,
)
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

STUCK_AFTER_S: Final = 60.0
CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})


@dataclass(frozen=True, slots=True)
class Drain:
    """What to do now; drained when nobody is waited for."""

    waiting: int
    leaving: tuple[JsonObject, ...] = ()
    """Pods to put into the eviction queue."""

    @property
    def is_done(self) -> bool:
        return self.waiting == 0


def drain(pods: Iterable[JsonObject], deadline_s: float | None, now_s: float) -> Drain:
    """The next step for a node's pods."""
    waiting = [pod for pod in pods if is_waited_for(pod, now_s)]
    forced, graceful = list[JsonObject](), waiting
    if deadline_s is not None:
        forced = [pod for pod in waiting if must_be_deleted(pod, deadline_s, now_s)]
        graceful = [pod for pod in waiting if not must_be_deleted(pod, deadline_s, now_s)]
    for group in _groups(graceful):
        if group:
            return Drain(len(waiting), (*forced, *group))
    return Drain(len(waiting), tuple(forced))


def _groups(pods: list[JsonObject]) -> list[list[JsonObject]]:
    groups: list[list[JsonObject]] = [[], [], [], []]
    for pod in pods:
        is_critical = (pod.get("spec") or {}).get("priorityClassName") in CRITICAL
        groups[2 * is_critical + is_daemon(pod)].append(pod)
    return groups


def is_waited_for(pod: JsonObject, now_s: float) -> bool:
    """Whether the node has to wait for the pod; a protected one is waited for, though nobody asks it to leave."""
    return not is_terminal(pod) and is_drainable(pod, now_s)


def is_drainable(pod: JsonObject, now_s: float) -> bool:
    """Whether a drain can get rid of the pod at all."""
    return not tolerates_disruption(pod) and not _is_stuck(pod, now_s) and not is_mirror(pod)


def _is_stuck(pod: JsonObject, now_s: float) -> bool:
    """Whether it should have been gone a minute ago: nobody answers for it any more."""
    return is_terminating(pod) and now_s - _end_s(pod) > STUCK_AFTER_S


def must_be_deleted(pod: JsonObject, deadline_s: float | None, now_s: float) -> bool:
    """Whether the pod would outlive the node if it were left its own grace period from now on."""
    if deadline_s is None:
        return False
    if is_terminating(pod):
        return _end_s(pod) > deadline_s
    grace_s = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return grace_s is not None and now_s > deadline_s - grace_s


def remaining_grace_s(deadline_s: float, now_s: float) -> int:
    """What a pod is left; never zero, which would delete it without asking its node."""
    return max(int(deadline_s - now_s), 1)


def is_settled(pod: JsonObject) -> bool:
    """Whether there is nothing left to ask of the pod: it has ended, or is about to."""
    return not is_active(pod)


def _end_s(pod: JsonObject) -> float:
    """When a terminating pod is to be gone."""
    return parse_time(pod["metadata"]["deletionTimestamp"]).timestamp()
