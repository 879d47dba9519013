"""The selector by which default spread constraints count pods: that of the pod's services and its owner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from holokube.kube.selectors import LabelSelector, SelectorError
from holokube.kube.types import JsonObject
from holokube.packing.nodes import labels_of


def spread_selector(
    pod: Mapping[str, Any], services: Iterable[JsonObject], owner: JsonObject | None
) -> LabelSelector | None:
    """What selects a pod, from the services of its namespace and the object that controls it.

    ``owner`` is the ReplicaSet, StatefulSet or ReplicationController named by the controlling owner reference,
    if it exists; other kinds do not count. None if nothing selects the pod.
    """
    labels = labels_of(pod)
    merged: dict[str, str] = {}
    for service in services:
        selector = (service.get("spec") or {}).get("selector")
        # A service without a selector selects nothing; one with an empty selector selects everything.
        if selector is not None and all(labels.get(key) == value for key, value in selector.items()):
            merged.update(selector)
    selectors = [LabelSelector.from_labels(merged)]
    if owner is not None:
        kind, chosen = owner.get("kind"), (owner.get("spec") or {}).get("selector")
        if kind == "ReplicationController":
            selectors = [LabelSelector.from_labels({**merged, **(chosen or {})})]
        elif kind in ("ReplicaSet", "StatefulSet"):
            with contextlib.suppress(SelectorError):
                selectors.append(LabelSelector.from_json(chosen))
    requirements = [requirement for selector in selectors for requirement in selector.requirements]
    return LabelSelector(requirements) if requirements else None
