"""Sorting the pods of a node by what becomes of them when it is drained."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from holokube.cluster_autoscaler.objects import is_daemon_set_pod
from holokube.cluster_autoscaler.scale_down.drain_rules import (
    DrainContext,
    DrainRule,
    Judge,
    Outcome,
    depends_on_time,
    judge,
)
from holokube.cluster_autoscaler.scale_down.report import BlockingPod
from holokube.kube.types import JsonObject


class PodMoves(NamedTuple):
    """The pods of a node. With a blocking pod the rest is not complete."""

    pods: tuple[JsonObject, ...] = ()
    """To be moved elsewhere."""
    daemon_set_pods: tuple[JsonObject, ...] = ()
    on_completion_pods: tuple[JsonObject, ...] = ()
    blocking_pod: BlockingPod | None = None


def pods_to_move(
    pods: Iterable[JsonObject], rules: tuple[DrainRule, ...] | Judge, context: DrainContext
) -> PodMoves:
    """What becomes of each pod; the first that blocks ends it."""
    decide = rules if isinstance(rules, Judge) else Judge(rules)
    moved: list[JsonObject] = []
    daemons: list[JsonObject] = []
    waiting: list[JsonObject] = []
    for pod in pods:
        outcome, reason, message = decide(pod, context)
        if outcome is Outcome.DRAIN:
            (daemons if is_daemon_set_pod(pod) else moved).append(pod)
        elif outcome is Outcome.WAIT:
            waiting.append(pod)
        elif outcome is Outcome.BLOCK:
            assert reason is not None, "whoever blocks says why"
            return PodMoves(tuple(moved), tuple(daemons), tuple(waiting), BlockingPod(pod, reason, message))
    return PodMoves(tuple(moved), tuple(daemons), tuple(waiting))


class Emptiness(NamedTuple):
    """Whether nothing on a node has to be moved, and whether it waits for a pod all the same."""

    is_empty: bool
    has_on_completion_pods: bool = False


def emptiness_of(pods: Iterable[JsonObject], rules: tuple[DrainRule, ...], context: DrainContext) -> Emptiness:
    """The same question with yes or no: the first pod that would move or block answers it."""
    return lasting_emptiness_of(pods, rules, context)[0]


def lasting_emptiness_of(
    pods: Iterable[JsonObject], rules: tuple[DrainRule, ...] | Judge, context: DrainContext
) -> tuple[Emptiness, bool]:
    """The same, and whether the answer holds as long as the pods are the same, whatever the time."""
    emptiness, lasts, _ = witnessed_emptiness_of(pods, rules, context)
    return emptiness, lasts


def witnessed_emptiness_of(
    pods: Iterable[JsonObject], rules: tuple[DrainRule, ...] | Judge, context: DrainContext
) -> tuple[Emptiness, bool, JsonObject | None]:
    """The same, and the pod for which a node is not empty, if that holds as long as that pod is there."""
    decide = rules if isinstance(rules, Judge) else partial(judge, rules=rules)
    waits, lasts = False, True
    for pod in pods:
        is_lasting = not depends_on_time(pod)
        lasts = lasts and is_lasting
        outcome = decide(pod, context=context).outcome
        if outcome is Outcome.BLOCK or (outcome is Outcome.DRAIN and not is_daemon_set_pod(pod)):
            return Emptiness(False), lasts, pod if is_lasting else None
        waits = waits or outcome is Outcome.WAIT
    return Emptiness(True, waits), lasts, None
