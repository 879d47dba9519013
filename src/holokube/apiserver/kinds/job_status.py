"""Rules for the status of jobs: other controllers than the built-in one may write it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.job_indexes import IndexFormatError, first_overlap, parse_indexes
from holokube.apiserver.kinds.workload_rules import not_negative
from holokube.kube.errors import Cause
from holokube.kube.types import JsonObject

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL = ("Failed", "Complete", "FailureTarget")


def has_condition(status: JsonObject, kind: str, value: str = "True") -> bool:
    return any(c.get("type") == kind and c.get("status") == value for c in status.get("conditions") or ())


def is_finished(status: JsonObject) -> bool:
    return has_condition(status, "Complete") or has_condition(status, "Failed")


def validate_job_status(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Upstream's ValidateJobStatusUpdate. Most rules look only at what has changed."""
    after: JsonObject = new.get("status") or {}
    before: JsonObject = old.get("status") or {}
    spec: JsonObject = new["spec"]
    not_negative(after, _COUNTS, "status", errors)
    _validate_uncounted(after, errors)
    _validate_conditions(after, before, spec, errors)
    _validate_times(after, before, spec, errors)
    _validate_counts(after, before, spec, errors)
    _validate_indexes(after, before, spec, errors)


def _invalid(path: str, detail: str, errors: FieldErrors) -> None:
    errors.causes.append(Cause("FieldValueInvalid", f"Invalid value: {detail}", path))


def _changed(after: JsonObject, before: JsonObject, *fields: str) -> bool:
    return any(after.get(field) != before.get(field) for field in fields)


def _validate_uncounted(status: JsonObject, errors: FieldErrors) -> None:
    uncounted = status.get("uncountedTerminatedPods") or {}
    seen: set[str] = set()
    for key in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(key) or ()):
            at = f"status.uncountedTerminatedPods.{key}[{index}]"
            if not uid:
                errors.invalid(at, uid, "must not be empty")
            elif uid in seen:
                errors.duplicate(at, uid)
            seen.add(uid)


def _validate_conditions(
    after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors
) -> None:
    def moved(kinds: Iterable[str]) -> bool:
        return any(has_condition(after, kind) != has_condition(before, kind) for kind in kinds)

    path = "status.conditions"
    complete, failed = has_condition(after, "Complete"), has_condition(after, "Failed")
    target, met = has_condition(after, "FailureTarget"), has_condition(after, "SuccessCriteriaMet")
    if complete and failed and moved(("Complete", "Failed")):
        _invalid(path, "cannot set Complete=True and Failed=true conditions", errors)
    if complete and target and moved(("Complete", "FailureTarget")):
        _invalid(path, "cannot set Complete=True and FailureTarget=true conditions", errors)
    if failed and not target and (moved(("Failed",)) or _changed(after, before, "failedIndexes")):
        _invalid(path, "cannot set Failed=True condition without the FailureTarget=true condition", errors)
    if complete and not met and moved(("Complete", "SuccessCriteriaMet")):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        _invalid(path, detail, errors)
    if met and failed:
        _invalid(path, "cannot set SuccessCriteriaMet=True and Failed=true conditions", errors)
    if met and target:
        _invalid(path, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", errors)
    if "successPolicy" in spec and complete and not met:
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        _invalid(path, detail, errors)
    for kind in _TERMINAL:
        if has_condition(before, kind) and not has_condition(after, kind):
            _invalid(path, f"cannot disable the terminal {kind}=True condition", errors)
    was_met = has_condition(before, "SuccessCriteriaMet")
    if was_met and not met:
        _invalid(path, "cannot disable the SuccessCriteriaMet=True condition", errors)
    if has_condition(before, "Complete") and not was_met and met:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        _invalid(path, detail, errors)


def _validate_times(after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors) -> None:
    complete = has_condition(after, "Complete")
    complete_moved = complete != has_condition(before, "Complete")
    started, ended = after.get("startTime"), after.get("completionTime")
    ended_moved, started_moved = (
        _changed(after, before, "completionTime"),
        _changed(after, before, "startTime"),
    )
    if complete_moved or ended_moved:
        if ended is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.invalid("status.completionTime", ended, detail)
        if ended is None and complete:
            errors.required("status.completionTime", "completionTime is required for Complete jobs")
    # Times in canonical form compare like texts.
    if (started_moved or ended_moved) and started is not None and ended is not None and ended < started:
        errors.invalid("status.completionTime", ended, "must be equal to or after `startTime`")
    finished_moved = is_finished(after) != is_finished(before)
    suspended_empty = spec.get("suspend") is True and spec.get("completions") == 0
    if (finished_moved or started_moved) and not suspended_empty and started is None and is_finished(after):
        errors.required("status.startTime", "startTime is required for finished job")
    if ended is not None and before.get("completionTime") not in (None, ended):
        errors.invalid("status.completionTime", ended, "field is immutable")
    resuming = has_condition(before, "Suspended") and has_condition(after, "Suspended", "False")
    was_started = before.get("startTime") is not None
    if started_moved and was_started and not resuming and not spec.get("suspend"):
        detail = "field is immutable for unsuspended job once set"
        errors.invalid("status.startTime", started, detail)


def _validate_counts(after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors) -> None:
    finished = is_finished(after)
    finished_moved = finished != is_finished(before)
    active = after.get("active", 0)
    if (finished_moved or _changed(after, before, "active")) and active > 0 and finished:
        errors.invalid("status.active", active, "active>0 is invalid for finished job")
    uncounted: dict[str, Any] = after.get("uncountedTerminatedPods") or {}
    left = finished and (uncounted.get("succeeded") or uncounted.get("failed"))
    if left and (finished_moved or _changed(after, before, "uncountedTerminatedPods")):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        errors.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")
    terminating = after.get("terminating", 0)
    if (finished_moved or _changed(after, before, "terminating")) and terminating > 0 and finished:
        errors.invalid("status.terminating", terminating, "terminating>0 is invalid for finished job")
    ready = after.get("ready", 0)
    if _changed(after, before, "ready", "active") and ready > active:
        errors.invalid("status.ready", ready, "cannot set more ready pods than active")
    failed, succeeded = after.get("failed", 0), after.get("succeeded", 0)
    if failed < before.get("failed", 0):
        errors.invalid("status.failed", failed, "cannot decrease the failed counter")
    # An indexed job may be scaled down, which takes successes away.
    is_elastic = _is_indexed(spec) and spec.get("completions") == spec.get("parallelism")
    if not is_elastic and succeeded < before.get("succeeded", 0):
        errors.invalid("status.succeeded", succeeded, "cannot decrease the succeeded counter")


def _is_indexed(spec: JsonObject) -> bool:
    return bool(spec.get("completionMode") == "Indexed")


def _validate_indexes(after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors) -> None:
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex")
    completed, failed = after.get("completedIndexes", ""), after.get("failedIndexes")
    completed_moved = completed != before.get("completedIndexes", "")
    failed_moved = failed != before.get("failedIndexes")
    if completed_moved:
        if completions is not None:
            _check_format(completed, completions, "completedIndexes", errors)
        if completed and not _is_indexed(spec):
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.invalid("status.completedIndexes", completed, detail)
    if failed_moved and failed is not None:
        if completions is not None and per_index is not None:
            _check_format(failed, completions, "failedIndexes", errors)
        if per_index is None:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            errors.invalid("status.failedIndexes", failed, detail)
    if (completed_moved or failed_moved) and completions is not None and failed is not None:
        overlap = first_overlap(completed, failed, completions)
        if overlap is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {overlap}"
            errors.invalid("status.failedIndexes", failed, detail)


def _check_format(text: str, completions: int, field: str, errors: FieldErrors) -> None:
    try:
        parse_indexes(text, completions)
    except IndexFormatError as problem:
        errors.invalid(f"status.{field}", text, f"error parsing {field}: {problem}")
