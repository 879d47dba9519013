"""How many evictions a disruption budget allows, where nobody has counted yet: budgets that were only written down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holokube.kube.conditions import is_true
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject


def with_status(pdb: JsonObject, pods: Iterable[JsonObject]) -> JsonObject:
    """The budget as it is, if its status is known; else with one counted from the pods."""
    if (pdb.get("status") or {}).get("disruptionsAllowed") is not None:
        return pdb
    spec, namespace = pdb.get("spec") or {}, pdb["metadata"].get("namespace")
    selector = LabelSelector.from_json(spec.get("selector"))
    mine = [
        pod for pod in pods
        if pod["metadata"].get("namespace") == namespace and selector.matches(pod["metadata"].get("labels"))
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]  # fmt: skip
    healthy = sum(is_true(pod, "Ready") for pod in mine)
    if spec.get("maxUnavailable") is not None:
        wanted = len(mine) - _share(spec["maxUnavailable"], len(mine))
    else:
        wanted = _share(spec.get("minAvailable", 1), len(mine))
    return {**pdb, "status": {"disruptionsAllowed": max(healthy - max(wanted, 0), 0)}}


def _share(amount: Any, count: int) -> int:
    """A number, or a percentage of ``count`` rounded up."""
    text = str(amount)
    return -(-int(text[:-1]) * count // 100) if text.endswith("%") else int(text)
