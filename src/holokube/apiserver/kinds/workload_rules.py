"""Rules that several workload kinds share: selectors, templates, counts, rolling updates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import IMMUTABLE, NOT_NEGATIVE
from holokube.apiserver.kinds.pod_validation import validate_template
from holokube.apiserver.kinds.pod_warnings import template_warnings
from holokube.kube import names
from holokube.kube.selectors import LabelSelector, validate_label_selector
from holokube.kube.types import JsonObject

MORE_THAN_REPLICAS = "cannot be greater than status.replicas"


def not_negative(obj: JsonObject, fields: Iterable[str], path: str, errors: FieldErrors) -> None:
    for field in fields:
        value = obj.get(field)
        if value is not None and value < 0:
            errors.invalid(f"{path}.{field}", value, NOT_NEGATIVE)


def unchanged(new: JsonObject, old: JsonObject, field: str, path: str, errors: FieldErrors) -> None:
    """``field`` is fixed at creation."""
    if new.get(field) != old.get(field):
        errors.invalid(f"{path}.{field}", new.get(field), IMMUTABLE)


def selects_as_before(new: JsonObject, old: JsonObject) -> bool:
    """Whether the template is the very one that is stored, and the selector has not changed: both were found valid,
    and to agree, when they were written."""
    after, before = new["spec"], old["spec"]
    return after["template"] is before["template"] and after.get("selector") == before.get("selector")


def ordered(labels: JsonObject | None) -> JsonObject | None:
    """Labels in the order in which Go prints a map."""
    return dict(sorted(labels.items())) if labels else None


def validate_selector(spec: JsonObject, kind: str, errors: FieldErrors) -> LabelSelector | None:
    """``spec.selector`` is there, well formed and not empty. Returns it compiled, if it can be."""
    selector = spec.get("selector")
    if selector is None:
        errors.required("spec.selector")
    else:
        errors.causes += validate_label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    return compiled(selector)


def compiled(selector: JsonObject | None) -> LabelSelector | None:
    try:
        return LabelSelector.from_json(selector)
    except ValueError:
        return None


def validate_selected_template(
    template: JsonObject, selector: LabelSelector, path: str, kind: str, errors: FieldErrors
) -> None:
    """A template whose pods the selector finds, and which run until somebody deletes them."""
    labels = (template.get("metadata") or {}).get("labels")
    if not selector.is_empty and not selector.matches(labels or {}):
        detail = "`selector` does not match template `labels`"
        errors.invalid(f"{path}.metadata.labels", ordered(labels), detail)
    validate_template(template, path, errors)
    validate_runs_forever(template, path, kind, errors)


def validate_runs_forever(template: JsonObject, path: str, kind: str, errors: FieldErrors) -> None:
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") != "Always":
        errors.not_supported(f"{path}.spec.restartPolicy", spec.get("restartPolicy", ""), ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.forbidden(f"{path}.spec.activeDeadlineSeconds", detail)


def validate_int_or_percent(value: Any, path: str, errors: FieldErrors) -> None:
    if isinstance(value, str):
        errors.all_invalid(path, value, names.is_percent(value))
    elif value < 0:
        errors.invalid(path, value, NOT_NEGATIVE)


def int_or_percent(value: Any) -> int:
    """The number in ``5`` or ``5%``; what is neither counts as zero."""
    if isinstance(value, str):
        if names.is_percent(value):
            return int(value) if value.isascii() and value.isdigit() else 0
        return int(value[:-1])
    return int(value)


def validate_at_most_100_percent(value: Any, path: str, errors: FieldErrors) -> None:
    if isinstance(value, str) and not names.is_percent(value) and int(value[:-1]) > 100:
        errors.invalid(path, value, "must not be greater than 100%")


def validate_replica_counts(
    status: JsonObject, fields: Iterable[str], errors: FieldErrors, *, ready_name: str = "readyReplicas"
) -> None:
    """No part of the replicas is larger than all of them."""
    total = status.get("replicas", 0)
    for field in fields:
        count = status.get(field, 0)
        if count > total:
            errors.invalid(f"status.{field}", count, MORE_THAN_REPLICAS)
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        errors.invalid("status.availableReplicas", available, f"cannot be greater than {ready_name}")


def validate_collisions(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """The count of hash collisions only grows."""
    before = (old.get("status") or {}).get("collisionCount")
    after = (new.get("status") or {}).get("collisionCount")
    if before is not None and (after is None or after < before):
        errors.invalid("status.collisionCount", after or 0, "cannot be decremented")


def workload_warnings(new: JsonObject, old: JsonObject | None, *, checks_name: bool = True) -> list[str]:
    """Warnings about the name and the template, where they are new or may have changed."""
    if old is not None:
        if new["metadata"].get("generation") == old["metadata"].get("generation"):
            return []
        template = new["spec"].get("template") or {}
        if template is old["spec"].get("template"):
            return _stored_template_warnings(template)
        return template_warnings(template, "spec.template")
    found = name_warnings(new) if checks_name else []
    return found + template_warnings(new["spec"].get("template") or {}, "spec.template")


def _stored_template_warnings(template: JsonObject) -> list[str]:
    """Warnings about a template that is stored, and so will never be another."""
    known = _WARNED.get(id(template))
    if known is None or known[0] is not template:
        if len(_WARNED) >= _WARNED_KEPT:
            _WARNED.clear()
        known = _WARNED[id(template)] = template, tuple(template_warnings(template, "spec.template"))
    return [*known[1]]


# By identity; the template is kept so that no other comes to stand in its place.
_WARNED: Final[dict[int, tuple[JsonObject, tuple[str, ...]]]] = {}
_WARNED_KEPT: Final = 256


def name_warnings(new: JsonObject) -> list[str]:
    problems = names.is_dns1123_label(new["metadata"].get("name", ""))
    if not problems:
        return []
    warning = (
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(problems)}]"
    )
    return [warning]
