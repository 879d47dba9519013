"""LimitRanges and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.checks import (
    IMMUTABLE,
    check_container_resource_name,
    check_quantity,
    check_resource_name,
    round_to_milli,
)
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.quantity import Quantity, parse
from holokube.kube.resources import is_native_resource
from holokube.kube.types import JsonObject

_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_AMOUNTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_POD_ONLY: Final = "may not be specified when `type` is 'Pod'"
_QUOTA_RESOURCES: Final = frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage",
    "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas",
    "services", "replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps", "services.nodeports",
    "services.loadbalancers",
})  # fmt: skip
_COMPUTE: Final = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
# Which standard resources a scope can count.
_SCOPES: Final[Mapping[str, frozenset[str]]] = {
    "Terminating": _COMPUTE | {"pods"},
    "NotTerminating": _COMPUTE | {"pods"},
    "NotBestEffort": _COMPUTE | {"pods"},
    "PriorityClass": _COMPUTE | {"pods"},
    "CrossNamespacePodAffinity": _COMPUTE | {"pods"},
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_EXISTS_ONLY: Final = frozenset(_SCOPES) - {"PriorityClass", "VolumeAttributesClass"}
_CONFLICTS: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_WARNED: Final = ("cpu", "memory", "ephemeral-storage")


class LimitRange(GoKind):
    go_type = "core.v1.LimitRange"
    allow_create_on_update = True

    def set_defaults(self, obj: JsonObject) -> None:
        for limit in obj["spec"]["limits"] or ():
            for field in _AMOUNTS:
                round_to_milli(limit.get(field))
            if limit["type"] != "Container":
                continue
            defaults = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            requests = {**(limit.get("min") or {}), **defaults, **(limit.get("defaultRequest") or {})}
            if defaults:
                limit["default"] = defaults
            if requests:
                limit["defaultRequest"] = requests

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        if not new["metadata"].get("name"):
            new["metadata"]["name"] = context.rng.uid()

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        seen: set[str] = set()
        for index, limit in enumerate(new["spec"]["limits"] or ()):
            path = f"spec.limits[{index}]"
            kind = limit["type"]
            problems = names.is_qualified_name(kind)
            errors.all_invalid(f"{path}.type", kind, problems)
            if not problems and "/" not in kind and kind not in _LIMIT_TYPES:
                errors.invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")
            if kind in seen:
                errors.duplicate(f"{path}.type", kind)
            seen.add(kind)
            _check_limit(limit, path, errors)


def _check_limit(limit: JsonObject, path: str, errors: FieldErrors) -> None:
    kind = limit["type"]
    check = check_container_resource_name if kind in ("Pod", "Container") else check_resource_name
    amounts: dict[str, dict[str, Quantity]] = {}
    for field in _AMOUNTS:
        given = limit.get(field) or {}
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if given:
                errors.forbidden(f"{path}.{field}", _POD_ONLY)
            continue
        for name, text in given.items():
            check(name, f"{path}.{field}[{name}]", errors)
            amounts.setdefault(name, {})[field] = parse(text)
    if kind == "PersistentVolumeClaim" and not any("storage" in (limit.get(f) or {}) for f in ("min", "max")):
        message = "either minimum or maximum storage value is required, but neither was provided"
        errors.required(f"{path}.limits", message)
    for name, found in amounts.items():
        _check_amounts(name, found, path, errors)


def _check_amounts(name: str, found: Mapping[str, Quantity], path: str, errors: FieldErrors) -> None:
    low, high = found.get("min"), found.get("max")
    default, request, ratio = found.get("default"), found.get("defaultRequest"), found.get("maxLimitRequestRatio")
    for smaller, larger, field, shown, words in (
        (low, high, "min", low, ("min", "max")),
        (low, request, "defaultRequest", request, ("min", "default request")),
        (request, high, "defaultRequest", request, ("default request", "max")),
        (request, default, "defaultRequest", request, ("default request", "default limit")),
        (low, default, "default", low, ("min", "default")),
        (default, high, "default", high, ("default", "max")),
    ):
        if smaller is not None and larger is not None and smaller > larger:
            message = f"{words[0]} value {smaller} is greater than {words[1]} value {larger}"
            errors.invalid(f"{path}.{field}[{name}]", str(shown), message)
    if ratio is not None:
        at = f"{path}.maxLimitRequestRatio[{name}]"
        if ratio.milli() < 1000:
            errors.invalid(at, str(ratio), f"ratio {ratio} is less than 1")
        if low is not None and high is not None and low.milli() > 0:
            limit = high.milli() / low.milli()
            if ratio.milli() / 1000 > limit:
                errors.invalid(at, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}")
    overcommits = is_native_resource(name) and not name.startswith("hugepages-")
    if not overcommits and default is not None and request is not None and default != request:
        message = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.invalid(f"{path}.defaultRequest[{name}]", str(request), message)


class ResourceQuota(GoKind):
    go_type = "core.v1.ResourceQuota"
    returns_deleted_object = True

    def set_defaults(self, obj: JsonObject) -> None:
        round_to_milli(obj["spec"].get("hard"))
        round_to_milli(obj["status"].get("hard"))
        round_to_milli(obj["status"].get("used"))

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        hard: JsonObject = spec.get("hard") or {}
        _check_resources(hard, "spec.hard", errors)
        standard = sorted(name for name in hard if _is_standard(name))
        self._check_scopes(spec.get("scopes") or [], standard, errors)
        if spec.get("scopeSelector") is not None:
            _check_selector(spec["scopeSelector"], spec.get("scopes"), standard, errors)

    def _check_scopes(self, scopes: list[str], standard: list[str], errors: FieldErrors) -> None:
        for scope in scopes:
            if scope not in _SCOPES:
                errors.invalid("spec.scopes", scopes, "unsupported scope")
                continue
            for name in standard:
                if name not in _SCOPES[scope]:
                    errors.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
        for pair in _CONFLICTS:
            if pair <= set(scopes):
                errors.invalid("spec.scopes", scopes, "conflicting scopes")

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.validate(new, errors)
        after, before = new["spec"].get("scopes"), old["spec"].get("scopes")
        if set(after or ()) != set(before or ()):
            errors.invalid("spec.scopes", after, IMMUTABLE)

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        for field in ("hard", "used"):
            _check_resources(new["status"].get(field) or {}, f"status.{field}", errors)

    def warnings(self, new: JsonObject, old: JsonObject | None) -> list[str]:
        if old is not None:
            return []
        hard: JsonObject = new["spec"].get("hard") or {}
        found = []
        for name in _WARNED:
            request = f"requests.{name}"
            if request not in hard and name in ("cpu", "memory"):
                request = name
            limit = f"limits.{name}"
            if request in hard and limit in hard and parse(hard[request]) > parse(hard[limit]):
                text = f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})"
                found.append(text)
        return found


def _is_standard(name: str) -> bool:
    return name in _QUOTA_RESOURCES or name.startswith(("hugepages-", "requests.hugepages-"))


def _check_resources(resources: Mapping[str, str], path: str, errors: FieldErrors) -> None:
    for name, value in resources.items():
        check_resource_name(name, f"{path}[{name}]", errors)
        if "/" not in name and not _is_standard(name):
            errors.invalid(f"{path}[{name}]", name, "must be a standard resource for quota")
        check_quantity(name, value, f"{path}[{name}]", errors)


def _check_selector(selector: JsonObject, scopes: Any, standard: list[str], errors: FieldErrors) -> None:
    path = "spec.scopeSelector.matchExpressions"
    named: set[str] = set()
    expressions = selector.get("matchExpressions") or []
    shown = {
        "MatchExpressions": [
            {"ScopeName": e["scopeName"], "Operator": e["operator"], "Values": e.get("values")} for e in expressions
        ]
        or None
    }
    for expression in expressions:
        scope, operator, values = expression["scopeName"], expression["operator"], expression.get("values") or []
        if scope not in _SCOPES:
            errors.invalid(f"{path}.scopeName", scope, "unsupported scope")
        for name in standard:
            if name not in _SCOPES.get(scope, standard):
                errors.invalid(path, shown, "unsupported scope applied to resource")
        if scope in _EXISTS_ONLY and operator != "Exists":
            errors.invalid(
                f"{path}.operator", operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity",
            )  # fmt: skip
        if operator in ("In", "NotIn"):
            if not values:
                message = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.required(f"{path}.values", message)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                message = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.invalid(f"{path}.values", values, message)
        else:
            errors.invalid(f"{path}.operator", operator, "not a valid selector operator")
        named.add(scope)
    for pair in _CONFLICTS:
        if pair <= named:
            errors.invalid(path, scopes, "conflicting scopes")
