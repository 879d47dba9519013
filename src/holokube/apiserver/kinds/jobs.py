"""Jobs and cron jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import IMMUTABLE
from holokube.apiserver.kinds.cron_schedules import ScheduleError, check_schedule, time_zone_problems
from holokube.apiserver.kinds.job_status import has_condition, validate_job_status
from holokube.apiserver.kinds.job_validation import validate_job_spec
from holokube.apiserver.kinds.pod_defaults import default_template
from holokube.apiserver.kinds.pod_warnings import template_warnings
from holokube.apiserver.kinds.workload_base import WorkloadKind
from holokube.apiserver.kinds.workload_rules import (
    compiled,
    name_warnings,
    not_negative,
    ordered,
    unchanged,
)
from holokube.apiserver.status_reading import StatusReader
from holokube.kube import names
from holokube.kube.schema import Schema
from holokube.kube.selectors import LabelSelector, validate_label_selector
from holokube.kube.types import JsonObject

UID_LABEL = "batch.kubernetes.io/controller-uid"
NAME_LABEL = "batch.kubernetes.io/job-name"
OLD_UID_LABEL = "controller-uid"
OLD_NAME_LABEL = "job-name"
_MAX_INT32 = 2**31 - 1
_CRON_NAME_MAX_LENGTH = 52
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_COMPLETIONS_SOFT_LIMIT = 100_000
_PARALLELISM_SOFT_LIMIT = 10_000


class Job(WorkloadKind):
    """The rules of jobs."""

    go_type = "batch.v1.Job"
    status_stands_alone = True
    follows_job_patterns = True
    cascades_by_default: ClassVar[str] = "Orphan"
    field_labels: ClassVar[frozenset[str]] = frozenset(
        {"metadata.name", "metadata.namespace", "status.successful"}
    )

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        if "backoffLimit" not in spec:
            spec["backoffLimit"] = _MAX_INT32 if "backoffLimitPerIndex" in spec else 6
        labels = spec["template"]["metadata"].get("labels")
        if labels and not obj["metadata"].get("labels"):
            # The same labels, not a copy: those that are generated at creation show up in both places.
            obj["metadata"]["labels"] = labels
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        if "podReplacementPolicy" not in spec:
            spec["podReplacementPolicy"] = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        spec.setdefault("manualSelector", False)
        default_job_spec(spec)

    def default_beside_spec(self, obj: JsonObject) -> None:
        super().default_beside_spec(obj)
        labels = obj["spec"]["template"]["metadata"].get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)

    def status_reader(self, obj: JsonObject, schema: Schema) -> StatusReader | None:
        # One without labels is given those of its template, by whatever write.
        return super().status_reader(obj, schema) if obj["metadata"].get("labels") else None

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        # Only now: upstream judges metadata.labels before the generated ones, which may be too long, are among them.
        _generate_selector(new)
        _validate_job(new, errors, with_new_labels=True)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        labels = old["spec"]["template"]["metadata"].get("labels") or {}
        _validate_job(new, errors, with_new_labels=UID_LABEL in labels and NAME_LABEL in labels)
        after, before = new["spec"], old["spec"]
        _validate_spec_and_selector(after, compiled(after.get("selector")), errors)
        _validate_completions(after, before, errors)
        unchanged(after, before, "selector", "spec", errors)
        _validate_template_change(after, old, errors)
        for key in (
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "managedBy",
            "successPolicy",
        ):
            unchanged(after, before, key, "spec", errors)

    def stays_valid(self, new: JsonObject, old: JsonObject) -> bool:
        # Of the metadata only the name and the uid count, and these never change.
        return True

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        validate_job_status(new, old, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is None:
            return name_warnings(new) + _spec_warnings(new["spec"], "spec")
        if new["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        return _spec_warnings(new["spec"], "spec")

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def default_job_spec(spec: JsonObject) -> None:
    """Defaults that the template of a cron job gets as well."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    default_template(spec["template"])


def _generate_selector(job: JsonObject) -> None:
    """Every job finds its own pods by its uid, unless the user insists on a selector."""
    spec, meta = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for key in (OLD_NAME_LABEL, NAME_LABEL):
        labels.setdefault(key, meta.get("name", ""))
    for key in (OLD_UID_LABEL, UID_LABEL):
        labels.setdefault(key, meta.get("uid", ""))
    if not meta.get("labels"):
        meta["labels"] = labels
    selector = spec.get("selector")
    if selector is None:
        selector = spec["selector"] = {}
    selector.setdefault("matchLabels", {}).setdefault(UID_LABEL, meta.get("uid", ""))


def _validate_job(job: JsonObject, errors: FieldErrors, *, with_new_labels: bool) -> None:
    spec = job["spec"]
    selector = compiled(spec.get("selector"))
    if not spec.get("manualSelector") and spec.get("selector") is not None:
        _validate_generated(job, selector, errors, with_new_labels=with_new_labels)
    _validate_spec_and_selector(spec, selector, errors)
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions:
        name = job["metadata"].get("name", "")
        hostname = f"{name}-{completions - 1}"
        if completions > 0 and names.is_dns1123_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.invalid("metadata.name", name, detail)


def _validate_generated(
    job: JsonObject, selector: LabelSelector | None, errors: FieldErrors, *, with_new_labels: bool
) -> None:
    """Users may write the generated labels themselves, but only correctly."""
    meta = job["metadata"]
    expected = {OLD_UID_LABEL: meta.get("uid", ""), OLD_NAME_LABEL: meta.get("name", "")}
    if with_new_labels:
        expected |= {UID_LABEL: meta.get("uid", ""), NAME_LABEL: meta.get("name", "")}
    labels = job["spec"]["template"]["metadata"].get("labels") or {}
    for key, value in expected.items():
        at = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.required(at, f"must be '{value}'")
        elif labels[key] != value:
            errors.invalid(at, ordered(labels), f"must be '{value}'")
    if selector is not None and not selector.matches(expected):
        errors.invalid("spec.selector", job["spec"]["selector"], "`selector` not auto-generated")


def _validate_spec_and_selector(spec: JsonObject, found: LabelSelector | None, errors: FieldErrors) -> None:
    validate_job_spec(spec, "spec", errors)
    selector = spec.get("selector")
    if selector is None:
        errors.required("spec.selector")
    else:
        errors.causes += validate_label_selector(selector, "spec.selector")
    labels = spec["template"]["metadata"].get("labels")
    if found is not None and not found.matches(labels or {}):
        detail = "`selector` does not match template `labels`"
        errors.invalid("spec.template.metadata.labels", ordered(labels), detail)


def _validate_completions(after: JsonObject, before: JsonObject, errors: FieldErrors) -> None:
    """Fixed, except that an indexed job can be scaled by changing both numbers together."""
    if after.get("completionMode") != "Indexed":
        unchanged(after, before, "completions", "spec", errors)
        return
    completions = after.get("completions")
    if completions is None or completions == before.get("completions"):
        return
    if completions != after.get("parallelism"):
        errors.invalid(
            "spec.completions", completions, "can only be modified in tandem with spec.parallelism"
        )


def _validate_template_change(after: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """The template is fixed; while a job is suspended, where and how large its pods are may still change."""
    before, status = old["spec"], old.get("status") or {}
    template, known = after["template"], before["template"]
    suspended = bool(before.get("suspend"))
    halted = suspended and ("startTime" not in status or has_condition(status, "Suspended"))
    if not (halted and not status.get("active", 0)):
        if template != known:
            errors.invalid("spec.template", template, IMMUTABLE)
        return
    if _without_scheduling(template["spec"]) != _without_scheduling(known["spec"]):
        errors.invalid("spec.template.spec", template["spec"], IMMUTABLE)


def _without_scheduling(spec: JsonObject) -> JsonObject:
    """A pod spec without what a suspended job may change: node choice, tolerations, gates, resources."""
    rest: dict[str, Any] = {
        key: value
        for key, value in spec.items()
        if key not in ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    }
    affinity = {key: value for key, value in (spec.get("affinity") or {}).items() if key != "nodeAffinity"}
    if affinity:
        rest["affinity"] = affinity
    for key in ("containers", "initContainers"):
        if rest.get(key):
            rest[key] = [{k: v for k, v in c.items() if k != "resources"} for c in rest[key]]
    return rest


def _spec_warnings(spec: JsonObject, path: str) -> list[str]:
    found = []
    completions, parallelism = spec.get("completions", 0), spec.get("parallelism", 0)
    is_huge = completions > _COMPLETIONS_SOFT_LIMIT and parallelism > _PARALLELISM_SOFT_LIMIT
    if spec.get("completionMode") == "Indexed" and is_huge:
        found.append(
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher "
            "than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes "
            "fail"
        )
    return found + template_warnings(spec["template"], f"{path}.template")


class CronJob(WorkloadKind):
    """The rules of cron jobs."""

    go_type = "batch.v1.CronJob"

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        spec.setdefault("concurrencyPolicy", "Allow")
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        default_job_spec(spec["jobTemplate"]["spec"])

    def template(self, obj: JsonObject) -> JsonObject | None:
        found: JsonObject = obj["spec"]["jobTemplate"]["spec"]["template"]
        return found

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        _validate_cron_spec(new["spec"], None, errors)
        name = new["metadata"].get("name", "")
        if len(name) > _CRON_NAME_MAX_LENGTH:
            errors.invalid("metadata.name", name, f"must be no more than {_CRON_NAME_MAX_LENGTH} characters")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        _validate_cron_spec(new["spec"], old["spec"], errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        path = "spec.jobTemplate.spec"
        template = new["spec"]["jobTemplate"]["spec"]
        if old is None:
            return name_warnings(new) + _spec_warnings(template, path)
        found = []
        if new["metadata"].get("generation") != old["metadata"].get("generation"):
            found += _spec_warnings(template, path)
        if "TZ" in new["spec"].get("schedule", ""):
            found.append(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
        return found


def _validate_cron_spec(spec: JsonObject, old: JsonObject | None, errors: FieldErrors) -> None:
    zone = spec.get("timeZone")
    schedule = spec.get("schedule", "")
    if not schedule:
        errors.required("spec.schedule")
    else:
        _validate_schedule(schedule, zone, old, errors)
    not_negative(spec, ("startingDeadlineSeconds",), "spec", errors)
    if zone is not None and (old is None or old.get("timeZone") != zone):
        errors.all_invalid("spec.timeZone", zone, time_zone_problems(zone))
    policy = spec["concurrencyPolicy"]
    if policy not in _CONCURRENCY:
        errors.not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY)
    template = spec["jobTemplate"]["spec"]
    validate_job_spec(template, "spec.jobTemplate.spec", errors)
    if template.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        errors.invalid("spec.jobTemplate.spec.selector", template["selector"], detail)
    if template.get("manualSelector"):
        errors.not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    not_negative(spec, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"), "spec", errors)


def _validate_schedule(schedule: str, zone: str | None, old: JsonObject | None, errors: FieldErrors) -> None:
    try:
        check_schedule(schedule)
    except ScheduleError as problem:
        errors.invalid("spec.schedule", schedule, str(problem))
    if "TZ" not in schedule:
        return
    if old is None or "TZ" not in old.get("schedule", ""):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.invalid("spec.schedule", schedule, detail)
    elif zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.invalid("spec.schedule", schedule, detail)
