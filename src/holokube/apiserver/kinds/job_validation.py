"""Rules for the spec of jobs, alone or as the template of a cron job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import NOT_NEGATIVE
from holokube.apiserver.kinds.job_indexes import IndexFormatError, count_indexes
from holokube.apiserver.kinds.pod_validation import validate_template
from holokube.apiserver.kinds.workload_rules import not_negative
from holokube.kube import names
from holokube.kube.errors import Cause
from holokube.kube.types import JsonObject

_MAX_PARALLELISM_INDEXED = 100_000
_MAX_FAILED_INDEXES = 100_000
_COMPLETIONS_SOFT_LIMIT = 100_000
_PARALLELISM_HIGH_COMPLETIONS = 10_000
_FAILED_HIGH_COMPLETIONS = 10_000
_MAX_RULES = 20
_MAX_EXIT_CODES = 255
_MAX_PATTERNS = 20
_MANAGED_BY_MAX_LENGTH = 63
_SUCCEEDED_INDEXES_MAX_LENGTH = 64 * 1024
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_http_path = re.compile(_HTTP_PATH).fullmatch
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip


def validate_job_spec(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """Upstream's validateJobSpec; the selector is the caller's business."""
    not_negative(spec, _COUNTS, path, errors)
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        errors.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    manager = spec.get("managedBy")
    if manager is not None:
        _validate_manager(manager, f"{path}.managedBy", errors)
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        errors.not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        _validate_indexed(spec, path, errors)
    elif mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if key in spec:
                errors.invalid(f"{path}.{key}", spec[key], "requires indexed completion mode")
    failure, success = spec.get("podFailurePolicy"), spec.get("successPolicy")
    if failure is not None:
        _validate_failure_policy(spec, failure, f"{path}.podFailurePolicy", errors)
    if success is not None:
        if mode != "Indexed":
            errors.invalid(
                f"{path}.successPolicy", _shown_success(success), "requires indexed completion mode"
            )
        else:
            _validate_success_policy(spec, success, f"{path}.successPolicy", errors)
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        supported = ("Failed",) if failure is not None else ("Failed", "TerminatingOrFailed")
        if replacement not in supported:
            errors.not_supported(f"{path}.podReplacementPolicy", replacement, supported)
    validate_template(spec["template"], f"{path}.template", errors)
    _validate_restart_policy(spec, f"{path}.template.spec.restartPolicy", errors)


def _shown_success(policy: JsonObject) -> JsonObject:
    rules = [
        {"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
        for rule in policy.get("rules") or ()
    ]
    return {"Rules": rules or None}


def _validate_restart_policy(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("Always", ""):
        errors.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        errors.not_supported(path, policy, ("OnFailure", "Never"))
    elif "podFailurePolicy" in spec and policy != "Never":
        errors.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _validate_manager(manager: str, path: str, errors: FieldErrors) -> None:
    if not manager:
        errors.required(path)
        return
    host, slash, rest = manager.partition("/")
    if not slash or not host or not rest:
        errors.invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        errors.all_invalid(path, host, names.is_dns1123_subdomain(host))
        if not _http_path(rest):
            errors.invalid(path, rest, names.regex_error("Invalid path", _HTTP_PATH))
    if len(manager) > _MANAGED_BY_MAX_LENGTH:
        errors.too_long(path, manager, _MANAGED_BY_MAX_LENGTH)


def _validate_indexed(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        errors.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MAX_PARALLELISM_INDEXED:
        detail = f"must be less than or equal to {_MAX_PARALLELISM_INDEXED} when completion mode is Indexed"
        errors.invalid(f"{path}.parallelism", parallelism, detail)
    if completions is not None and failed is not None and failed > completions:
        errors.invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MAX_FAILED_INDEXES:
        errors.invalid(
            f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MAX_FAILED_INDEXES}"
        )
    if completions is None or completions <= _COMPLETIONS_SOFT_LIMIT or "backoffLimitPerIndex" not in spec:
        return
    above = f"when completions are above {_COMPLETIONS_SOFT_LIMIT} and used with backoff limit per index"
    if failed is None:
        detail = f"must be specified when completions is above {_COMPLETIONS_SOFT_LIMIT}"
        errors.required(f"{path}.maxFailedIndexes", detail)
    if parallelism is not None and parallelism > _PARALLELISM_HIGH_COMPLETIONS:
        detail = f"must be less than or equal to {_PARALLELISM_HIGH_COMPLETIONS} {above}"
        errors.invalid(f"{path}.parallelism", parallelism, detail)
    if failed is not None and failed > _FAILED_HIGH_COMPLETIONS:
        detail = f"must be less than or equal to {_FAILED_HIGH_COMPLETIONS} {above}"
        errors.invalid(f"{path}.maxFailedIndexes", failed, detail)


def _listed(values: Iterable[str]) -> str:
    return f"valid values: [{' '.join(f'{chr(34)}{value}{chr(34)}' for value in values)}]"


def _check_word(value: str, supported: Sequence[str], path: str, errors: FieldErrors) -> None:
    if not value:
        errors.required(path, _listed(supported))
    elif value not in supported:
        errors.not_supported(path, value, supported)


def _validate_failure_policy(spec: JsonObject, policy: JsonObject, path: str, errors: FieldErrors) -> None:
    rules = policy.get("rules") or []
    if len(rules) > _MAX_RULES:
        errors.too_many(f"{path}.rules", len(rules), _MAX_RULES)
    pod = spec["template"]["spec"]
    containers = {c.get("name", "") for key in ("containers", "initContainers") for c in pod.get(key) or ()}
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        action = rule.get("action", "")
        if action == "FailIndex":
            if "backoffLimitPerIndex" not in spec:
                errors.invalid(f"{at}.action", action, "requires the backoffLimitPerIndex to be set")
        else:
            _check_word(action, _ACTIONS, f"{at}.action", errors)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            _validate_exit_codes(codes, containers, f"{at}.onExitCodes", errors)
        _validate_conditions(conditions, f"{at}.onPodConditions", errors)
        if codes is not None and conditions:
            _without_value(at, "specifying both OnExitCodes and OnPodConditions is not supported", errors)
        if codes is None and not conditions:
            _without_value(at, "specifying one of OnExitCodes and OnPodConditions is required", errors)


def _without_value(path: str, detail: str, errors: FieldErrors) -> None:
    """``Invalid value`` for something too large to be shown."""
    errors.causes.append(Cause("FieldValueInvalid", f"Invalid value: {detail}", path))


def _validate_exit_codes(codes: JsonObject, containers: set[str], path: str, errors: FieldErrors) -> None:
    operator = codes.get("operator", "")
    _check_word(operator, ("In", "NotIn"), f"{path}.operator", errors)
    name = codes.get("containerName")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.invalid(f"{path}.containerName", name, detail)
    values: list[int] | None = codes.get("values")
    if not values:
        errors.invalid(f"{path}.values", [], "at least one value is required")
        return
    if len(values) > _MAX_EXIT_CODES:
        errors.too_many(f"{path}.values", len(values), _MAX_EXIT_CODES)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            errors.invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            errors.duplicate(f"{path}.values[{index}]", value)
        seen.add(value)
    if values != sorted(values):
        errors.invalid(f"{path}.values", values, "must be ordered")


def _validate_conditions(patterns: list[Any], path: str, errors: FieldErrors) -> None:
    if len(patterns) > _MAX_PATTERNS:
        errors.too_many(path, len(patterns), _MAX_PATTERNS)
    for index, pattern in enumerate(patterns):
        kind = pattern.get("type", "")
        errors.all_invalid(f"{path}[{index}].type", kind, names.is_qualified_name(kind))
        _check_word(pattern.get("status", ""), _STATUSES, f"{path}[{index}].status", errors)


def _validate_success_policy(spec: JsonObject, policy: JsonObject, path: str, errors: FieldErrors) -> None:
    rules = policy.get("rules") or []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.required(f"{path}.rules", detail)
    if len(rules) > _MAX_RULES:
        errors.too_many(f"{path}.rules", len(rules), _MAX_RULES)
    # Upstream fails without completions, which are reported as missing anyway.
    completions = spec.get("completions", 0)
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if indexes is None and count is None:
            errors.required(at, "at least one of succeededCount or succeededIndexes must be specified")
        total = 0
        if indexes is not None:
            if len(indexes) > _SUCCEEDED_INDEXES_MAX_LENGTH:
                errors.too_long(f"{at}.succeededIndexes", indexes, _SUCCEEDED_INDEXES_MAX_LENGTH)
            try:
                total = count_indexes(indexes, completions)
            except IndexFormatError as problem:
                errors.invalid(
                    f"{at}.succeededIndexes", indexes, f"error parsing succeededIndexes: {problem}"
                )
        if count is None:
            continue
        if count < 0:
            errors.invalid(f"{at}.succeededCount", count, NOT_NEGATIVE)
        start = "must be less than or equal to"
        if count > completions:
            detail = f"{start} {completions} (the number of specified completions)"
            errors.invalid(f"{at}.succeededCount", count, detail)
        if indexes is not None and count > total:
            detail = f"{start} {total} (the number of indexes in the specified succeededIndexes field)"
            errors.invalid(f"{at}.succeededCount", count, detail)
