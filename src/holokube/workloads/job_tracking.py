"""How a Job counts its pods exactly once.

A pod that ended is first written into ``status.uncountedTerminatedPods``, then loses its finalizer, and only
then moves into the counters. A crash between any two steps neither loses nor doubles it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from holokube.kube.conditions import find_condition
from holokube.kube.types import JsonObject
from holokube.workloads.job_decisions import JobView, condition
from holokube.workloads.job_indexes import format_indexes
from holokube.workloads.job_pods import completion_index, counts_as_failure, is_failed, is_indexed
from holokube.workloads.pod_status import phase

UNCOUNTED_MAX = 500
"""Keeps the status below 20 KB, and big Jobs from keeping small ones waiting."""


@dataclass(slots=True)
class Tracking:
    """The status to write first, the pods that lose their finalizer then, and the end to declare at last."""

    status: JsonObject
    release: list[JsonObject] = field(default_factory=list)
    end: JsonObject | None = None
    """``Complete`` or ``Failed``; only if all pods could be looked at."""


def decide_tracking(view: JobView, status: JsonObject, end: JsonObject | None) -> Tracking:
    """``status`` has the counts of running pods and the conditions; ``end`` is what ``decide_end`` said."""
    waiting = view.waiting
    status = count_released(status, waiting)
    uncounted = status.get("uncountedTerminatedPods") or {}
    succeeded, failed = list(uncounted.get("succeeded") or ()), list(uncounted.get("failed") or ())
    indexes: set[int] = set()
    release: list[JsonObject] = []
    full = False
    ended_badly = end is not None and end["type"] != "SuccessCriteriaMet"
    indexed = is_indexed(view.job)
    candidates = waiting.values()
    for pod in sorted(candidates, key=lambda pod: completion_index(pod) or 0) if indexed else candidates:
        if not _may_release(view, pod, end):
            continue
        uid = pod["metadata"]["uid"]
        release.append(pod)
        if phase(pod) == "Succeeded" and uid not in view.uncounted_failed:
            index = completion_index(pod)
            if indexed:
                if index is not None and view.has_valid_index(pod) and index not in view.counted_indexes:
                    indexes.add(index)
            elif uid not in succeeded:
                succeeded.append(uid)
        elif (
            (is_failed(pod, view.job) or ended_badly)
            and uid not in failed
            and (not indexed or view.has_valid_index(pod))
            and counts_as_failure(view.job, pod)
        ):
            # When a Job ends, whatever has not ended by itself has failed.
            failed.append(uid)
        if len(indexes) + len(succeeded) + len(failed) >= UNCOUNTED_MAX:
            full = True
            break
    lists = {"succeeded": succeeded, "failed": failed}
    status = {**status, "uncountedTerminatedPods": {name: uids for name, uids in lists.items() if uids}}
    if indexed:
        done = view.counted_indexes | indexes
        status = {**status, "completedIndexes": format_indexes(done), "succeeded": len(done)}
        if view.per_index:
            status["failedIndexes"] = format_indexes(view.failed_indexes)
    if end is None:
        return Tracking(status, release)
    if find_condition(status.get("conditions") or [], end["type"]) is None:
        status = {**status, "conditions": [*(status.get("conditions") or ()), end]}
    final_type = "Complete" if end["type"] == "SuccessCriteriaMet" else "Failed"
    final = condition(final_type, "True", end.get("reason") or "", end.get("message") or "", view.now)
    return Tracking(status, release, None if full else final)


def _may_release(view: JobView, pod: JsonObject, end: JsonObject | None) -> bool:
    if view.job["metadata"].get("deletionTimestamp") or end is not None or phase(pod) == "Succeeded":
        return True
    if not is_failed(pod, view.job):
        return False
    index = completion_index(pod)
    delayed = view.delayed.get(index) if index is not None else None
    return delayed is None or delayed["metadata"]["uid"] != pod["metadata"]["uid"]


def count_released(status: JsonObject, waiting: Container[str]) -> JsonObject:
    """Moves into the counters the uids that no longer wait for their finalizer to be removed."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    counters: JsonObject = {}
    lists: JsonObject = {}
    for name in ("succeeded", "failed"):
        uids = uncounted.get(name) or []
        kept = [uid for uid in uids if uid in waiting] if uids else uids
        counters[name] = int(status.get(name) or 0) + len(uids) - len(kept)
        if kept:
            lists[name] = kept
    return {**status, **counters, "uncountedTerminatedPods": lists}


def declare_end(status: JsonObject, end: JsonObject | None) -> JsonObject | None:
    """The status of a finished Job; None while pods are still to be counted or on their way out."""
    if end is None or status.get("uncountedTerminatedPods") or status.get("terminating"):
        return None
    others = [c for c in status.get("conditions") or () if c["type"] != end["type"]]
    finished = {**status, "conditions": [*others, end]}
    if end["type"] == "Complete":
        finished["completionTime"] = end["lastTransitionTime"]
    return finished
