"""What a removal costs the pods, in Karpenter's unit: about one per ordinary pod."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from holokube.karpenter.api.labels import DISRUPTION_COST, POD_DELETION_COST
from holokube.karpenter.disruption import pods as pod_kinds
from holokube.kube.selectors import parse_int64
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType

NODE_BASE_COST: Final = 1.0
"""What removing a node costs even without pods."""
ORDINARY_COST: Final = 1.0
"""What moving a pod costs that has no priority and says nothing about it."""

_ANNOTATION_UNIT: Final = float(2**27)
_PRIORITY_UNIT: Final = float(2**25)
_EVICTION_COST_MAX: Final = 10.0
_INT32_MAX: Final = 2**31 - 1


def eviction_cost(pod: JsonObject, *, reads_deletion_cost: bool = True) -> float:
    """The cost of moving one pod: one, changed by annotation and priority, between -10 and 10.

    ``reads_deletion_cost`` is false where something else than the user writes the ReplicaSet's annotation.
    """
    cost = ORDINARY_COST
    annotations = pod["metadata"].get("annotations")
    if annotations:
        text = annotations.get(DISRUPTION_COST)
        if text is None and reads_deletion_cost:
            text = annotations.get(POD_DELETION_COST)
        given = None if text is None else _int32(text)
        if given is not None:
            cost += given / _ANNOTATION_UNIT
    priority = (pod.get("spec") or {}).get("priority")
    if priority is not None:
        cost += priority / _PRIORITY_UNIT
    return min(max(cost, -_EVICTION_COST_MAX), _EVICTION_COST_MAX)


def reschedule_cost(pods: Iterable[JsonObject], *, reads_deletion_cost: bool = True) -> float:
    """What the price of a node is weighed against: its own cost and that of its pods, none of which lowers it."""
    cost = NODE_BASE_COST
    for pod in pods:
        cost += max(0.0, eviction_cost(pod, reads_deletion_cost=reads_deletion_cost))
    return cost


def node_cost(pods: Iterable[JsonObject], *, reads_deletion_cost: bool = True) -> float:
    """The same for a node that is no candidate: all its pods but daemons count."""
    return reschedule_cost(
        (pod for pod in pods if not pod_kinds.is_daemon(pod) and not pod_kinds.is_terminal(pod)),
        reads_deletion_cost=reads_deletion_cost,
    )


def lifetime_remaining(created_s: float, expire_after_s: float | None, now_s: float) -> float:
    """The share of its life that a node still has before it; one if it never expires."""
    if expire_after_s is None:
        return 1.0
    if expire_after_s == 0:
        # Go divides by zero here and clamps what comes of it; a node that expires at once has nothing left.
        return 0.0
    return min(max((expire_after_s - (now_s - created_s)) / expire_after_s, 0.0), 1.0)


def offering_price(instance_type: InstanceType | None, zone: str, capacity_type: str) -> float:
    """What a node of this type costs there; 0 if nobody knows."""
    offering = None if instance_type is None else instance_type.offering(zone, capacity_type)
    if offering is None or math.isnan(offering.price_usd_per_hour):
        return 0.0
    return offering.price_usd_per_hour


def _int32(text: str) -> int | None:
    number = parse_int64(text)
    return number if number is not None and -_INT32_MAX - 1 <= number <= _INT32_MAX else None
