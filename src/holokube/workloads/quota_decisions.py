"""What of a ResourceQuota is used, counted from the objects themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from holokube.apiserver.admission.quota_usage import evaluator_for
from holokube.kube.quantity import Quantity
from holokube.kube.types import JsonObject

GroupResource = tuple[str, str]

_TYPED: Final[tuple[GroupResource, ...]] = (
    ("", "pods"), ("", "services"), ("", "persistentvolumeclaims"), ("resource.k8s.io", "resourceclaims"),
    ("", "configmaps"), ("", "resourcequotas"), ("", "replicationcontrollers"), ("", "secrets"),
)  # fmt: skip


def counted_resources(quota: Mapping[str, Any]) -> list[GroupResource]:
    """The resources that have to be counted: by what the quota limits, also as ``count/<plural>.<group>``."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    found = {resource: None for resource in _TYPED if any(evaluator_for(resource).tracks(name) for name in hard)}
    for name in hard:
        if name.startswith("count/"):
            plural, _, group = name.removeprefix("count/").partition(".")
            found[group, plural] = None
    return list(found)


def status_of(
    quota: JsonObject, objects: Mapping[GroupResource, Iterable[JsonObject]], now: datetime
) -> JsonObject:
    """The status: the limits that hold from now on, and what is used of them.

    A limit on something that could not be counted keeps the amount it had, and stays unknown without one.
    """
    hard: Mapping[str, Any] = (quota.get("spec") or {}).get("hard") or {}
    known = (quota.get("status") or {}).get("used") or {}
    # Evaluators read the limits that hold, which are those of the status.
    view = {**quota, "status": {"hard": hard}}
    used: dict[str, Quantity] = {}
    for resource, listed in objects.items():
        evaluator = evaluator_for(resource)
        tracked = [name for name in hard if evaluator.tracks(name)]
        used.update({name: used.get(name, Quantity(0)) for name in tracked})
        for obj in listed:
            if evaluator.matches(view, obj):
                for name, amount in evaluator.usage(obj, now).items():
                    if name in used:
                        used[name] = used[name] + amount
    amounts = {name: str(used[name]) if name in used else known[name] for name in hard if name in used or name in known}
    status: JsonObject = {"hard": dict(hard), "used": amounts}
    return status


def is_settled(quota: Mapping[str, Any]) -> bool:
    """Whether the limits of the status are those of the spec, and each has an amount."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    status = quota.get("status") or {}
    return status.get("hard") == hard and set(hard) == set(status.get("used") or {})


