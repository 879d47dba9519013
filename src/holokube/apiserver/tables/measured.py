"""NodeMetrics and PodMetrics, as metrics-server prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.tables.cells import name_of
from holokube.apiserver.tables.layout import NAME, Ages, Layout, column
from holokube.kube.quantity import ZERO, parse
from holokube.kube.types import JsonObject


def _cells(obj: JsonObject, _ages: Ages) -> list[Any]:
    containers = obj.get("containers")
    usages = [obj.get("usage") or {}] if containers is None else [c.get("usage") or {} for c in containers]
    totals = [
        str(sum((parse(usage[what]) for usage in usages if what in usage), ZERO)) for what in ("cpu", "memory")
    ]
    return [name_of(obj), *totals, obj.get("window") or ""]


_LAYOUT = Layout(
    (
        NAME,
        column("cpu", "", format="quantity"),
        column("memory", "", format="quantity"),
        column("Window", "", format="duration"),
    ),
    _cells,
)

LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("metrics.k8s.io", "nodes"): _LAYOUT,
    ("metrics.k8s.io", "pods"): _LAYOUT,
}
