"""When NoExecute taints drive a pod from its node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from holokube.kube.conditions import get_condition
from holokube.kube.taints import NO_EXECUTE, Taint, eviction_delay_s, taints_of, tolerations_of
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

DISRUPTION: Final = "DisruptionTarget"


@dataclass(frozen=True, slots=True)
class Appointment:
    """A pod's eviction to come."""

    uid: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Stay:
    """The pod may stay; ``cancelled`` if it had an appointment."""

    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Evict:
    """The pod goes now."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod goes at the time of the appointment."""

    appointment: Appointment


def execute_taints(node: Mapping[str, Any] | None) -> tuple[Taint, ...]:
    """The taints of a node that evict; none of a node that is not there."""
    return () if node is None else tuple(taint for taint in taints_of(node) if taint.effect == NO_EXECUTE)


def decide(
    pod: Mapping[str, Any], node: Mapping[str, Any] | None, appointment: Appointment | None, now: datetime
) -> Stay | Evict | Wait:
    """What becomes of a pod on a node. An appointment once made stands until no taint asks for it.

    That is upstream's rule: a change of the tolerations neither puts it off nor brings it forward, only a
    taint that is not tolerated at all does.
    """
    if appointment is not None and appointment.uid != pod["metadata"]["uid"]:
        appointment = None
    if pod["metadata"].get("deletionTimestamp"):
        return Stay()
    delay_s = eviction_delay_s(execute_taints(node), tolerations_of(pod))
    if delay_s is None:
        return Stay(cancelled=appointment is not None)
    if delay_s == 0:
        return Evict()
    if appointment is None:
        appointment = Appointment(pod["metadata"]["uid"], now + timedelta(seconds=delay_s))
    return Evict() if now >= appointment.due_at else Wait(appointment)


def disruption_condition(pod: Mapping[str, Any], reason: str, message: str, now: datetime) -> JsonObject | None:
    """The condition that says why the pod is disrupted; None if it says so already."""
    known = get_condition(pod, DISRUPTION) or {}
    condition: JsonObject = {"type": DISRUPTION, "status": "True", "reason": reason, "message": message}
    if (known.get("status"), known.get("reason"), known.get("message")) == ("True", reason, message):
        return None
    same = known.get("status") == "True" and known.get("lastTransitionTime")
    condition["lastTransitionTime"] = known["lastTransitionTime"] if same else format_time(now)
    if pod["metadata"].get("generation"):
        condition["observedGeneration"] = pod["metadata"]["generation"]
    return condition
