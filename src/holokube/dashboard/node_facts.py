"""What the page tells of a node, read from its object: group, zone, size, state, faults, price. All pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from holokube.cluster_autoscaler.cloud.kwok.grouping import POOL_LABELS
from holokube.cluster_autoscaler.cloud.kwok.marks import GROUP_NAME, PREFIX
from holokube.cluster_autoscaler.cloud.kwok.settings import PRICE
from holokube.cluster_autoscaler.taints import TO_BE_DELETED
from holokube.hollow.node_life import fault_words
from holokube.hollow.node_template import NODE_SET
from holokube.karpenter.api.labels import DISRUPTED_TAINT, INSTANCE_PRICE_LABEL, UNREGISTERED_TAINT
from holokube.kube.conditions import get_condition
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, ZONE_LABEL
from holokube.kube.resources import CPU, MEMORY, parse_resources
from holokube.kube.taints import NODE_NOT_READY
from holokube.kube.timeformat import parse_time
from holokube.pricing.instance_types import ON_DEMAND, Catalog

MIB_MILLI: Final = 1024 * 1024 * 1000
"""A mebibyte in the unit of resource vectors."""
MICRO: Final = 1_000_000
KUBEMARK_GROUP: Final = "autoscaling.k8s.io/nodegroup"
_DRAIN_TAINTS: Final = frozenset({TO_BE_DELETED, DISRUPTED_TAINT.key})
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")

PriceOf = Callable[[Mapping[str, Any]], float | None]
"""The price of a Node object in USD per hour; None where nobody knows."""


class State(Enum):
    """What a tile shows by more than its colour."""

    BOOTING = "booting"
    READY = "ready"
    NOT_READY = "not-ready"
    DRAINING = "draining"
    FAULTY = "faulty"
    """Ready, but with a fault or under pressure."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node without its pods."""

    name: str
    group: str
    zone: str
    instance_type: str
    capacity_type: str
    state: State
    why: str
    """In a few words, for states other than ready."""
    faults: tuple[str, ...]
    cpu_milli: int
    """Allocatable, as is the memory."""
    memory_mib: int
    pods_max: int
    price_micro_usd: int | None
    """Millionths of a dollar per hour, so that sums are exact."""
    created_s: float


def read_node(node: Mapping[str, Any], price_of: PriceOf, *, was_ready: bool) -> NodeFacts:
    """The facts of a Node; ``was_ready`` tells a node that broke from one that never came up."""
    meta = node["metadata"]
    labels = meta.get("labels") or {}
    state, why = _state(node, was_ready=was_ready)
    price = price_of(node)
    status = node.get("status") or {}
    size = parse_resources(status.get("allocatable") or status.get("capacity"))
    return NodeFacts(
        name=meta["name"],
        group=group_of(node),
        zone=labels.get(ZONE_LABEL, ""),
        instance_type=labels.get(INSTANCE_TYPE_LABEL, ""),
        capacity_type=labels.get(CAPACITY_TYPE_LABEL, ""),
        state=state,
        why=why,
        faults=tuple(fault_words(node)),
        cpu_milli=size.get(CPU, 0),
        memory_mib=size.get(MEMORY, 0) // MIB_MILLI,
        pods_max=size.get("pods", 0) // 1000,
        price_micro_usd=None if price is None else round(price * MICRO),
        created_s=created_s(node),
    )


def created_s(obj: Mapping[str, Any]) -> float:
    """When an object was made, in Unix seconds."""
    text = obj["metadata"].get("creationTimestamp")
    return parse_time(text).timestamp() if text else 0.0


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether its kubelet says so."""
    ready = get_condition(node, "Ready")
    return ready is not None and ready.get("status") == "True"


def group_of(node: Mapping[str, Any]) -> str:
    """NodePool, node group or set of a node; empty for one of its own."""
    meta = node["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    for found in (
        labels.get(NODEPOOL_LABEL), annotations.get(GROUP_NAME), labels.get(KUBEMARK_GROUP), labels.get(NODE_SET),
        *(labels.get(key) for key in POOL_LABELS),
    ):  # fmt: skip
        if found:
            return str(found)
    return ""


def _state(node: Mapping[str, Any], *, was_ready: bool) -> tuple[State, str]:
    spec = node.get("spec") or {}
    taints = {taint.get("key"): taint for taint in spec.get("taints") or ()}
    ready = get_condition(node, "Ready")
    faults = fault_words(node)
    if not is_ready(node):
        if not was_ready and not faults and (ready is None or ready.get("status") != "Unknown"):
            return State.BOOTING, "not ready yet"
        return State.NOT_READY, str((ready or {}).get("message") or "") or "not ready"
    if node["metadata"].get("deletionTimestamp"):
        return State.DRAINING, "being deleted"
    leaving = next((key for key in taints if key in _DRAIN_TAINTS), None)
    if leaving is not None:
        return State.DRAINING, f"taint {leaving}"
    if spec.get("unschedulable"):
        return State.DRAINING, "cordoned"
    if faults:
        return State.FAULTY, ", ".join(faults)
    pressed = [kind for kind in _PRESSURES if (get_condition(node, kind) or {}).get("status") == "True"]
    if pressed:
        return State.FAULTY, ", ".join(pressed)
    if UNREGISTERED_TAINT.key in taints or (NODE_NOT_READY in taints and not was_ready):
        return State.BOOTING, "no pods are let in yet"
    return State.READY, ""


def prices_from(catalog: Catalog | None = None) -> PriceOf:
    """Prices as nodes tell them themselves, else as a catalogue has them for their type, zone and capacity type."""

    def price_of(node: Mapping[str, Any]) -> float | None:
        meta = node["metadata"]
        labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
        for text in (labels.get(INSTANCE_PRICE_LABEL), annotations.get(f"{PREFIX}{PRICE}")):
            price = _number(text)
            if price is not None:
                return price
        offered = None if catalog is None else catalog.by_name.get(labels.get(INSTANCE_TYPE_LABEL, ""))
        if offered is None:
            return None
        zone, wanted = labels.get(ZONE_LABEL), labels.get(CAPACITY_TYPE_LABEL) or ON_DEMAND
        for offering in offered.offerings:
            if offering.capacity_type == wanted and zone in (None, "", offering.zone):
                return offering.price_usd_per_hour
        return None

    return price_of


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
