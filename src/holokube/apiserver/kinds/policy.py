"""PodDisruptionBudgets and PriorityClasses."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import check_immutable, check_not_negative, check_selector
from holokube.apiserver.kinds.conditions import check_conditions
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.types import JsonObject

_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_SYSTEM_PREFIX: Final = "system-"
_SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def check_int_or_percent(value: int | str, path: str, errors: FieldErrors) -> None:
    """A count that is not negative, or a percentage of at most a hundred."""
    if isinstance(value, int):
        check_not_negative(value, path, errors)
        return
    problems = names.is_percent(value)
    errors.all_invalid(path, value, problems)
    if not problems and int(value[:-1]) > 100:
        errors.invalid(path, value, "must not be greater than 100%")


class PodDisruptionBudget(GoKind):
    go_type = "policy.v1.PodDisruptionBudget"
    tracks_generation = True
    allow_unconditional_update = False

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if least is not None and most is not None:
            shown = {
                "MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most,
                "UnhealthyPodEvictionPolicy": policy,
            }  # fmt: skip
            errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
        if least is not None:
            check_int_or_percent(least, "spec.minAvailable", errors)
        if most is not None:
            check_int_or_percent(most, "spec.maxUnavailable", errors)
        check_selector(spec.get("selector"), "spec.selector", errors)
        if policy is not None and policy not in _EVICTION_POLICIES:
            errors.not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        status = new["status"]
        check_conditions(status.get("conditions") or [], "status.conditions", errors)
        for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
            check_not_negative(status[field], f"status.{field}", errors)


class PriorityClass(GoKind):
    go_type = "scheduling.v1.PriorityClass"
    tracks_generation = True

    def set_defaults(self, obj: JsonObject) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def spec_changed(self, new: JsonObject, old: JsonObject) -> bool:
        # The generation is 1 for life.
        return False

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        name, value = new["metadata"].get("name", ""), new["value"]
        if name.startswith(_SYSTEM_PREFIX):
            problem = _system_class_problem(name, value, default=bool(new.get("globalDefault")))
            if problem:
                reserved = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only"
                errors.forbidden("metadata.name", f"{reserved}. error: {problem}")
        elif value > _HIGHEST_USER_PRIORITY:
            message = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            errors.forbidden("value", message)
        policy = new["preemptionPolicy"]
        if not policy:
            errors.required("preemptionPolicy")
        elif policy not in _PREEMPTION_POLICIES:
            errors.not_supported("preemptionPolicy", policy, _PREEMPTION_POLICIES)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        if new["value"] != old["value"]:
            errors.forbidden("value", "may not be changed in an update.")
        check_immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy", errors)


def _system_class_problem(name: str, value: int, *, default: bool) -> str:
    wanted = _SYSTEM_CLASSES.get(name)
    if wanted is None:
        return f"{name} is not a known system priority class"
    if value != wanted:
        return f"value of {name} PriorityClass must be {wanted}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""
