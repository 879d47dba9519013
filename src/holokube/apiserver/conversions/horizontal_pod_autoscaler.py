"""HorizontalPodAutoscaler: stored as autoscaling/v2, also served as v1.

What v1 cannot express travels in annotations, as upstream does, so that a round trip through v1 loses nothing. The
annotations hold the metrics of an older API with flat names (``targetAverageValue``), and the behaviour with the field
names of Go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from holokube.kube.types import JsonObject

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS = f"{_PREFIX}metrics"
_CURRENT_METRICS = f"{_PREFIX}current-metrics"
_CONDITIONS = f"{_PREFIX}conditions"
_BEHAVIOR = f"{_PREFIX}behavior"
_CARRIED = (_METRICS, _BEHAVIOR, _CURRENT_METRICS, _CONDITIONS)

_SOURCES = ("object", "pods", "resource", "containerResource", "external")
_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message")
_DEFAULT_UTILIZATION = 80


def v2_to_v1(obj: JsonObject) -> JsonObject:
    spec: JsonObject = dict(obj.get("spec") or {})
    status: JsonObject = dict(obj.get("status") or {})
    carried: dict[str, Any] = {}
    others = []
    for metric in spec.pop("metrics", None) or []:
        utilization = _cpu_utilization(metric, "target")
        if utilization is None:
            others.append(_flat(metric, "target"))
        else:
            spec.setdefault("targetCPUUtilizationPercentage", utilization)
    if others:
        carried[_METRICS] = others
    current = status.pop("currentMetrics", None) or []
    for metric in current:
        utilization = _cpu_utilization(metric, "current")
        if utilization is not None:
            status["currentCPUUtilizationPercentage"] = utilization
    if current:
        carried[_CURRENT_METRICS] = [_flat(metric, "current") for metric in current]
    behavior = spec.pop("behavior", None)
    if behavior:
        carried[_BEHAVIOR] = {side: _go_rules(behavior.get(_lower(side))) for side in ("ScaleUp", "ScaleDown")}
    conditions = status.pop("conditions", None)
    if conditions:
        carried[_CONDITIONS] = [_ordered(condition, _CONDITION_FIELDS) for condition in conditions]
    meta = obj["metadata"]
    if carried:
        texts = {key: orjson.dumps(value).decode() for key, value in carried.items()}
        meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **texts}}
    out = {**obj, "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec}
    if "status" in obj:
        # The two counts are not optional in v1.
        status.setdefault("currentReplicas", 0)
        status.setdefault("desiredReplicas", 0)
        out["status"] = status
    return out


def v1_to_v2(obj: JsonObject) -> JsonObject:
    meta: JsonObject = dict(obj.get("metadata") or {})
    annotations: JsonObject = dict(meta.get("annotations") or {})
    carried = {key: _decoded(annotations.pop(key, None)) for key in _CARRIED}
    if annotations:
        meta["annotations"] = annotations
    else:
        meta.pop("annotations", None)
    spec: JsonObject = dict(obj.get("spec") or {})
    metrics = _read_list(carried[_METRICS], lambda metric: _nested(metric, "target")) or []
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is None and not metrics:
        target = _DEFAULT_UTILIZATION
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": wanted}})
    spec["metrics"] = metrics
    behavior = _read_behavior(carried[_BEHAVIOR])
    if behavior:
        spec["behavior"] = behavior
    out = {**obj, "apiVersion": "autoscaling/v2", "metadata": meta, "spec": spec}
    if "status" in obj or carried[_CURRENT_METRICS] is not None or carried[_CONDITIONS] is not None:
        out["status"] = _status_to_v2(dict(obj.get("status") or {}), carried)
    return out


def _status_to_v2(status: JsonObject, carried: Mapping[str, Any]) -> JsonObject:
    utilization = status.pop("currentCPUUtilizationPercentage", None)
    if utilization is not None:
        resource = {"name": "cpu", "current": {"averageUtilization": utilization}}
        status["currentMetrics"] = [{"type": "Resource", "resource": resource}]
    current = _read_list(carried[_CURRENT_METRICS], lambda metric: _nested(metric, "current"))
    if current is not None:
        # The annotation says more than the one number that v1 has a field for.
        status["currentMetrics"] = current
    conditions = _read_list(carried[_CONDITIONS], dict)
    if conditions is not None:
        status["conditions"] = conditions
    return status


def _cpu_utilization(metric: JsonObject, side: str) -> int | None:
    if metric.get("type") != "Resource":
        return None
    resource = metric.get("resource") or {}
    if resource.get("name") != "cpu":
        return None
    value = (resource.get(side) or {}).get("averageUtilization")
    return value if isinstance(value, int) else None


# -- metrics ---------------------------------------------------------------------------------------------------------


def _flat(metric: JsonObject, side: str) -> JsonObject:
    """A v2 metric in the flat form; ``side`` is ``target`` for a spec and ``current`` for a status."""
    out: JsonObject = {"type": metric.get("type", "")}
    for key in _SOURCES:
        source = metric.get(key)
        if source is not None:
            out[key] = _FLATTEN[key](source, source.get(side) or {}, side)
    return out


def _named(name: str, side: str) -> str:
    """``averageValue`` as the flat form calls it: ``targetAverageValue`` or ``currentAverageValue``."""
    return f"{side}{name[:1].upper()}{name[1:]}"


def _flat_resource(source: JsonObject, amount: JsonObject, side: str) -> JsonObject:
    out: JsonObject = {"name": source.get("name", "")}
    if "averageUtilization" in amount:
        out[_named("averageUtilization", side)] = amount["averageUtilization"]
    if "averageValue" in amount or side == "current":
        out[_named("averageValue", side)] = amount.get("averageValue", "0")
    if "container" in source:
        out["container"] = source["container"]
    return out


def _flat_pods(source: JsonObject, amount: JsonObject, side: str) -> JsonObject:
    out = {"metricName": source["metric"]["name"], _named("averageValue", side): amount.get("averageValue", "0")}
    return _with_selector(out, source, "selector")


def _flat_object(source: JsonObject, amount: JsonObject, side: str) -> JsonObject:
    out: JsonObject = {
        "target": _ordered(source["describedObject"], ("kind", "name", "apiVersion")),
        "metricName": source["metric"]["name"],
        _named("value", side): amount.get("value", "0"),
    }
    _with_selector(out, source, "selector")
    if "averageValue" in amount:
        out["averageValue"] = amount["averageValue"]
    return out


def _flat_external(source: JsonObject, amount: JsonObject, side: str) -> JsonObject:
    out = _with_selector({"metricName": source["metric"]["name"]}, source, "metricSelector")
    if "value" in amount or side == "current":
        out[_named("value", side)] = amount.get("value", "0")
    if "averageValue" in amount:
        out[_named("averageValue", side)] = amount["averageValue"]
    return out


def _with_selector(out: JsonObject, source: JsonObject, key: str) -> JsonObject:
    selector = source["metric"].get("selector")
    if selector is not None:
        out[key] = _ordered(selector, ("matchLabels", "matchExpressions"))
    return out


def _ordered(part: JsonObject, fields: tuple[str, ...]) -> JsonObject:
    """With the fields in the order of Go's struct, because texts are compared as they are."""
    return {field: part[field] for field in fields if field in part}


_FLATTEN: Mapping[str, Callable[[JsonObject, JsonObject, str], JsonObject]] = {
    "resource": _flat_resource,
    "containerResource": _flat_resource,
    "pods": _flat_pods,
    "object": _flat_object,
    "external": _flat_external,
}


def _nested(metric: JsonObject, side: str) -> JsonObject:
    """The opposite of ``_flat``."""
    out: JsonObject = {"type": str(metric.get("type", ""))}
    for key in _SOURCES:
        source = metric.get(key)
        if source is not None:
            out[key] = _nest_source(key, dict(source), side)
    return out


def _nest_source(key: str, source: JsonObject, side: str) -> JsonObject:
    amount: JsonObject = {}
    for name in ("averageUtilization", "value", "averageValue"):
        flat = "averageValue" if key == "object" and name == "averageValue" else _named(name, side)
        if source.get(flat) is not None:
            amount[name] = source[flat]
    if side == "target":
        amount = {"type": _target_type(key, amount), **amount}
        if key == "object" and amount["type"] == "AverageValue" and amount.get("value") == "0":
            del amount["value"]
    if key in ("resource", "containerResource"):
        out: JsonObject = {"name": source.get("name", ""), side: amount}
        if key == "containerResource":
            out["container"] = source.get("container", "")
        return out
    identifier: JsonObject = {"name": source.get("metricName", "")}
    selector = source.get("metricSelector" if key == "external" else "selector")
    if selector is not None:
        identifier["selector"] = selector
    out = {"metric": identifier, side: amount}
    if key == "object":
        out["describedObject"] = dict(source.get("target") or {})
    return out


def _target_type(key: str, amount: JsonObject) -> str:
    if key in ("resource", "containerResource"):
        return "Utilization" if "averageUtilization" in amount else "AverageValue"
    if key == "pods":
        return "AverageValue"
    if key == "object":
        return "AverageValue" if "averageValue" in amount else "Value"
    return "Value" if "value" in amount else "AverageValue"


# -- behaviour -------------------------------------------------------------------------------------------------------

_RULE_FIELDS = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_POLICY_FIELDS = ("type", "value", "periodSeconds")


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def _go_rules(rules: JsonObject | None) -> JsonObject | None:
    if rules is None:
        return None
    out = {_upper(field): rules.get(field) for field in _RULE_FIELDS}
    policies = rules.get("policies") or []
    out["Policies"] = [{_upper(field): policy.get(field) for field in _POLICY_FIELDS} for policy in policies]
    return out


def _read_behavior(value: Any) -> JsonObject | None:
    """Field names are compared without regard to case, as Go's decoder does."""
    try:
        sides = {key.lower(): part for key, part in value.items() if part is not None}
        return {side: _read_rules(sides[side.lower()]) for side in ("scaleUp", "scaleDown") if side.lower() in sides}
    except (AttributeError, TypeError):
        return None


def _read_rules(rules: JsonObject) -> JsonObject:
    given = {key.lower(): part for key, part in rules.items() if part is not None}
    out = {field: given[field.lower()] for field in _RULE_FIELDS if field.lower() in given}
    if "policies" in out:
        out["policies"] = [
            {field: {key.lower(): part for key, part in policy.items()}.get(field.lower()) for field in _POLICY_FIELDS}
            for policy in out["policies"]
        ]
    return out


def _read_list(value: Any, read: Callable[[Any], JsonObject]) -> list[JsonObject] | None:
    """A list from an annotation; None if it is not what was once written there."""
    if not isinstance(value, list):
        return None
    try:
        return [read(item) for item in value]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _decoded(text: Any) -> Any:
    """What an annotation carries; a user's own text that is no JSON is dropped, as upstream does."""
    if not isinstance(text, str):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
