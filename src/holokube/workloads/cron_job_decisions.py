"""When a CronJob starts its next Job, which it forgets, and which it deletes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holokube.kube.conditions import is_true
from holokube.kube.quoting import go_quote
from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject
from holokube.runtime.cron_schedules import Schedule, ScheduleError, parse_schedule
from holokube.runtime.events import object_reference
from holokube.workloads.ownership import controller_reference

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_DELTA_S = 0.1
"""Looks a little late rather than a little early, when nothing would be due yet."""
_MANY_MISSED = 100

Event = tuple[str, str, str]
"""Type, reason, message."""


@dataclass(slots=True)
class CronPlan:
    """Jobs to delete, then the one to create, then the status to write; and when to look again."""

    status: JsonObject
    events: list[Event] = field(default_factory=list)
    delete: list[JsonObject] = field(default_factory=list)
    """Old finished Jobs."""
    replace: list[JsonObject] = field(default_factory=list)
    """Running Jobs that make way, as references from the status."""
    create: JsonObject | None = None
    scheduled: datetime | None = None
    check_in_s: float | None = None


def decide(
    cron_job: JsonObject, jobs: Sequence[JsonObject], missing: Collection[str], now: datetime
) -> CronPlan:
    """``jobs`` are those it controls, ``missing`` uids in its active list that the server does not know."""
    plan = CronPlan(dict(cron_job.get("status") or {}))
    # In this order: of a Job that is deleted at once, nobody is told that it was seen to complete.
    _trim_history(plan, cron_job, jobs)
    _take_stock(plan, jobs, missing)
    spec = cron_job["spec"]
    if cron_job["metadata"].get("deletionTimestamp"):
        return plan
    zone = spec.get("timeZone")
    if zone is not None and not _is_zone(zone):
        message = f"invalid timeZone: {go_quote(zone)}: unknown time zone {zone}"
        plan.events.append(("Warning", "UnknownTimeZone", message))
        return plan
    if spec.get("suspend"):
        return plan
    if "TZ" in spec["schedule"]:
        message = (
            f"CRON_TZ or TZ used in schedule {go_quote(spec['schedule'])} is not officially supported, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
        plan.events.append(("Warning", "UnsupportedSchedule", message))
    try:
        schedule = parse_schedule(spec["schedule"], zone or "")
    except ScheduleError as error:
        message = f"unparseable schedule: {go_quote(spec['schedule'])} : {error}"
        plan.events.append(("Warning", "UnparseableSchedule", message))
        return plan
    _start(plan, cron_job, schedule, now)
    return plan


def _take_stock(plan: CronPlan, jobs: Sequence[JsonObject], missing: Collection[str]) -> None:
    """Brings the list of active Jobs and the time of the last success up to date."""
    active = list(plan.status.get("active") or ())
    listed = {reference["uid"] for reference in active}
    for job in jobs:
        meta = job["metadata"]
        outcome = finished_as(job)
        if not outcome:
            if meta["uid"] not in listed:
                message = f"Saw a job that the controller did not create or forgot: {meta['name']}"
                plan.events.append(("Warning", "UnexpectedJob", message))
            continue
        if meta["uid"] in listed:
            active = [reference for reference in active if reference["uid"] != meta["uid"]]
            message = f"Saw completed job: {meta['name']}, condition: {outcome}"
            plan.events.append(("Normal", "SawCompletedJob", message))
        completed = (job.get("status") or {}).get("completionTime")
        if outcome == "Complete" and completed and completed > (plan.status.get("lastSuccessfulTime") or ""):
            plan.status["lastSuccessfulTime"] = completed
    for reference in active:
        if reference["uid"] in missing:
            plan.events.append(("Normal", "MissingJob", f"Active job went missing: {reference['name']}"))
    _set_active(plan, [reference for reference in active if reference["uid"] not in missing])


def _set_active(plan: CronPlan, active: list[JsonObject]) -> None:
    plan.status.pop("active", None)
    if active:
        plan.status["active"] = active


def finished_as(job: JsonObject) -> str:
    """``Complete`` or ``Failed``; empty while it runs."""
    return next((outcome for outcome in ("Complete", "Failed") if is_true(job, outcome)), "")


def _trim_history(plan: CronPlan, cron_job: JsonObject, jobs: Sequence[JsonObject]) -> None:
    for outcome, name in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        limit = cron_job["spec"].get(name)
        if limit is None:
            continue
        ended = [
            job for job in jobs if finished_as(job) == outcome and not job["metadata"].get("deletionTimestamp")
        ]
        ended.sort(key=_by_start)
        plan.delete += ended[: max(0, len(ended) - int(limit))]
    deleted = {job["metadata"]["uid"] for job in plan.delete}
    _set_active(plan, [ref for ref in plan.status.get("active") or () if ref["uid"] not in deleted])


def _by_start(job: JsonObject) -> tuple[bool, str, str]:
    started = (job.get("status") or {}).get("startTime")
    return started is None, started or "", job["metadata"]["name"]


def _start(plan: CronPlan, cron_job: JsonObject, schedule: Schedule, now: datetime) -> None:
    spec, meta = cron_job["spec"], cron_job["metadata"]
    deadline_s = spec.get("startingDeadlineSeconds")
    recent = most_recent(cron_job, schedule, now, deadline_s)
    if recent is None:
        problem = "time difference between two schedules is less than 1 second"
        message = f"invalid schedule: {spec['schedule']} : {problem}"
        plan.events.append(("Warning", "InvalidSchedule", message))
        return
    due, missed = recent
    plan.check_in_s = _next_look_s(plan, cron_job, schedule, now)
    if due is None:
        return
    if missed > _MANY_MISSED:
        message = (
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        )
        plan.events.append(("Warning", "TooManyMissedTimes", message))
    if deadline_s is not None and due + timedelta(seconds=int(deadline_s)) < now:
        moment = due.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
        plan.events.append(("Warning", "MissSchedule", f"Missed scheduled time to start a job: {moment}"))
        return
    active = plan.status.get("active") or []
    name = f"{meta['name']}-{int(due.timestamp()) // 60}"
    if any(reference["name"] == name for reference in active):
        return
    if plan.status.get("lastScheduleTime") == format_time(due):
        return
    policy = spec.get("concurrencyPolicy") or "Allow"
    if policy == "Forbid" and active:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        plan.events.append(("Normal", "JobAlreadyActive", message))
        return
    if policy == "Replace":
        plan.replace = active
        _set_active(plan, [])
    plan.create = new_job(cron_job, name, due)
    plan.scheduled = due
    upcoming = schedule.next(due)
    plan.check_in_s = _until(upcoming, now)


def most_recent(
    cron_job: JsonObject, schedule: Schedule, now: datetime, deadline_s: int | None
) -> tuple[datetime | None, int] | None:
    """The last due moment that was not acted upon, if any, and roughly how many there were.

    None if the schedule never comes due.
    """
    earliest = _earliest(cron_job)
    if deadline_s is not None:
        earliest = max(earliest, now - timedelta(seconds=int(deadline_s)))
    first = schedule.next(earliest)
    second = schedule.next(first) if first is not None else None
    if first is None or second is None or second <= first:
        return None
    if now < first:
        return None, 0
    if now < second:
        return first, 0
    # Counted by the first interval, so that a clock years off does not mean years of counting.
    interval = second - first
    missed = int((now - first) / interval) + 1
    recent: datetime | None = None
    moment = schedule.next(first + (missed - 2) * interval)
    while moment is not None and moment <= now:
        recent = moment
        moment = schedule.next(moment)
    return recent, missed


def _earliest(cron_job: JsonObject) -> datetime:
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    return parse_time(last or cron_job["metadata"]["creationTimestamp"])


def _next_look_s(plan: CronPlan, cron_job: JsonObject, schedule: Schedule, now: datetime) -> float | None:
    recent = most_recent({**cron_job, "status": plan.status}, schedule, now, None)
    if recent is None:
        return None
    due, missed = recent
    base = due if due is not None else now if missed else _earliest(cron_job)
    return _until(schedule.next(base), now)


def _until(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max((moment - now).total_seconds(), 0.0) + _DELTA_S


def new_job(cron_job: JsonObject, name: str, due: datetime) -> JsonObject:
    """The Job of one due moment. Its name follows from it, so that it cannot be made twice."""
    template = cron_job["spec"]["jobTemplate"]
    source = template.get("metadata") or {}
    zone = ZoneInfo(cron_job["spec"]["timeZone"]) if cron_job["spec"].get("timeZone") else UTC
    local = due.astimezone(zone)
    stamp = local.isoformat(timespec="seconds")
    stamp = stamp.removesuffix("+00:00") + "Z" if local.utcoffset() == timedelta(0) else stamp
    meta: JsonObject = {
        "name": name,
        "namespace": cron_job["metadata"]["namespace"],
        "annotations": {**(source.get("annotations") or {}), SCHEDULED_AT: stamp},
        "ownerReferences": [controller_reference(cron_job)],
    }
    if source.get("labels"):
        meta["labels"] = source["labels"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": template["spec"]}


def with_started(status: JsonObject, job: JsonObject, scheduled: datetime) -> JsonObject:
    """The status with a Job that was just started."""
    return {
        **status,
        "active": [*(status.get("active") or ()), object_reference(job)],
        "lastScheduleTime": format_time(scheduled),
    }


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
