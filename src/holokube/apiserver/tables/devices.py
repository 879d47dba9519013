"""Dynamic resource allocation: device classes, claims, templates, slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.tables.access import name_and_age
from holokube.apiserver.tables.cells import is_deleting, name_of, spec_of, status_of
from holokube.apiserver.tables.layout import AGE, NAME, Ages, Layout, column
from holokube.kube.types import JsonObject


def claim_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    status = status_of(obj)
    deleting = is_deleting(obj)
    states = ["deleted"] if deleting else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not deleting:
        states.append("pending")
    return [name_of(obj), ",".join(states), ages.of(obj)]


def slice_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    pool = (spec.get("pool") or {}).get("name") or ""
    return [name_of(obj), spec.get("nodeName") or "", spec.get("driver") or "", pool, ages.of(obj)]


LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("resource.k8s.io", "deviceclasses"): Layout((NAME, AGE), name_and_age),
    ("resource.k8s.io", "resourceclaimtemplates"): Layout((NAME, AGE), name_and_age),
    ("resource.k8s.io", "resourceclaims"): Layout(
        (NAME, column("State", "Pending, allocated, reserved, deleted."), AGE), claim_cells
    ),
    ("resource.k8s.io", "resourceslices"): Layout(
        (
            NAME,
            column("Node", "Node that has the devices."),
            column("Driver", "Driver that offers the devices."),
            column("Pool", "Pool the devices belong to."),
            AGE,
        ),
        slice_cells,
    ),
}
