"""What a Job does next: start or stop pods, end, wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, overload

from holokube.kube.conditions import conditions_of, find_condition
from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject
from holokube.workloads.job_indexes import parse_indexes
from holokube.workloads.job_pods import (
    completion_index,
    counts_as_failure,
    failure_action,
    finished_at,
    index_failures,
    is_failed,
    is_indexed,
    is_tracked,
    job_pod,
    replaces_only_failed,
)
from holokube.workloads.pod_status import (
    deletion_order,
    is_active,
    is_pod_ready,
    is_terminated,
    is_terminating,
    phase,
)

PODS_PER_SYNC_MAX = 500
POD_BACKOFF_FIRST_S = 10.0
POD_BACKOFF_MAX_S = 600.0


T = TypeVar("T")


class _once(Generic[T]):  # noqa: N801 - used as a decorator
    """A property that is worked out once. The standard one takes a lock each time, which costs more than the work."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> _once[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> T | _once[T]:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value


@dataclass(frozen=True, slots=True)
class Backoff:
    """Failures since the last success, and when the last was."""

    failures: int = 0
    last_failure: datetime | None = None

    def wait_s(self, now: datetime) -> float:
        """How long no pod may be started yet."""
        if self.failures == 0 or self.last_failure is None:
            return 0.0
        delay_s = min(POD_BACKOFF_FIRST_S * 2 ** min(self.failures - 1, 30), POD_BACKOFF_MAX_S)
        return max(0.0, (self.last_failure + timedelta(seconds=delay_s) - now).total_seconds())

    def after(self, succeeded: Sequence[JsonObject], failed: Sequence[JsonObject]) -> Backoff:
        """With pods that ended meanwhile."""
        failures = sorted(map(finished_at, failed))
        if not succeeded:
            return Backoff(self.failures + len(failures), failures[-1]) if failures else self
        success = max(map(finished_at, succeeded))
        later = [moment for moment in failures if moment > success]
        return Backoff(len(later), later[-1] if later else None)


@dataclass(eq=False)
class JobView:
    """A Job and its pods at one moment; ``removed`` are uids whose finalizer is gone although the cache still shows
    it."""

    job: JsonObject
    pods: Sequence[JsonObject]
    removed: frozenset[str]
    backoff: Backoff
    now: datetime

    @_once
    def status(self) -> JsonObject:
        return self.job.get("status") or {}

    @_once
    def completions(self) -> int | None:
        completions = self.job["spec"].get("completions")
        return None if completions is None else int(completions)

    @_once
    def per_index(self) -> bool:
        return self.job["spec"].get("backoffLimitPerIndex") is not None

    @_once
    def suspended(self) -> bool:
        return bool(self.job["spec"].get("suspend"))

    @_once
    def start_time(self) -> str | None:
        """When it started, or starts now."""
        started = self.status.get("startTime")
        return started or (None if self.suspended else format_time(self.now))

    @_once
    def active(self) -> list[JsonObject]:
        return [pod for pod in self.pods if is_active(pod)]

    @_once
    def ready(self) -> int:
        return sum(map(is_pod_ready, self.active))

    @_once
    def terminating(self) -> int:
        return sum(is_terminating(pod) and not is_terminated(pod) for pod in self.pods)

    @_once
    def uncounted_succeeded(self) -> list[str]:
        return list((self.status.get("uncountedTerminatedPods") or {}).get("succeeded") or ())

    @_once
    def uncounted_failed(self) -> list[str]:
        return list((self.status.get("uncountedTerminatedPods") or {}).get("failed") or ())

    @_once
    def waiting(self) -> dict[str, JsonObject]:
        """By uid, the pods that wait to be counted, or to be found not to count."""
        tracked = {pod["metadata"]["uid"]: pod for pod in self.pods if is_tracked(pod)}
        return {uid: pod for uid, pod in tracked.items() if uid not in self.removed} if self.removed else tracked

    def has_valid_index(self, pod: JsonObject) -> bool:
        index = completion_index(pod)
        return index is not None and index < (self.completions or 0)

    def _new(self, uncounted: Iterable[str]) -> list[JsonObject]:
        if not self.waiting:
            return []
        known, indexed = set(uncounted), is_indexed(self.job)
        return [
            pod for uid, pod in self.waiting.items()
            if uid not in known and (not indexed or self.has_valid_index(pod))
        ]  # fmt: skip

    @_once
    def new_succeeded(self) -> list[JsonObject]:
        return [pod for pod in self._new(self.uncounted_succeeded) if phase(pod) == "Succeeded"]

    @_once
    def new_failed(self) -> list[JsonObject]:
        return [pod for pod in self._new(self.uncounted_failed) if is_failed(pod, self.job)]

    @_once
    def counted_indexes(self) -> set[int]:
        """Indexes that the status calls completed."""
        return parse_indexes(self.status.get("completedIndexes"), self.completions or 0)

    @_once
    def succeeded_indexes(self) -> set[int]:
        fresh = {
            completion_index(pod) for pod in self.pods
            if phase(pod) == "Succeeded" and is_tracked(pod) and self.has_valid_index(pod)
        }  # fmt: skip
        return self.counted_indexes | {index for index in fresh if index is not None}

    @_once
    def failed_indexes(self) -> set[int]:
        """Only meaningful with a limit per index."""
        failed = parse_indexes(self.status.get("failedIndexes"), self.completions or 0)
        for pod in self.pods:
            index = completion_index(pod)
            if index is not None and self.has_valid_index(pod) and is_tracked(pod) and self._fails_index(pod):
                failed.add(index)
        return failed

    def _fails_index(self, pod: JsonObject) -> bool:
        if not is_failed(pod, self.job):
            return False
        action, _ = failure_action(self.job, pod)
        if action == "FailIndex":
            return True
        return action != "Ignore" and index_failures(pod) >= int(self.job["spec"]["backoffLimitPerIndex"])

    @_once
    def succeeded(self) -> int:
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        counted = int(self.status.get("succeeded") or 0)
        return counted + len(self.new_succeeded) + len(self.uncounted_succeeded)

    @_once
    def failed(self) -> int:
        new = sum(counts_as_failure(self.job, pod) for pod in self.new_failed)
        return int(self.status.get("failed") or 0) + new + len(self.uncounted_failed)

    @_once
    def new_backoff(self) -> Backoff:
        return self.backoff.after(self.new_succeeded, self.new_failed)

    @_once
    def delayed(self) -> dict[int, JsonObject]:
        """By index, the last failed pod: it stays until its successor carries its count of failures on."""
        delayed: dict[int, JsonObject] = {}
        if not (self.per_index and is_indexed(self.job)):
            return delayed
        done = self.succeeded_indexes | self.failed_indexes | _indexes(self.active)
        for pod in self._new(()):
            index = completion_index(pod)
            if index is None or index in done or not is_failed(pod, self.job):
                continue
            known = delayed.get(index)
            if known is None or (_all_failures(known), finished_at(known)) <= (
                _all_failures(pod), finished_at(pod),
            ):  # fmt: skip
                delayed[index] = pod
        return delayed


def condition(type: str, status: str, reason: str, message: str, now: datetime) -> JsonObject:
    moment = format_time(now)
    return {
        "type": type, "status": status, "lastProbeTime": moment, "lastTransitionTime": moment,
        "reason": reason, "message": message,
    }  # fmt: skip


def completed(now: datetime) -> JsonObject:
    """That as many pods have succeeded as have to."""
    message = "Reached expected number of succeeded pods"
    return condition("SuccessCriteriaMet", "True", "CompletionsReached", message, now)


def is_finished(job: JsonObject) -> bool:
    status = job.get("status")
    # Most Jobs that are asked about run, and have no conditions at all.
    for one in (status.get("conditions") or ()) if status else ():
        if one.get("type") in ("Complete", "Failed") and one.get("status") == "True":
            return True
    return False


def decide_end(view: JobView) -> JsonObject | None:
    """The condition that ends the Job, or would; None if it goes on. Completions are looked at later."""
    conditions = conditions_of(view.job)
    for name in ("SuccessCriteriaMet", "FailureTarget"):
        decided = find_condition(conditions, name)
        if decided is not None and decided.get("status") == "True":
            return decided
    spec = view.job["spec"]
    for pod in view.pods if spec.get("podFailurePolicy") else ():
        if is_failed(pod, view.job):
            action, message = failure_action(view.job, pod)
            if action == "FailJob":
                return _failure("PodFailurePolicy", message, view)
    limit = spec.get("backoffLimit")
    if (limit is not None and view.failed > int(limit)) or _restarts_exceed_limit(view):
        return _failure("BackoffLimitExceeded", "Job has reached the specified backoff limit", view)
    left_s = deadline_left_s(view)
    if left_s is not None and left_s <= 0 and view.status.get("startTime"):
        return _failure("DeadlineExceeded", "Job was active longer than specified deadline", view)
    return _end_by_indexes(view) if is_indexed(view.job) else None


def _end_by_indexes(view: JobView) -> JsonObject | None:
    spec, completions = view.job["spec"], view.completions or 0
    if view.per_index:
        failed = len(view.failed_indexes)
        most = spec.get("maxFailedIndexes")
        if most is not None and failed > int(most):
            message = "Job has exceeded the specified maximal number of failed indexes"
            return _failure("MaxFailedIndexesExceeded", message, view)
        if failed and failed + len(view.succeeded_indexes) >= completions:
            return _failure("FailedIndexes", "Job has failed indexes", view)
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        if view.succeeded_indexes and _success_rule_met(rule, view.succeeded_indexes, completions):
            message = f"Matched rules at index {number}"
            return condition("SuccessCriteriaMet", "True", "SuccessPolicy", message, view.now)
    return None


def _success_rule_met(rule: JsonObject, succeeded: set[int], completions: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and len(succeeded) >= int(count)
    required = parse_indexes(rule["succeededIndexes"], completions)
    if not required:
        return False
    done = len(required & succeeded)
    return done == len(required) or (count is not None and done >= int(count))


def _failure(reason: str, message: str, view: JobView) -> JsonObject:
    return condition("FailureTarget", "True", reason, message, view.now)


def deadline_left_s(view: JobView) -> float | None:
    """Seconds until the active deadline; None if there is none, or its clock stands still."""
    deadline_s = view.job["spec"].get("activeDeadlineSeconds")
    if deadline_s is None or view.suspended or view.start_time is None:
        return None
    return (parse_time(view.start_time) + timedelta(seconds=int(deadline_s)) - view.now).total_seconds()


def _restarts_exceed_limit(view: JobView) -> bool:
    """With ``restartPolicy: OnFailure`` restarts of containers are the failures."""
    spec = view.job["spec"]
    if (spec["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        int(container.get("restartCount") or 0)
        for pod in view.pods
        if phase(pod) in ("Running", "Pending")
        for name in ("initContainerStatuses", "containerStatuses")
        for container in (pod.get("status") or {}).get(name) or ()
    )
    limit = spec.get("backoffLimit")
    return limit is not None and restarts > 0 and restarts >= int(limit)


def is_complete(view: JobView, active: int) -> bool:
    if active:
        return False
    return view.succeeded > 0 if view.completions is None else view.succeeded >= view.completions


@dataclass(slots=True)
class PodChanges:
    """Pods to create or delete, never both; or a wait until pods may be created again."""

    create: list[JsonObject] = field(default_factory=list)
    delete: list[JsonObject] = field(default_factory=list)
    wait_s: float | None = None


def decide_pods(view: JobView) -> PodChanges:
    """How the pods of a Job that goes on have to change."""
    if view.suspended:
        return PodChanges(delete=_for_removal(view, len(view.active)))
    parallelism = view.job["spec"].get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    active = len(view.active)
    if view.completions is None:
        # One success ends the Job: what runs may finish, but nothing more is started.
        wanted = active if view.succeeded > 0 else parallelism
    else:
        wanted = max(0, min(parallelism, view.completions - view.succeeded))
    removal = _for_removal(view, max(0, active - wanted))[:PODS_PER_SYNC_MAX]
    if removal:
        return PodChanges(delete=removal)
    missing = wanted - active - (view.terminating if replaces_only_failed(view.job) else 0)
    if missing <= 0:
        return PodChanges()
    if not view.per_index:
        wait_s = view.new_backoff.wait_s(view.now)
        if wait_s > 0:
            return PodChanges(wait_s=wait_s)
    missing = min(missing, PODS_PER_SYNC_MAX)
    if not is_indexed(view.job):
        return PodChanges(create=[job_pod(view.job, None, None)] * missing)
    return _indexed_pods(view, missing)


def _indexed_pods(view: JobView, missing: int) -> PodChanges:
    """Pods for the lowest free indexes; an index that failed lately waits for its own backoff."""
    taken = view.succeeded_indexes | _indexes(view.active)
    if replaces_only_failed(view.job):
        taken |= _indexes(pod for pod in view.pods if is_terminating(pod) and not is_terminated(pod))
    if view.per_index:
        taken |= view.failed_indexes
    free: list[int] = []
    for index in range(view.completions or 0):
        if len(free) == missing:
            break
        if index not in taken:
            free.append(index)
    waits = {index: _index_wait_s(view, index) for index in free}
    now = [index for index in free if waits[index] <= 0]
    if free and not now:
        return PodChanges(wait_s=min(waits.values()))
    # The next look is due for indexes that still wait, even though others start now.
    later = [wait_s for wait_s in waits.values() if wait_s > 0]
    pods = [job_pod(view.job, index, view.delayed.get(index)) for index in now]
    return PodChanges(create=pods, wait_s=min(later, default=None))


def _index_wait_s(view: JobView, index: int) -> float:
    failed = view.delayed.get(index)
    if failed is None:
        return 0.0
    return Backoff(_all_failures(failed) + 1, finished_at(failed)).wait_s(view.now)


def _for_removal(view: JobView, at_least: int) -> list[JsonObject]:
    """Pods without a valid index and second pods of an index go in any case."""
    if not is_indexed(view.job):
        return deletion_order(view.active, (), view.now)[:at_least] if at_least else []
    ordered = deletion_order(view.active, (), view.now)
    kept: dict[int, JsonObject] = {}
    for pod in ordered:
        index = completion_index(pod)
        if index is not None and view.has_valid_index(pod):
            kept[index] = pod
    chosen = {pod["metadata"]["uid"] for pod in kept.values()}
    removal = [pod for pod in ordered if pod["metadata"]["uid"] not in chosen]
    left = [pod for pod in ordered if pod["metadata"]["uid"] in chosen]
    return [*removal, *left[: max(0, at_least - len(removal))]]


def _indexes(pods: Iterable[JsonObject]) -> set[int]:
    return {index for pod in pods if (index := completion_index(pod)) is not None}


def _all_failures(pod: JsonObject) -> int:
    return index_failures(pod) + index_failures(pod, ignored=True)
