"""How many pods a ReplicaSet or ReplicationController lacks or has too many, and what its status says."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from holokube.kube.conditions import conditions_of, find_condition, remove_condition
from holokube.kube.selectors import LabelSelector
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.workloads.pod_book import Alike
from holokube.workloads.pod_control import BURST_PODS
from holokube.workloads.pod_status import (
    Standings,
    deletion_order,
    in_order,
    is_active,
    is_available,
    is_pod_ready,
    node_of,
    remember,
)

_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class ReplicaChanges:
    """So many pods to create, these to delete; one of the two is always nothing."""

    create: int = 0
    delete: Sequence[JsonObject] = field(default_factory=tuple)


def decide_replicas(
    replicas: int,
    active: Sequence[JsonObject],
    related: Sequence[JsonObject],
    now: datetime,
) -> ReplicaChanges:
    """``related`` are the pods of all sets of the same owner: a node that has several loses one first."""
    surplus = len(active) - replicas
    if surplus < 0:
        return ReplicaChanges(create=min(-surplus, BURST_PODS))
    surplus = min(surplus, BURST_PODS)
    if surplus == 0:
        return ReplicaChanges()
    if surplus == len(active):
        return ReplicaChanges(delete=active)
    return ReplicaChanges(delete=deletion_order(active, related, now)[:surplus])


def decide_surplus(
    replicas: int, pods: Iterable[JsonObject], others: Iterable[JsonObject], now: datetime, known: Standings
) -> Sequence[JsonObject]:
    """Which pods to delete, as ``decide_replicas`` has it, of all that an owner controls; ``others`` keep them company.

    ``known`` is what is remembered of the pods from one time to the next.
    """
    active = [standing for standing in remember(pods, known) if standing.active]
    surplus = min(len(active) - replicas, BURST_PODS)
    if surplus <= 0:
        return ()
    if surplus < len(active):
        nodes = [standing.node for standing in active]
        nodes += [node_of(pod) for pod in others if is_active(pod)]
        active = in_order(active, nodes, now, surplus)
    return [standing.pod for standing in active[:surplus]]


class Numbers(NamedTuple):
    """All that a status says of the pods."""

    active: int
    ready: int
    available: int
    labelled: int
    """How many active ones have all labels of the template."""
    terminating: int


@dataclass(slots=True)
class Roll:
    """The pods of an owner, looked at once."""

    active: list[JsonObject] = field(default_factory=list)
    ready: list[JsonObject] = field(default_factory=list)
    labelled: int = 0
    terminating: int = 0

    def numbers(self, min_ready_s: int, now: datetime) -> Numbers:
        ready = len(self.ready)
        available = sum(is_available(pod, min_ready_s, now) for pod in self.ready) if min_ready_s else ready
        return Numbers(len(self.active), ready, available, self.labelled, self.terminating)


def call_roll(pods: Iterable[JsonObject], selector: LabelSelector, template_labels: Mapping[str, str]) -> Roll | None:
    """Counts the pods that an owner controls; None if its selector does not match one of them."""
    roll = Roll()
    known: Mapping[str, str] | None = None
    is_labelled = False
    for pod in pods:
        meta, status = pod["metadata"], pod.get("status") or _EMPTY
        labels = meta.get("labels") or _EMPTY
        if labels != known:
            # Pods of one template have the same labels: one of them is asked for all.
            if not selector.matches(labels):
                return None
            known, is_labelled = labels, has_labels(labels, template_labels)
        if status.get("phase") in ("Succeeded", "Failed"):
            continue
        if meta.get("deletionTimestamp"):
            roll.terminating += 1
            continue
        roll.active.append(pod)
        roll.labelled += is_labelled
        for condition in status.get("conditions") or ():
            if condition.get("type") == "Ready":
                if condition.get("status") == "True":
                    roll.ready.append(pod)
                break
    return roll


def roll_of(
    active: Sequence[JsonObject], terminating: int, template_labels: Mapping[str, str]
) -> Roll:
    """The same for pods that are known to be the owner's."""
    ready = [pod for pod in active if is_pod_ready(pod)]
    labelled = sum(has_labels(pod["metadata"].get("labels") or _EMPTY, template_labels) for pod in active)
    return Roll(list(active), ready, labelled, terminating)


def add_up(alikes: Collection[Alike], selector: LabelSelector, template_labels: Mapping[str, str]) -> Numbers | None:
    """The same from the book of pods, for an owner whose pods are available as soon as they are ready.

    None if the selector does not match one of the labels that its pods have; else it is noted of all of them whether
    they are all labels of the template.
    """
    for alike in alikes:
        if not selector.matches(alike.labels):
            return None
    for alike in alikes:
        alike.is_labelled = has_labels(alike.labels, template_labels)
    return judged_numbers(alikes)


def judged_numbers(alikes: Iterable[Alike]) -> Numbers | None:
    """What ``add_up`` finds, from what it noted before of the labels; None if there are some of which it did not."""
    active = ready = labelled = terminating = 0
    for alike in alikes:
        if alike.is_labelled is None:
            return None
        _, now_terminating, now_unready, now_ready = alike.numbers
        active += now_unready + now_ready
        ready += now_ready
        terminating += now_terminating
        if alike.is_labelled:
            labelled += now_unready + now_ready
    return Numbers(active, ready, ready, labelled, terminating)


def selects_alike(spec: JsonObject, other: JsonObject) -> bool:
    """Whether owners of these specs select and label their pods in the same way."""
    return spec is other or (
        spec.get("selector") == other.get("selector")
        and template_labels_of({"spec": spec}) == template_labels_of({"spec": other})
    )


def template_labels_of(owner: JsonObject) -> Mapping[str, str]:
    """The labels that an owner gives its pods."""
    template = owner["spec"].get("template") or _EMPTY
    return (template.get("metadata") or _EMPTY).get("labels") or _EMPTY


def replicas_of(obj: JsonObject) -> int:
    """The wanted number; the API's default where a server leaves it out."""
    replicas = obj["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def min_ready_s_of(obj: JsonObject) -> int:
    return int(obj["spec"].get("minReadySeconds") or 0)


def decide_status(
    owner: JsonObject, roll: Roll, failure: str, now: datetime, *, counts_terminating: bool
) -> JsonObject:
    """The new status; not all kinds report who is on the way out. ``failure`` is empty if there is none."""
    numbers = roll.numbers(min_ready_s_of(owner), now)
    return status_with(owner, numbers, failure, now, counts_terminating=counts_terminating)


def status_with(
    owner: JsonObject, numbers: Numbers, failure: str, now: datetime, *, counts_terminating: bool
) -> JsonObject:
    """The same where the pods are counted already."""
    status: JsonObject = {"replicas": numbers.active}
    if numbers.labelled:
        status["fullyLabeledReplicas"] = numbers.labelled
    if numbers.ready:
        status["readyReplicas"] = numbers.ready
    if numbers.available:
        status["availableReplicas"] = numbers.available
    generation = int(owner["metadata"].get("generation") or 0)
    if generation:
        status["observedGeneration"] = generation
    if counts_terminating:
        status["terminatingReplicas"] = numbers.terminating
    if failure or conditions_of(owner):
        # Most have nothing to tell of, and had not.
        conditions = _conditions(owner, numbers.active, failure, now)
        if conditions:
            status["conditions"] = conditions
    return status


def _conditions(owner: JsonObject, active: int, failure: str, now: datetime) -> list[JsonObject]:
    conditions = conditions_of(owner)
    if not failure:
        return remove_condition(conditions, "ReplicaFailure")
    if find_condition(conditions, "ReplicaFailure") is not None:
        # The first failure stands until all is well again, so that a changing message is no new status.
        return conditions
    reason = "FailedCreate" if active < replicas_of(owner) else "FailedDelete"
    condition = {
        "type": "ReplicaFailure", "status": "True", "lastTransitionTime": format_time(now),
        "reason": reason, "message": failure,
    }  # fmt: skip
    return [*conditions, condition]


def has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether all that are wanted are there."""
    for key, value in wanted.items():  # noqa: SIM110 - all() with a generator costs twice as much
        if labels.get(key) != value:
            return False
    return True
