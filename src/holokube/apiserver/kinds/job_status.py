"""Rules for the status of jobs: other controllers than the built-in one may write it."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.job_indexes import IndexFormatError, first_overlap, parse_indexes
from holokube.apiserver.kinds.workload_rules import not_negative
from holokube.kube.errors import Cause
from holokube.kube.types import JsonObject

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL = ("Failed", "Complete", "FailureTarget")
_FINISHED = frozenset({"Complete", "Failed"})
_NONE: Set[str] = frozenset()


def has_condition(status: JsonObject, kind: str, value: str = "True") -> bool:
    return any(c.get("type") == kind and c.get("status") == value for c in status.get("conditions") or ())


def _true_conditions(status: JsonObject) -> Set[str]:
    """The types of the conditions that hold."""
    conditions = status.get("conditions")
    # Until a job ends there are none.
    if not conditions:
        return _NONE
    return {c.get("type", "") for c in conditions if c.get("status") == "True"}


def validate_job_status(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Upstream's ValidateJobStatusUpdate. Most rules look only at what has changed."""
    after: JsonObject = new.get("status") or {}
    before: JsonObject = old.get("status") or {}
    spec: JsonObject = new["spec"]
    true, was_true = _true_conditions(after), _true_conditions(before)
    not_negative(after, _COUNTS, "status", errors)
    _validate_uncounted(after, errors)
    if true or was_true:
        indexes_moved = _changed(after, before, "failedIndexes")
        _validate_conditions(true, was_true, spec, errors, indexes_moved=indexes_moved)
    _validate_times(after, before, spec, true, was_true, errors)
    if not _FINISHED.isdisjoint(true):
        _validate_last_counts(after, before, _FINISHED.isdisjoint(was_true), errors)
    _validate_counts(after, before, spec, errors)
    _validate_indexes(after, before, spec, errors)


def _invalid(path: str, detail: str, errors: FieldErrors) -> None:
    errors.causes.append(Cause("FieldValueInvalid", f"Invalid value: {detail}", path))


def _changed(after: JsonObject, before: JsonObject, *fields: str) -> bool:
    return any(after.get(field) != before.get(field) for field in fields)


def _validate_uncounted(status: JsonObject, errors: FieldErrors) -> None:
    uncounted = status.get("uncountedTerminatedPods")
    if not uncounted:
        return
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
    true: Set[str], was_true: Set[str], spec: JsonObject, errors: FieldErrors, *, indexes_moved: bool
) -> None:
    moved = true ^ was_true
    path = "status.conditions"
    complete, failed = "Complete" in true, "Failed" in true
    target, met = "FailureTarget" in true, "SuccessCriteriaMet" in true
    if complete and failed and not moved.isdisjoint(("Complete", "Failed")):
        _invalid(path, "cannot set Complete=True and Failed=true conditions", errors)
    if complete and target and not moved.isdisjoint(("Complete", "FailureTarget")):
        _invalid(path, "cannot set Complete=True and FailureTarget=true conditions", errors)
    if failed and not target and ("Failed" in moved or indexes_moved):
        _invalid(path, "cannot set Failed=True condition without the FailureTarget=true condition", errors)
    if complete and not met and not moved.isdisjoint(("Complete", "SuccessCriteriaMet")):
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
        if kind in was_true and kind not in true:
            _invalid(path, f"cannot disable the terminal {kind}=True condition", errors)
    was_met = "SuccessCriteriaMet" in was_true
    if was_met and not met:
        _invalid(path, "cannot disable the SuccessCriteriaMet=True condition", errors)
    if "Complete" in was_true and not was_met and met:
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        _invalid(path, detail, errors)


def _validate_times(
    after: JsonObject, before: JsonObject, spec: JsonObject, true: Set[str], was_true: Set[str], errors: FieldErrors
) -> None:
    complete = "Complete" in true
    started, ended = after.get("startTime"), after.get("completionTime")
    was_started, was_ended = before.get("startTime"), before.get("completionTime")
    started_moved, ended_moved = started != was_started, ended != was_ended
    if complete != ("Complete" in was_true) or ended_moved:
        if ended is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.invalid("status.completionTime", ended, detail)
        if ended is None and complete:
            errors.required("status.completionTime", "completionTime is required for Complete jobs")
    # Times in canonical form compare like texts.
    if (started_moved or ended_moved) and started is not None and ended is not None and ended < started:
        errors.invalid("status.completionTime", ended, "must be equal to or after `startTime`")
    if started is None and not _FINISHED.isdisjoint(true) and (started_moved or _FINISHED.isdisjoint(was_true)):
        suspended_empty = spec.get("suspend") is True and spec.get("completions") == 0
        if not suspended_empty:
            errors.required("status.startTime", "startTime is required for finished job")
    if ended is not None and was_ended not in (None, ended):
        errors.invalid("status.completionTime", ended, "field is immutable")
    if started_moved and was_started is not None and not spec.get("suspend"):
        resuming = "Suspended" in was_true and has_condition(after, "Suspended", "False")
        if not resuming:
            detail = "field is immutable for unsuspended job once set"
            errors.invalid("status.startTime", started, detail)


def _validate_last_counts(after: JsonObject, before: JsonObject, finished_now: bool, errors: FieldErrors) -> None:
    """Of a finished job nothing runs, ends or waits to be counted."""
    active = after.get("active", 0)
    if active > 0 and (finished_now or _changed(after, before, "active")):
        errors.invalid("status.active", active, "active>0 is invalid for finished job")
    uncounted: dict[str, Any] = after.get("uncountedTerminatedPods") or {}
    left = uncounted.get("succeeded") or uncounted.get("failed")
    if left and (finished_now or _changed(after, before, "uncountedTerminatedPods")):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        errors.invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job")
    terminating = after.get("terminating", 0)
    if terminating > 0 and (finished_now or _changed(after, before, "terminating")):
        errors.invalid("status.terminating", terminating, "terminating>0 is invalid for finished job")


def _validate_counts(after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors) -> None:
    ready = after.get("ready", 0)
    if ready > after.get("active", 0) and _changed(after, before, "ready", "active"):
        errors.invalid("status.ready", ready, "cannot set more ready pods than active")
    failed, succeeded = after.get("failed", 0), after.get("succeeded", 0)
    if failed < before.get("failed", 0):
        errors.invalid("status.failed", failed, "cannot decrease the failed counter")
    # An indexed job may be scaled down, which takes successes away.
    if succeeded < before.get("succeeded", 0):
        is_elastic = _is_indexed(spec) and spec.get("completions") == spec.get("parallelism")
        if not is_elastic:
            errors.invalid("status.succeeded", succeeded, "cannot decrease the succeeded counter")


def _is_indexed(spec: JsonObject) -> bool:
    return bool(spec.get("completionMode") == "Indexed")


def _validate_indexes(after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors) -> None:
    completed, failed = after.get("completedIndexes", ""), after.get("failedIndexes")
    completed_moved = completed != before.get("completedIndexes", "")
    failed_moved = failed != before.get("failedIndexes")
    if not (completed_moved or failed_moved):
        return
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex")
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
