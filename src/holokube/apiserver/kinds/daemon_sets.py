"""Daemon sets."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.pod_defaults import default_template
from holokube.apiserver.kinds.pod_validation import validate_template
from holokube.apiserver.kinds.pod_warnings import template_warnings
from holokube.apiserver.kinds.workload_base import WorkloadKind
from holokube.apiserver.kinds.workload_rules import (
    compiled,
    int_or_percent,
    not_negative,
    ordered,
    unchanged,
    validate_at_most_100_percent,
    validate_collisions,
    validate_int_or_percent,
    validate_runs_forever,
)
from holokube.kube.selectors import parse_int64, validate_label_selector
from holokube.kube.types import JsonObject

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_COUNTS = (
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
    "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable",
    "collisionCount",
)  # fmt: skip


class DaemonSet(WorkloadKind):
    """The rules of daemon sets. The number of template changes lives on as an annotation."""

    go_type = "apps.v1.DaemonSet"
    status_stands_alone = True

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        strategy = spec["updateStrategy"]
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif strategy.get("rollingUpdate") is not None:
            # Both are plain numbers inside the server, so that they come back once the struct is there.
            strategy["rollingUpdate"].setdefault("maxUnavailable", 0)
            strategy["rollingUpdate"].setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        default_template(spec["template"])

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        super().prepare_create(new, context)
        _set_template_generation(new, max(_template_generation(new), 1))

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        moved = new["spec"]["template"] != old["spec"]["template"]
        _set_template_generation(new, _template_generation(old) + (1 if moved else 0))

    def prepare_status_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        _set_template_generation(new, _template_generation(old))

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        selector, template = spec.get("selector"), spec["template"]
        errors.causes += validate_label_selector(selector, "spec.selector")
        found = compiled(selector)
        labels = template["metadata"].get("labels")
        if found is not None and not found.matches(labels or {}):
            detail = "`selector` does not match template `labels`"
            errors.invalid("spec.template.metadata.labels", ordered(labels), detail)
        if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.invalid("spec.selector", selector, "empty selector is invalid for daemonset")
        validate_template(template, "spec.template", errors)
        validate_runs_forever(template, "spec.template", "DaemonSet", errors)
        not_negative(spec, ("minReadySeconds",), "spec", errors)
        _validate_strategy(spec["updateStrategy"], errors)
        not_negative(spec, ("revisionHistoryLimit",), "spec", errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        unchanged(new["spec"], old["spec"], "selector", "spec", errors)
        self.validate(new, errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        not_negative(new.get("status") or {}, _COUNTS, "status", errors)
        validate_collisions(new, old, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is not None and _template_generation(new) == _template_generation(old):
            return []
        return template_warnings(new["spec"]["template"], "spec.template")


def _template_generation(obj: JsonObject) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return parse_int64(text) or 0


def _set_template_generation(obj: JsonObject, generation: int) -> None:
    meta = obj["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), TEMPLATE_GENERATION: str(generation)}


def _validate_strategy(strategy: JsonObject, errors: FieldErrors) -> None:
    kind = strategy["type"]
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": strategy.get("rollingUpdate")}
        errors.not_supported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete"))
        return
    rolling = strategy["rollingUpdate"]
    path = "spec.updateStrategy.rollingUpdate"
    fields = ("maxUnavailable", "maxSurge")
    for field in fields:
        validate_int_or_percent(rolling[field], f"{path}.{field}", errors)
    for field in fields:
        validate_at_most_100_percent(rolling[field], f"{path}.{field}", errors)
    unavailable, surge = (int_or_percent(rolling[field]) for field in fields)
    if unavailable and surge:
        detail = "may not be set when maxUnavailable is non-zero"
        errors.invalid(f"{path}.maxSurge", rolling["maxSurge"], detail)
    elif not unavailable and not surge:
        errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
