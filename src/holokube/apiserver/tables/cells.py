"""Cells that several tables share: labels, selectors, containers, lists cut short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holokube.apiserver.tables.layout import NONE, UNSET
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject

SHOWN_AT_MOST = 3


def name_of(obj: JsonObject) -> str:
    return (obj.get("metadata") or {}).get("name") or ""


def annotations_of(obj: JsonObject) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def spec_of(obj: JsonObject) -> JsonObject:
    return obj.get("spec") or {}


def status_of(obj: JsonObject) -> JsonObject:
    return obj.get("status") or {}


def is_deleting(obj: JsonObject) -> bool:
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def labels_text(labels: Mapping[str, str] | None) -> str:
    """``a=b,c=d`` in the order of keys."""
    return ",".join([f"{key}={value}" for key, value in sorted((labels or {}).items())]) or NONE


def selector_text(selector: Mapping[str, Any] | None, *, empty: str = NONE, wrong: str = "<error>") -> str:
    """A label selector in the form that ``kubectl -l`` takes."""
    if selector is None:
        return empty
    try:
        return str(LabelSelector.from_json(selector)) or empty
    except ValueError:
        return wrong


def container_cells(pod_spec: JsonObject | None) -> tuple[str, str]:
    """Names and images of the containers."""
    containers: Sequence[JsonObject] = (pod_spec or {}).get("containers") or ()
    names = ",".join([container.get("name") or "" for container in containers])
    return names, ",".join([container.get("image") or "" for container in containers])


def template_cells(owner_spec: JsonObject) -> tuple[str, str]:
    """Names and images of the containers in ``spec.template``."""
    return container_cells((owner_spec.get("template") or {}).get("spec"))


def cut_short(items: Sequence[str], *, empty: str = UNSET) -> str:
    """The first three, and how many more there are."""
    text = ",".join(items[:SHOWN_AT_MOST])
    if len(items) > SHOWN_AT_MOST:
        return f"{text} + {len(items) - SHOWN_AT_MOST} more..."
    return text or empty


def condition_status(conditions: Iterable[JsonObject] | None, wanted: str) -> str:
    """Status of the condition of a type; empty if there is none."""
    for condition in conditions or ():
        if condition.get("type") == wanted:
            return condition.get("status") or ""
    return ""
