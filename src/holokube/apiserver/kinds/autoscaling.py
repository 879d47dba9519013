"""HorizontalPodAutoscalers, in the shape of autoscaling/v2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import check_container_resource_name, check_not_negative
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names, quantity
from holokube.kube.types import JsonObject

_DEFAULT_UTILIZATION: Final = 80
_WINDOW_MAX_S: Final = 3600
_PERIOD_MAX_S: Final = 1800
_SELECT_POLICIES: Final = ("Disabled", "Max", "Min")
_POLICY_TYPES: Final = ("Percent", "Pods")
_TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")
# Metric type -> the field that describes it, in the order in which upstream looks at them.
_SOURCES: Final = {
    "Object": "object", "External": "external", "Pods": "pods", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip
_METRIC_TYPES: Final = tuple(sorted(_SOURCES))
_POPULATE: Final = "must populate information for the given metric source"


class HorizontalPodAutoscaler(GoKind):
    go_type = "autoscaling.v2.HorizontalPodAutoscaler"

    def set_defaults(self, obj: JsonObject) -> None:
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": _DEFAULT_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        behavior = spec.get("behavior")
        if behavior is not None:
            behavior["scaleUp"] = _with_defaults(behavior.get("scaleUp"), _default_scale_up())
            behavior["scaleDown"] = _with_defaults(behavior.get("scaleDown"), _default_scale_down())

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        target = new["spec"]["scaleTargetRef"]
        # The only thing in the core group that can be scaled.
        self._check(new["spec"], errors, needs_group=target["kind"] != "ReplicationController")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        after, before = new["spec"]["scaleTargetRef"], old["spec"]["scaleTargetRef"]
        # What was accepted once stays acceptable: an odd apiVersion, and zero replicas.
        same = all(after.get(key) == before.get(key) for key in ("apiVersion", "kind"))
        needs_group = None if same else after["kind"] != "ReplicationController"
        lowest = 0 if old["spec"].get("minReplicas") == 0 else 1
        self._check(new["spec"], errors, needs_group=needs_group, lowest=lowest)

    def _check(self, spec: JsonObject, errors: FieldErrors, *, needs_group: bool | None, lowest: int = 1) -> None:
        least, most = spec["minReplicas"], spec["maxReplicas"]
        if least < lowest:
            errors.invalid("spec.minReplicas", least, f"must be greater than or equal to {lowest}")
        if most == 0:
            errors.required("spec.maxReplicas", "must be set and greater than 0")
        elif most < 0:
            errors.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
        if most < least:
            errors.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
        _check_reference(spec["scaleTargetRef"], "spec.scaleTargetRef", errors, needs_group=needs_group)
        for index, metric in enumerate(spec["metrics"]):
            _check_metric(metric, f"spec.metrics[{index}]", errors)
        if least == 0 and not any(metric["type"] in ("Object", "External") for metric in spec["metrics"]):
            message = "must specify at least one Object or External metric to support scaling to zero replicas"
            errors.forbidden("spec.metrics", message)
        for side in ("scaleUp", "scaleDown"):
            rules = (spec.get("behavior") or {}).get(side)
            if rules is not None:
                _check_rules(rules, f"spec.behavior.{side}", errors)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        status = new["status"]
        check_not_negative(status.get("currentReplicas"), "status.currentReplicas", errors)
        check_not_negative(status.get("desiredReplicas"), "status.desiredReplicas", errors)


def _default_scale_up() -> JsonObject:
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies}


def _default_scale_down() -> JsonObject:
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _with_defaults(rules: JsonObject | None, defaults: JsonObject) -> JsonObject:
    return {**defaults, **(rules or {})}


def _check_reference(
    reference: JsonObject, path: str, errors: FieldErrors, *, needs_group: bool | None = False
) -> None:
    """``needs_group`` None: the apiVersion is not looked at."""
    for field in ("kind", "name"):
        value = reference[field]
        if not value:
            errors.required(f"{path}.{field}")
        else:
            errors.all_invalid(f"{path}.{field}", value, names.is_path_segment_name(value))
    version = reference.get("apiVersion", "")
    if needs_group is None:
        return
    if version.count("/") > 1:
        errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif needs_group and not version.rpartition("/")[0]:
        errors.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _check_metric(metric: JsonObject, path: str, errors: FieldErrors) -> None:
    kind = metric["type"]
    if not kind:
        errors.required(f"{path}.type", "must specify a metric source type")
    if kind not in _SOURCES:
        errors.not_supported(f"{path}.type", kind, _METRIC_TYPES)
    present = [field for field in _SOURCES.values() if metric.get(field) is not None]
    if present:
        _METRIC_CHECKS[present[0]](metric[present[0]], f"{path}.{present[0]}", errors)
    wanted = _SOURCES.get(kind, "")
    if not wanted:
        # Upstream notices an unknown type twice.
        errors.not_supported(f"{path}.type", kind, _METRIC_TYPES)
    elif wanted not in present:
        errors.required(f"{path}.{wanted}", _POPULATE)
    if len(present) != 1:
        for field in present:
            if field != wanted:
                errors.forbidden(f"{path}.{field}", "must populate the given metric source only")


def _check_target(target: JsonObject, path: str, errors: FieldErrors) -> None:
    kind = target["type"]
    if not kind:
        errors.required(f"{path}.type", "must specify a metric target type")
    if kind not in _TARGET_TYPES:
        errors.invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and quantity.parse(value).sign() != 1:
            errors.invalid(f"{path}.{field}", value, "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.invalid(f"{path}.averageUtilization", utilization, "must be greater than 0")


def _check_identifier(metric: JsonObject, path: str, errors: FieldErrors) -> None:
    if not metric["name"]:
        errors.required(f"{path}.name", "must specify a metric name")
    else:
        errors.all_invalid(f"{path}.name", metric["name"], names.is_path_segment_name(metric["name"]))


def _check_object(source: JsonObject, path: str, errors: FieldErrors) -> None:
    _check_reference(source["describedObject"], f"{path}.describedObject", errors)
    _check_identifier(source["metric"], f"{path}.metric", errors)
    _check_target(source["target"], f"{path}.target", errors)
    if source["target"].get("value") is None and source["target"].get("averageValue") is None:
        errors.required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _check_external(source: JsonObject, path: str, errors: FieldErrors) -> None:
    _check_identifier(source["metric"], f"{path}.metric", errors)
    target = source["target"]
    _check_target(target, f"{path}.target", errors)
    value, average = target.get("value"), target.get("averageValue")
    if value is None and average is None:
        message = "must set either a target value for metric or a per-pod target"
        errors.required(f"{path}.target.averageValue", message)
    if value is not None and average is not None:
        message = "may not set both a target value for metric and a per-pod target"
        errors.forbidden(f"{path}.target.value", message)


def _check_pods(source: JsonObject, path: str, errors: FieldErrors) -> None:
    _check_identifier(source["metric"], f"{path}.metric", errors)
    _check_target(source["target"], f"{path}.target", errors)
    if source["target"].get("averageValue") is None:
        errors.required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _check_resource(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source["name"]:
        errors.required(f"{path}.name", "must specify a resource name")
    _check_resource_target(source["target"], path, errors)


def _check_container_resource(source: JsonObject, path: str, errors: FieldErrors) -> None:
    if not source["name"]:
        errors.required(f"{path}.name", "must specify a resource name")
    else:
        check_container_resource_name(source["name"], f"{path}.name", errors)
    container = source["container"]
    if not container:
        errors.required(f"{path}.container", "must specify a container")
    else:
        errors.all_invalid(f"{path}.container", container, names.is_dns1123_label(container))
    _check_resource_target(source["target"], path, errors)


def _check_resource_target(target: JsonObject, path: str, errors: FieldErrors) -> None:
    _check_target(target, f"{path}.target", errors)
    utilization, average = target.get("averageUtilization"), target.get("averageValue")
    if utilization is None and average is None:
        message = "must set either a target raw value or a target utilization"
        errors.required(f"{path}.target.averageUtilization", message)
    if utilization is not None and average is not None:
        message = "may not set both a target raw value and a target utilization"
        errors.forbidden(f"{path}.target.averageValue", message)


_METRIC_CHECKS: Final[Mapping[str, Callable[[JsonObject, str, FieldErrors], None]]] = {
    "object": _check_object,
    "external": _check_external,
    "pods": _check_pods,
    "resource": _check_resource,
    "containerResource": _check_container_resource,
}


def _check_rules(rules: JsonObject, path: str, errors: FieldErrors) -> None:
    window_s = rules.get("stabilizationWindowSeconds")
    if window_s is not None and window_s < 0:
        errors.invalid(f"{path}.stabilizationWindowSeconds", window_s, "must be greater than or equal to zero")
    if window_s is not None and window_s > _WINDOW_MAX_S:
        message = f"must be less than or equal to {_WINDOW_MAX_S}"
        errors.invalid(f"{path}.stabilizationWindowSeconds", window_s, message)
    select: Any = rules.get("selectPolicy")
    if select is not None and select not in _SELECT_POLICIES:
        errors.not_supported(f"{path}.selectPolicy", select, _SELECT_POLICIES)
    policies = rules.get("policies") or []
    if not policies:
        errors.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        at = f"{path}.policies[{index}]"
        if policy["type"] not in _POLICY_TYPES:
            errors.not_supported(f"{at}.type", policy["type"], _POLICY_TYPES)
        if policy["value"] <= 0:
            errors.invalid(f"{at}.value", policy["value"], "must be greater than zero")
        period_s = policy["periodSeconds"]
        if period_s <= 0:
            errors.invalid(f"{at}.periodSeconds", period_s, "must be greater than zero")
        if period_s > _PERIOD_MAX_S:
            errors.invalid(f"{at}.periodSeconds", period_s, f"must be less than or equal to {_PERIOD_MAX_S}")
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.parse(tolerance).sign() < 0:
        errors.invalid(f"{path}.tolerance", tolerance, "must be greater than or equal to 0")


