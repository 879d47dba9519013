"""Which Jobs have little to decide: most of them start, run and end as they should, and need no more than this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from holokube.client.cache import LabelMatcher
from holokube.kube.selectors import LabelSelector
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.workloads.job_decisions import PODS_PER_SYNC_MAX, completed
from holokube.workloads.job_pods import is_tracked, job_pod
from holokube.workloads.job_tracking import UNCOUNTED_MAX, Tracking
from holokube.workloads.pod_status import is_active, is_pod_ready

_EMPTY: Final[Mapping[str, Any]] = {}


class _Labels(NamedTuple):
    """A selector that asks for some labels, each with one value."""

    wanted: Mapping[str, str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.wanted.items() <= labels.items()


def matcher_of(job: JsonObject) -> LabelMatcher:
    """What its selector matches. Every Job has one of its own, mostly of labels alone, for which none is made."""
    selector = job["spec"].get("selector")
    if selector and len(selector) == 1 and (labels := selector.get("matchLabels")):
        return _Labels(labels)
    return LabelSelector.from_json(selector)


def first_pods(job: JsonObject) -> list[JsonObject]:
    """The pods with which a Job begins of which nothing has been told yet; none if more is to be decided."""
    wanted = _wanted(job["spec"])
    if job.get("status") or not 0 < wanted <= PODS_PER_SYNC_MAX or job["metadata"].get("deletionTimestamp"):
        return []
    return [job_pod(job, None, None)] * wanted


def first_status(active: int, now: datetime) -> JsonObject:
    """What is told of a Job that has just begun."""
    return {
        "active": active, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": format_time(now),
    }  # fmt: skip


def good_end(job: JsonObject, pods: Sequence[JsonObject], selector: LabelMatcher, now: datetime) -> Tracking | None:
    """How a Job ends whose pods have all succeeded, and are as many as it wants; None for all other Jobs.

    ``pods`` are those that it controls, all of them in the cache.
    """
    for pod in pods:
        if (pod.get("status") or _EMPTY).get("phase") != "Succeeded" or not is_tracked(pod):
            return None
    completions = job["spec"].get("completions")
    if (
        not _told_of_all(job, pods, selector)
        or (completions is not None and len(pods) < int(completions))
        or len(pods) >= UNCOUNTED_MAX
    ):
        return None
    end = completed(now)
    uncounted = {"succeeded": [pod["metadata"]["uid"] for pod in pods]}
    status = {**job["status"], "active": 0, "ready": 0, "uncountedTerminatedPods": uncounted, "conditions": [end]}
    return Tracking(status, list(pods), {**end, "type": "Complete"})


def runs_as_it_should(job: JsonObject, pods: Sequence[JsonObject], selector: LabelMatcher) -> bool:
    """Whether a Job has all the pods it wants, none of which has ended, and says so already."""
    status = status_at_rest(job, pods, selector)
    return status is not None and status is job["status"]


def status_at_rest(job: JsonObject, pods: Sequence[JsonObject], selector: LabelMatcher) -> JsonObject | None:
    """What the status of a Job has to be that has all the pods it wants, none of which has ended: the very status it
    has, unless that is behind with how many are ready. None for all other Jobs.

    ``pods`` are those that it controls, all of them in the cache.
    """
    for pod in pods:
        if not is_active(pod):
            return None
    if not _told_of_all(job, pods, selector):
        return None
    status: JsonObject = job["status"]
    ready = sum(map(is_pod_ready, pods))
    return status if status.get("ready") == ready else {**status, "ready": ready}


def _told_of_all(job: JsonObject, pods: Sequence[JsonObject], selector: LabelMatcher) -> bool:
    """Whether a Job has as many pods as it wants, and tells that they are all active.

    A Job that has limits in time, rules of its own or too many failures is none of these: what becomes of it is for
    ``job_decisions`` to say. Failures that have been counted, and are not too many, make no difference while none of
    the pods that there are has failed.
    """
    spec, status = job["spec"], job.get("status")
    if (
        not pods
        or not status
        or len(pods) != (wanted := _wanted(spec))
        or (spec["template"].get("spec") or _EMPTY).get("restartPolicy") == "OnFailure"
        or job["metadata"].get("deletionTimestamp")
        or status.get("active") != wanted
        or status.get("terminating") != 0
        or status.get("uncountedTerminatedPods") != {}
        or not status.get("startTime")
        or (status.get("conditions") or status.get("succeeded"))
        or ((failed := status.get("failed")) and (limit := spec.get("backoffLimit")) is not None and failed > limit)
    ):
        return False
    for pod in pods:  # noqa: SIM110 - all() with a generator costs twice as much
        if not selector.matches(pod["metadata"].get("labels") or _EMPTY):
            return False
    return True


def _wanted(spec: JsonObject) -> int:
    """How many pods run at first; none if that is not all that there is to know: of a Job with rules or indexes."""
    get = spec.get
    if (
        get("suspend")
        or get("activeDeadlineSeconds") is not None
        or get("podFailurePolicy")
        or get("completionMode") == "Indexed"
    ):
        return 0
    completions, parallelism = get("completions"), get("parallelism")
    wanted = 1 if parallelism is None else int(parallelism)
    return wanted if completions is None else min(wanted, int(completions))
