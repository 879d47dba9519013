"""What has to be written for the claims of a pod that get their volumes only now that the node is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.kube.affinity import NodeSelector
from holokube.kube.types import JsonObject
from holokube.packing import ClusterState, PodClass
from holokube.packing.filters.volume_binding import (
    claim_size_milli,
    is_available_for,
    is_bound_to,
    is_fit,
    volume_capacity_milli,
)
from holokube.packing.volumes import SELECTED_NODE, VOLUMES, annotation

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(slots=True)
class ClaimPlan:
    """What to write before a pod can be bound; claims that need no more writing are only waited for."""

    waits: list[JsonObject] = field(default_factory=list)
    """All claims that have no volume yet."""
    reserve: list[tuple[JsonObject, JsonObject]] = field(default_factory=list)
    """Volumes as they will be, and as they are."""
    select: list[tuple[JsonObject, JsonObject]] = field(default_factory=list)
    """Claims as they will be, and as they are."""


def plan_claims(state: ClusterState, cls: PodClass, row: int) -> ClaimPlan:
    """For each claim that waits for its first consumer: the smallest volume within reach, or a wish for a new one."""
    plan = ClaimPlan(waits=list(state.volume_plan(cls).delayed))
    node_name = state.name_of(row)
    volumes = [v for v in state.volumes.all(VOLUMES).values() if not v["metadata"].get("deletionTimestamp")]
    taken: set[str] = set()
    for claim in sorted(plan.waits, key=claim_size_milli):
        if annotation(claim, SELECTED_NODE) is not None:
            continue
        if any(is_bound_to(volume, claim) and is_fit(volume, claim) for volume in volumes):
            continue
        free = [
            volume for volume in volumes
            if volume["metadata"]["name"] not in taken
            and is_available_for(volume, claim) and _is_within_reach(state, volume, row)
        ]  # fmt: skip
        if free:
            volume = min(free, key=volume_capacity_milli)
            taken.add(volume["metadata"]["name"])
            plan.reserve.append((_reserved(volume, claim), volume))
        else:
            plan.select.append((_selected(claim, node_name), claim))
    return plan


def is_bound(claim: JsonObject) -> bool:
    """Whether a claim has its volume, for good."""
    return bool(claim["spec"].get("volumeName")) and annotation(claim, BIND_COMPLETED) is not None


def _is_within_reach(state: ClusterState, volume: JsonObject, row: int) -> bool:
    required = (volume["spec"].get("nodeAffinity") or _EMPTY).get("required")
    if required is None:
        return True
    labels = state.node(row)["metadata"].get("labels")
    return any(term.labels.matches(labels) for term in NodeSelector.from_json(required).terms if not term.errors)


def _reserved(volume: JsonObject, claim: JsonObject) -> JsonObject:
    metadata = claim["metadata"]
    reference = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": metadata["namespace"],
        "name": metadata["name"], "uid": metadata.get("uid", ""),
    }  # fmt: skip
    annotations = {**(volume["metadata"].get("annotations") or {}), BOUND_BY_CONTROLLER: "yes"}
    return {
        **volume,
        "metadata": {**volume["metadata"], "annotations": annotations},
        "spec": {**volume["spec"], "claimRef": reference},
    }


def _selected(claim: JsonObject, node_name: str) -> JsonObject:
    annotations = {**(claim["metadata"].get("annotations") or {}), SELECTED_NODE: node_name}
    return {**claim, "metadata": {**claim["metadata"], "annotations": annotations}}
