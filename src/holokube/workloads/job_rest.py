"""Which Jobs have nothing to decide: most looks at a Job find it running as it was, and need no more than this."""

from __future__ import annotations

from collections.abc import Sequence

from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.workloads.job_pods import is_indexed
from holokube.workloads.pod_status import is_active, is_pod_ready


def runs_as_it_should(job: JsonObject, pods: Sequence[JsonObject], selector: LabelSelector) -> bool:
    """Whether a Job has all the pods it wants, none of which has ended, and says so already."""
    status = status_at_rest(job, pods, selector)
    return status is not None and status is job["status"]


def status_at_rest(job: JsonObject, pods: Sequence[JsonObject], selector: LabelSelector) -> JsonObject | None:
    """What the status of a Job has to be that has all the pods it wants, none of which has ended: the very status it
    has, unless that is behind with how many are ready. None for all other Jobs.

    ``pods`` are those that it controls, all of them in the cache. A Job that has limits in time, rules of its own or
    failures is among the others: what becomes of it is for ``job_decisions`` to say.
    """
    spec, status = job["spec"], job.get("status")
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    wanted = 1 if parallelism is None else int(parallelism)
    if completions is not None:
        wanted = min(wanted, int(completions))
    if (
        not pods
        or not status
        or len(pods) != wanted
        or spec.get("suspend")
        or spec.get("activeDeadlineSeconds") is not None
        or spec.get("podFailurePolicy")
        or is_indexed(job)
        or (spec["template"].get("spec") or {}).get("restartPolicy") == "OnFailure"
        or job["metadata"].get("deletionTimestamp")
        or status.get("active") != wanted
        or status.get("terminating") != 0
        or status.get("uncountedTerminatedPods") != {}
        or not status.get("startTime")
        or (status.get("conditions") or status.get("succeeded") or status.get("failed"))
        or not all(is_active(pod) and selector.matches(pod["metadata"].get("labels") or {}) for pod in pods)
    ):
        return None
    ready = sum(map(is_pod_ready, pods))
    at_rest: JsonObject = status if status.get("ready") == ready else {**status, "ready": ready}
    return at_rest
