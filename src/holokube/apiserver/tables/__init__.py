"""Tables: what ``kubectl get`` prints. One module per family of resources; the server computes every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holokube.apiserver.partial_metadata import partial_metadata
from holokube.apiserver.resources import Served
from holokube.apiserver.tables import (
    access,
    autoscaling,
    cluster,
    devices,
    measured,
    network,
    nodes,
    pods,
    storage,
    workloads,
)
from holokube.apiserver.tables.cells import name_of
from holokube.apiserver.tables.custom import custom_layout
from holokube.apiserver.tables.layout import CREATED_AT, NAME, Ages, Layout
from holokube.kube.types import JsonObject

_FAMILIES = (pods, nodes, workloads, network, storage, autoscaling, access, cluster, devices, measured)
LAYOUTS: Mapping[tuple[str, str], Layout] = {
    key: layout for family in _FAMILIES for key, layout in family.LAYOUTS.items()
}
_NO_TIME = "0001-01-01T00:00:00Z"


def _plain_cells(obj: JsonObject, _ages: Ages) -> list[Any]:
    return [name_of(obj), (obj.get("metadata") or {}).get("creationTimestamp") or _NO_TIME]


PLAIN = Layout((NAME, CREATED_AT), _plain_cells)


def layout_of(served: Served) -> Layout:
    """The layout of a resource; name and creation time for those without one of their own."""
    if served.type.custom:
        return custom_layout(served.info.printer_columns)
    return LAYOUTS.get((served.group, served.plural), PLAIN)


def table(
    served: Served, objects: Sequence[JsonObject], now: datetime, include_object: str, *, single: bool = False
) -> JsonObject:
    """Objects as a meta.k8s.io/v1 Table; ``include_object`` is empty, Metadata, Object or None."""
    layout = layout_of(served)
    if single and len(objects) == 1:
        layout = _of_answer(objects[0], served, layout)
    if layout.order is not None:
        objects = sorted(objects, key=layout.order)
    ages = Ages(now)
    cells, conditions = layout.cells, layout.conditions
    rows: list[JsonObject] = []
    for obj in objects:
        row: JsonObject = {"cells": cells(obj, ages)}
        if conditions is not None:
            found = conditions(obj)
            if found is not None:
                row["conditions"] = found
        row["object"] = _row_object(obj, include_object)
        rows.append(row)
    metadata: JsonObject = {}
    if single and objects:
        metadata["resourceVersion"] = (objects[0].get("metadata") or {}).get("resourceVersion") or ""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": list(layout.columns),
        "rows": rows,
    }


def _of_answer(obj: JsonObject, served: Served, layout: Layout) -> Layout:
    """A subresource may answer with another kind than its resource has."""
    kind = obj.get("kind")
    if kind == served.kind or kind is None:
        return layout
    if kind == "Scale":
        return autoscaling.SCALE
    if kind == "Status" and obj.get("apiVersion") == "v1":
        return cluster.STATUS
    return PLAIN


def _row_object(obj: JsonObject, include_object: str) -> JsonObject | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return obj
    return partial_metadata(obj) if "metadata" in obj else obj


__all__ = ["LAYOUTS", "PLAIN", "layout_of", "table"]
