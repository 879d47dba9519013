"""What the status of a Deployment says: counts, availability, progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from holokube.kube.conditions import conditions_of, find_condition, get_condition, remove_condition
from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject
from holokube.workloads.deployment_revisions import least_available
from holokube.workloads.replica_set_decisions import replicas_of

_NEVER = 2**31 - 1
TIMED_OUT = "ProgressDeadlineExceeded"
COMPLETE = "NewReplicaSetAvailable"
PAUSED = "DeploymentPaused"
AVAILABLE = "MinimumReplicasAvailable"
UNAVAILABLE = "MinimumReplicasUnavailable"


def condition(type: str, status: str, reason: str, message: str, now: datetime) -> JsonObject:
    moment = format_time(now)
    return {
        "type": type, "status": status, "lastUpdateTime": moment, "lastTransitionTime": moment,
        "reason": reason, "message": message,
    }  # fmt: skip


def with_condition(conditions: list[JsonObject], new: JsonObject) -> list[JsonObject]:
    """Puts a condition in, last; one of the same status and reason stays as it is."""
    old = find_condition(conditions, new["type"])
    if old is not None and old.get("status") == new["status"]:
        if old.get("reason") == new["reason"]:
            return conditions
        new = {**new, "lastTransitionTime": old.get("lastTransitionTime")}
    return [*remove_condition(conditions, new["type"]), new]


def deadline_s(deployment: JsonObject) -> int | None:
    """The progress deadline; None if there is none."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _NEVER else int(seconds)


def pause_conditions(deployment: JsonObject, now: datetime) -> list[JsonObject]:
    """The conditions, with it noted that the Deployment was paused or goes on: the deadline starts anew."""
    conditions = conditions_of(deployment)
    progressing = find_condition(conditions, "Progressing")
    reason = progressing.get("reason") if progressing else None
    if deadline_s(deployment) is None or reason == TIMED_OUT:
        return conditions
    paused = bool(deployment["spec"].get("paused"))
    if paused and reason != PAUSED:
        note = condition("Progressing", "Unknown", PAUSED, "Deployment is paused", now)
        return with_condition(conditions, note)
    if not paused and reason == PAUSED:
        note = condition("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now)
        return with_condition(conditions, note)
    return conditions


def count_status(
    deployment: JsonObject,
    replica_sets: Sequence[JsonObject],
    new: JsonObject | None,
    conditions: list[JsonObject],
    now: datetime,
) -> JsonObject:
    """Counts over all sets, and whether enough is available."""
    wanted_by_sets = replicas = ready = available = 0
    terminating: int | None = 0
    for rs in replica_sets:
        wanted_by_sets += replicas_of(rs)
        told = rs.get("status")
        if told:
            replicas += told.get("replicas") or 0
            ready += told.get("readyReplicas") or 0
            available += told.get("availableReplicas") or 0
            leaving = told.get("terminatingReplicas")
            if leaving is None and told.get("observedGeneration"):
                # Its controller has seen it, and does not tell.
                terminating = None
            elif terminating is not None:
                terminating += int(leaving or 0)
    status: JsonObject = {}
    generation = int(deployment["metadata"].get("generation") or 0)
    if generation:
        status["observedGeneration"] = generation
    if replicas:
        status["replicas"] = replicas
    updated = (new.get("status") or {}).get("replicas") if new else 0
    if updated:
        status["updatedReplicas"] = updated
    if ready:
        status["readyReplicas"] = ready
    if available:
        status["availableReplicas"] = available
    if wanted_by_sets > available:
        status["unavailableReplicas"] = wanted_by_sets - available
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    collisions = (deployment.get("status") or {}).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    status["conditions"] = _availability(
        conditions, is_available=available >= least_available(deployment), now=now
    )
    return status


def _availability(conditions: list[JsonObject], *, is_available: bool, now: datetime) -> list[JsonObject]:
    known = find_condition(conditions, "Available")
    if is_available:
        if known is not None and (known.get("status"), known.get("reason")) == ("True", AVAILABLE):
            return conditions
        return with_condition(
            conditions, condition("Available", "True", AVAILABLE, "Deployment has minimum availability.", now)
        )
    if known is not None and (known.get("status"), known.get("reason")) == ("False", UNAVAILABLE):
        return conditions
    message = "Deployment does not have minimum availability."
    return with_condition(conditions, condition("Available", "False", UNAVAILABLE, message, now))


def rollout_status(
    deployment: JsonObject,
    replica_sets: Sequence[JsonObject],
    new: JsonObject | None,
    conditions: list[JsonObject],
    now: datetime,
) -> JsonObject:
    """Counts, and how the rollout gets on."""
    status = count_status(deployment, replica_sets, new, conditions, now)
    if deadline_s(deployment) is None:
        status["conditions"] = remove_condition(status["conditions"], "Progressing")
    else:
        status["conditions"] = _progress(deployment, status, new, now)
    failure = None
    for rs in (new, *replica_sets):
        if failure is None and rs is not None:
            failure = get_condition(rs, "ReplicaFailure")
    if failure is None:
        status["conditions"] = remove_condition(status["conditions"], "ReplicaFailure")
    else:
        moved = {**failure, "lastUpdateTime": failure.get("lastTransitionTime")}
        status["conditions"] = with_condition(status["conditions"], moved)
    return status


def tells_numbers_only(deployment: JsonObject, replica_set: JsonObject) -> bool:
    """Whether a Deployment with a deadline has been rolled out, and neither it nor its only set tells of a failure to
    make pods: ``rollout_status`` says no more of it than ``count_status`` then."""
    progressing = get_condition(deployment, "Progressing")
    return (
        progressing is not None
        and progressing.get("reason") == COMPLETE
        and deadline_s(deployment) is not None
        and get_condition(deployment, "ReplicaFailure") is None
        and not conditions_of(replica_set)
    )


def _progress(
    deployment: JsonObject, status: JsonObject, new: JsonObject | None, now: datetime
) -> list[JsonObject]:
    conditions: list[JsonObject] = status["conditions"]
    current = find_condition(conditions, "Progressing")
    if (
        current is not None
        and current.get("reason") == COMPLETE
        and status.get("replicas", 0) == status.get("updatedReplicas", 0)
    ):
        # Nothing is being rolled out: pods that come and go are no matter of progress.
        return conditions
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_condition(conditions, condition("Progressing", "True", COMPLETE, message, now))
    if _moves(deployment.get("status") or {}, status):
        note = condition("Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if current is not None and current.get("status") == "True":
            note["lastTransitionTime"] = current.get("lastTransitionTime")
        # Each step of progress moves the update time, even under the same reason: the deadline counts from it.
        return [*remove_condition(conditions, "Progressing"), note]
    if _timed_out(deployment, current, now):
        message = f"{subject} has timed out progressing."
        return with_condition(conditions, condition("Progressing", "False", TIMED_OUT, message, now))
    return conditions


def is_complete(deployment: JsonObject, status: JsonObject) -> bool:
    wanted = replicas_of(deployment)
    return bool(
        status.get("updatedReplicas", 0) == wanted
        and status.get("replicas", 0) == wanted
        and status.get("availableReplicas", 0) == wanted
        and status.get("observedGeneration", 0) >= (deployment["metadata"].get("generation") or 0)
    )


def progress_check_in_s(deployment: JsonObject, status: JsonObject, now: datetime) -> float | None:
    """When to look whether the deadline has passed; None if there is none to pass."""
    seconds = deadline_s(deployment)
    current = find_condition(status.get("conditions") or [], "Progressing")
    if seconds is None or current is None or current.get("reason") in (TIMED_OUT, COMPLETE):
        return None
    if is_complete(deployment, status):
        return None
    updated = parse_time(current.get("lastUpdateTime") or format_time(now))
    left_s = (updated + timedelta(seconds=seconds) - now).total_seconds()
    # A second more, since the deadline must have passed and times are in whole seconds.
    return max(left_s, 0.0) + 1.0


def _timed_out(deployment: JsonObject, current: JsonObject | None, now: datetime) -> bool:
    seconds = deadline_s(deployment)
    if seconds is None or current is None or current.get("reason") == COMPLETE:
        return False
    if current.get("reason") == TIMED_OUT:
        return True
    updated = current.get("lastUpdateTime")
    return updated is not None and parse_time(updated) + timedelta(seconds=seconds) < now


def _moves(old: JsonObject, new: JsonObject) -> bool:
    def outdated(status: JsonObject) -> int:
        return int(status.get("replicas", 0)) - int(status.get("updatedReplicas", 0))

    return outdated(new) < outdated(old) or any(
        new.get(name, 0) > old.get(name, 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
