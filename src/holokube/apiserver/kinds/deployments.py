"""Deployments."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.pod_defaults import default_template
from holokube.apiserver.kinds.workload_base import WorkloadKind
from holokube.apiserver.kinds.workload_rules import (
    int_or_percent,
    not_negative,
    selects_as_before,
    unchanged,
    validate_at_most_100_percent,
    validate_collisions,
    validate_int_or_percent,
    validate_replica_counts,
    validate_selected_template,
    validate_selector,
    workload_warnings,
)
from holokube.kube.types import JsonObject

_COUNTS = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
    "unavailableReplicas", "terminatingReplicas", "collisionCount",
)  # fmt: skip


class Deployment(WorkloadKind):
    """The rules of deployments."""

    go_type = "apps.v1.Deployment"
    status_stands_alone = True
    prepares_only_metadata = True
    template_stands_alone = True
    settles_on_update = True

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        strategy = spec["strategy"]
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        default_template(spec["template"])

    def prepare_status_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        labels = old["metadata"].get("labels")
        if labels is not None:
            new["metadata"]["labels"] = labels
        else:
            new["metadata"].pop("labels", None)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        not_negative(spec, ("replicas",), "spec", errors)
        selector = validate_selector(spec, "deployment", errors)
        if selector is None:
            errors.invalid("spec.selector", spec.get("selector"), "invalid label selector")
        else:
            validate_selected_template(spec["template"], selector, "spec.template", "ReplicaSet", errors)
        _validate_rollout(spec, errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        if selects_as_before(new, old):
            not_negative(new["spec"], ("replicas",), "spec", errors)
            _validate_rollout(new["spec"], errors)
            return
        self.validate(new, errors)
        unchanged(new["spec"], old["spec"], "selector", "spec", errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        status = new.get("status") or {}
        not_negative(status, _COUNTS, "status", errors)
        validate_replica_counts(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), errors)
        validate_collisions(new, old, errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        return workload_warnings(new, old)

    def spec_changed(self, new: JsonObject, old: JsonObject) -> bool:
        """Annotations count as well: the controller copies them to its replica sets."""
        return bool(
            new["spec"] != old["spec"]
            or (new["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {})
        )


def _validate_rollout(spec: JsonObject, errors: FieldErrors) -> None:
    _validate_strategy(spec["strategy"], errors)
    not_negative(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), "spec", errors)
    deadline_s = spec.get("progressDeadlineSeconds")
    if deadline_s is not None and deadline_s <= spec.get("minReadySeconds", 0):
        errors.invalid("spec.progressDeadlineSeconds", deadline_s, "must be greater than minReadySeconds")


def _validate_strategy(strategy: JsonObject, errors: FieldErrors) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    path = "spec.strategy"
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            errors.forbidden(f"{path}.rollingUpdate", detail)
        return
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": rolling}
        errors.not_supported(path, shown, ("Recreate", "RollingUpdate"))
        return
    unavailable, surge = strategy["rollingUpdate"]["maxUnavailable"], strategy["rollingUpdate"]["maxSurge"]
    at = f"{path}.rollingUpdate"
    validate_int_or_percent(unavailable, f"{at}.maxUnavailable", errors)
    validate_int_or_percent(surge, f"{at}.maxSurge", errors)
    if int_or_percent(unavailable) == 0 and int_or_percent(surge) == 0:
        errors.invalid(f"{at}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    validate_at_most_100_percent(unavailable, f"{at}.maxUnavailable", errors)
