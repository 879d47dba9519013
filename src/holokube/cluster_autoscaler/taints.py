"""The taints that mean something to the autoscaler: its own, and those of nodes that are not what they will be.

Everything here is pure: a node with or without a taint is a new object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holokube.cluster_autoscaler.objects import STARTUP_TAINTED, name_of, unready_copy
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube import taints
from holokube.kube.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE
from holokube.kube.types import JsonObject

TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
IGNORE_PREFIX: Final = "ignore-taint.cluster-autoscaler.kubernetes.io/"
STARTUP_PREFIX: Final = "startup-taint.cluster-autoscaler.kubernetes.io/"
STATUS_PREFIX: Final = "status-taint.cluster-autoscaler.kubernetes.io/"

NODE_CONDITION_TAINTS: Final = frozenset({
    taints.NODE_NOT_READY, taints.NODE_UNREACHABLE, taints.NODE_UNSCHEDULABLE, taints.NODE_MEMORY_PRESSURE,
    taints.NODE_DISK_PRESSURE, taints.NODE_NETWORK_UNAVAILABLE, taints.NODE_PID_PRESSURE,
    taints.CLOUD_PROVIDER_UNINITIALIZED, "node.cloudprovider.kubernetes.io/shutdown",
    "cloud.google.com/impending-node-termination", "NodeWithImpairedVolumes",
})  # fmt: skip
"""Taints that tell of a passing state, which a new node will not be in."""

_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class TaintConfig:
    """Which taints are more than they look like."""

    startup: frozenset[str] = frozenset()
    status: frozenset[str] = frozenset()
    startup_prefixes: tuple[str, ...] = (IGNORE_PREFIX, STARTUP_PREFIX)
    scale_from_unschedulable: bool = False
    """New nodes are taken for schedulable even if the node they are modelled on is cordoned."""

    @classmethod
    def of(cls, options: AutoscalerOptions) -> TaintConfig:
        """As the flags have it; ``--ignore-taint`` is the old name of ``--startup-taint``."""
        return cls(
            startup=frozenset((*options.ignore_taint, *options.startup_taint)),
            status=frozenset(options.status_taint),
            startup_prefixes=(IGNORE_PREFIX, STARTUP_PREFIX, *options.startup_taint_prefix),
            scale_from_unschedulable=options.scale_from_unschedulable,
        )

    def is_startup(self, key: str) -> bool:
        """Whether nodes carry it until they are ready for pods."""
        return key in self.startup or key.startswith(self.startup_prefixes)

    def is_status(self, key: str) -> bool:
        """Whether it comes and goes and new nodes do not have it."""
        return key in self.status or key.startswith(STATUS_PREFIX)

    def reported_as(self, key: str) -> str:
        """What a taint is counted as in metrics."""
        if key.startswith(IGNORE_PREFIX):
            return IGNORE_PREFIX
        if key in (TO_BE_DELETED, DELETION_CANDIDATE) or key in NODE_CONDITION_TAINTS:
            return key
        if self.is_startup(key):
            return "startup-taint"
        return "status-taint" if self.is_status(key) else "other"


def taints_of(node: Mapping[str, Any]) -> Sequence[JsonObject]:
    """The taints of a node as they are written."""
    return (node.get("spec") or _EMPTY).get("taints") or ()


def has_taint(node: Mapping[str, Any], key: str) -> bool:
    """Whether a node carries a taint, whatever its effect."""
    return any(taint.get("key") == key for taint in taints_of(node))


def is_to_be_deleted(node: Mapping[str, Any]) -> bool:
    """Whether the autoscaler has begun to remove the node."""
    return has_taint(node, TO_BE_DELETED)


def taint_time_s(node: Mapping[str, Any], key: str) -> float | None:
    """When the autoscaler put a taint on a node, in Unix seconds; None if it is not there.

    Raises ``ValueError`` if the value is not a time of the autoscaler's.
    """
    for taint in taints_of(node):
        if taint.get("key") == key:
            return float(int(taint.get("value") or ""))
    return None


def to_be_deleted(now_s: float) -> JsonObject:
    """The taint of a node that is about to be removed."""
    return {"key": TO_BE_DELETED, "value": str(int(now_s)), "effect": NO_SCHEDULE}


def deletion_candidate(now_s: float) -> JsonObject:
    """The taint of a node that is not needed at present."""
    return {"key": DELETION_CANDIDATE, "value": str(int(now_s)), "effect": PREFER_NO_SCHEDULE}


def with_taint(node: JsonObject, taint: JsonObject, *, cordon: bool = False) -> JsonObject:
    """The node with one more taint, and cordoned if asked for; the node itself if it has that taint already."""
    if has_taint(node, taint["key"]):
        return node
    spec = {**(node.get("spec") or {}), "taints": [*taints_of(node), taint]}
    if cordon:
        spec["unschedulable"] = True
    return {**node, "spec": spec}


def without_taints(node: JsonObject, keys: Collection[str], *, uncordon: bool = False) -> JsonObject:
    """The node without some taints, and uncordoned if asked for; the node itself if it has none of them."""
    kept = [taint for taint in taints_of(node) if taint.get("key") not in keys]
    if len(kept) == len(taints_of(node)):
        return node
    dropped = ("taints", "unschedulable") if uncordon else ("taints",)
    spec = {name: value for name, value in node["spec"].items() if name not in dropped}
    if kept:
        spec["taints"] = kept
    return {**node, "spec": spec}


def sanitised_taints(node_taints: Iterable[JsonObject], config: TaintConfig) -> list[JsonObject]:
    """The taints that a new node of the same group will have."""
    return [
        taint
        for taint in node_taints
        if (key := taint.get("key", "")) not in (TO_BE_DELETED, DELETION_CANDIDATE)
        and key not in NODE_CONDITION_TAINTS
        and not config.is_startup(key)
        and not config.is_status(key)
    ]


def without_starting_nodes(
    nodes: Iterable[JsonObject], ready: Iterable[JsonObject], config: TaintConfig
) -> tuple[list[JsonObject], list[JsonObject]]:
    """All nodes and the ready ones, once ready nodes with a start-up taint are taken for unready."""
    unready: dict[str, JsonObject] = {}
    still_ready = []
    for node in ready:
        if any(config.is_startup(taint.get("key", "")) for taint in taints_of(node)):
            unready[name_of(node)] = unready_copy(node, STARTUP_TAINTED)
        else:
            still_ready.append(node)
    return [unready.get(name_of(node), node) for node in nodes], still_ready


def count_taints(nodes: Iterable[JsonObject], config: TaintConfig) -> dict[str, int]:
    """How many taints of each reported kind the nodes carry."""
    return dict(Counter(config.reported_as(taint.get("key", "")) for node in nodes for taint in taints_of(node)))
