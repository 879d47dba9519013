"""HorizontalPodAutoscalers, disruption budgets, and the scale subresource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.conversions.horizontal_pod_autoscaler import v1_to_v2
from holokube.apiserver.tables.cells import name_of, spec_of, status_of
from holokube.apiserver.tables.layout import AGE, NAME, NONE, UNKNOWN, UNSET, Ages, Layout, column
from holokube.kube.types import JsonObject

_METRICS_SHOWN = 2
# Metric type -> the field of spec and status that holds it, and whether its resource is named in the cell.
_METRIC_FIELDS = {
    "External": ("external", False),
    "Pods": ("pods", False),
    "Object": ("object", False),
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
}


def autoscaler_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    if obj.get("apiVersion") == "autoscaling/v1":
        obj = _from_v1(obj)
    spec, status = spec_of(obj), status_of(obj)
    target: JsonObject = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind') or ''}/{target.get('name') or ''}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        UNSET if least is None else str(least),
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
        ages.of(obj),
    ]


def _from_v1(obj: JsonObject) -> JsonObject:
    """Version 1 holds the CPU metric apart: its place is where it was measured, or else the first."""
    converted = v1_to_v2(obj)
    metrics: list[JsonObject] = spec_of(converted).get("metrics") or []
    if len(metrics) < 2 or "targetCPUUtilizationPercentage" not in spec_of(obj):
        return converted
    measured: list[JsonObject] = status_of(converted).get("currentMetrics") or []
    is_cpu = [(metric.get("resource") or {}).get("name") == "cpu" for metric in measured]
    place = is_cpu.index(True) if True in is_cpu else 0
    ordered = [*metrics[:place], metrics[-1], *metrics[place:-1]]
    return {**converted, "spec": {**converted["spec"], "metrics": ordered}}


def _metrics(wanted: list[JsonObject], measured: list[JsonObject]) -> str:
    if not wanted:
        return NONE
    shown = [
        _metric(metric, measured[index] if index < len(measured) else {})
        for index, metric in enumerate(wanted[:_METRICS_SHOWN])
    ]
    text = ", ".join(shown)
    return f"{text} + {len(wanted) - _METRICS_SHOWN} more..." if len(wanted) > _METRICS_SHOWN else text


def _metric(metric: JsonObject, measured: JsonObject) -> str:
    field, of_resource = _METRIC_FIELDS.get(metric.get("type") or "", ("", False))
    if not field:
        return "<unknown type>"
    source: JsonObject = metric.get(field) or {}
    target: JsonObject = source.get("target") or {}
    seen = measured.get(field)
    current: JsonObject = (seen or {}).get("current") or {}
    if of_resource:
        return f"{source.get('name') or ''}: {_resource_metric(target, seen, current)}"
    average = target.get("averageValue")
    if field == "pods":
        return f"{_value(seen, current, 'averageValue')}/{average or '0'}"
    if average is not None:
        return f"{current.get('averageValue') or UNKNOWN}/{average} (avg)"
    return f"{_value(seen, current, 'value')}/{target.get('value') or '0'}"


def _resource_metric(target: JsonObject, seen: Any, current: JsonObject) -> str:
    if target.get("averageValue") is not None:
        return f"{_value(seen, current, 'averageValue')}/{target['averageValue']}"
    utilization, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    shown = UNKNOWN if utilization is None else f"{utilization}%"
    return f"{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _value(seen: Any, current: JsonObject, field: str) -> str:
    """A measured quantity; unknown only if the whole metric was not measured."""
    return UNKNOWN if seen is None else current.get(field) or "0"


def budget_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        name_of(obj),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        status_of(obj).get("disruptionsAllowed") or 0,
        ages.of(obj),
    ]


def scale_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    replicas, available = spec_of(obj).get("replicas") or 0, status_of(obj).get("replicas") or 0
    return [name_of(obj), replicas, available, ages.of(obj)]


SCALE = Layout(
    (
        column("Name", "Name of the object that is scaled."),
        column("Desired", "Pods wanted.", type="integer"),
        column("Available", "Pods there are.", type="integer"),
        AGE,
    ),
    scale_cells,
)

LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("autoscaling", "horizontalpodautoscalers"): Layout(
        (
            NAME,
            column("Reference", "Object that is scaled."),
            column("Targets", "Measured and wanted value of each metric."),
            column("MinPods", "Fewest pods."),
            column("MaxPods", "Most pods."),
            column("Replicas", "Pods there are."),
            AGE,
        ),
        autoscaler_cells,
    ),
    ("policy", "poddisruptionbudgets"): Layout(
        (
            NAME,
            column("Min Available", "How many pods must stay available."),
            column("Max Unavailable", "How many pods may be unavailable."),
            column("Allowed Disruptions", "How many pods may be evicted now.", type="integer"),
            AGE,
        ),
        budget_cells,
    ),
}
