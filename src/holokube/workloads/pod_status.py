"""What a pod's status says: ready, available, active, over. Pure functions; the time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import Any

from holokube.kube.conditions import get_condition
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

Pod = Mapping[str, Any]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
_INT32_MAX = 2**31 - 1


def phase(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def is_terminating(pod: Pod) -> bool:
    """Whether its deletion was asked for."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_terminated(pod: Pod) -> bool:
    """Whether its containers are over for good."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Whether it counts as a replica: neither over nor being deleted."""
    return not is_terminated(pod) and not is_terminating(pod)


def is_pod_ready(pod: Pod) -> bool:
    condition = get_condition(pod, "Ready")
    return condition is not None and condition.get("status") == "True"


def ready_since(pod: Pod) -> datetime | None:
    """When it became ready; None if it is not, or nobody wrote down when."""
    condition = get_condition(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    moment = condition.get("lastTransitionTime")
    return parse_time(moment) if moment else None


def is_available(pod: Pod, min_ready_s: int, now: datetime) -> bool:
    """Whether it has been ready for at least ``min_ready_s``."""
    if not is_pod_ready(pod):
        return False
    if min_ready_s == 0:
        return True
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_s) <= now


def next_availability_s(pods: Iterable[Pod], min_ready_s: int, now: datetime) -> float | None:
    """In how many seconds the next of the ready pods becomes available; None if none will."""
    waits = [
        (since + timedelta(seconds=min_ready_s) - now).total_seconds()
        for pod in pods
        if (since := ready_since(pod)) is not None and not is_available(pod, min_ready_s, now)
    ]
    return min(waits, default=None)


def deletion_order(pods: Iterable[JsonObject], related: Iterable[Pod], now: datetime) -> list[JsonObject]:
    """The pods, first those that are missed least.

    Unassigned before assigned, pending before running, not ready before ready, cheap before dear, doubled up
    on a node before alone, lately ready before long ready, restarting before stable, young before old.
    ``related`` are the pods that count as company on a node. Ages are compared on a logarithmic scale, so that
    not always the youngest goes; within one step the uid decides.
    """
    company: dict[str, int] = {}
    for pod in related:
        if is_active(pod):
            node = node_of(pod)
            company[node] = company.get(node, 0) + 1

    def key(pod: JsonObject) -> _Rank:
        node, ready = node_of(pod), is_pod_ready(pod)
        created = pod["metadata"].get("creationTimestamp")
        return _Rank(
            (
                bool(node), _PHASE_ORDER.get(phase(pod), 0), ready, deletion_cost(pod),
                -company.get(node, 0),
            ),
            ready,
            ready_since(pod),
            _restarts(pod),
            parse_time(created) if created else None,
            str(pod["metadata"].get("uid") or ""),
        )  # fmt: skip

    ranks = [(key(pod), pod) for pod in pods]

    def compare(a: _Rank, b: _Rank) -> int:
        return _compare(a, b, now)

    in_order = cmp_to_key(compare)
    return [pod for _, pod in sorted(ranks, key=lambda ranked: in_order(ranked[0]))]


@dataclass(frozen=True, slots=True)
class _Rank:
    """What the order of deletion looks at."""

    first: tuple[bool, int, bool, int, int]
    ready: bool
    ready_since: datetime | None
    restarts: tuple[int, int]
    created: datetime | None
    uid: str


def _compare(a: _Rank, b: _Rank, now: datetime) -> int:
    """Below zero if ``a`` goes first. Not a key, since equal moments and equal magnitudes go on differently."""
    if a.first != b.first:
        return -1 if a.first < b.first else 1
    if a.ready and b.ready and a.ready_since != b.ready_since:
        return _compare_ages(a.ready_since, b.ready_since, now) or _compare_uids(a, b)
    if a.restarts != b.restarts:
        return -1 if a.restarts > b.restarts else 1
    if a.created != b.created:
        return _compare_ages(a.created, b.created, now) or _compare_uids(a, b)
    return 0


def _compare_ages(a: datetime | None, b: datetime | None, now: datetime) -> int:
    """By powers of two of the age in nanoseconds; an unknown moment counts as the youngest."""
    if a is None or b is None:
        return -1 if a is None else 1
    return _magnitude(now - a) - _magnitude(now - b)


def _compare_uids(a: _Rank, b: _Rank) -> int:
    return -1 if a.uid < b.uid else 1


def _magnitude(age: timedelta) -> int:
    return max(0, int(age.total_seconds() * 1_000_000_000)).bit_length()


def node_of(pod: Pod) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def deletion_cost(pod: Pod) -> int:
    """The cost its annotation gives; zero for none and for nonsense, as upstream reads it."""
    text = str((pod["metadata"].get("annotations") or {}).get(DELETION_COST) or "0")
    try:
        cost = int(text)
    except ValueError:
        return 0
    canonical = str(cost) == text and -_INT32_MAX - 1 <= cost <= _INT32_MAX
    return cost if canonical else 0


def _restarts(pod: Pod) -> tuple[int, int]:
    """Most restarts of a regular container, and of a restartable init container."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    regular = max((c.get("restartCount") or 0 for c in status.get("containerStatuses") or ()), default=0)
    init = max(
        (
            c.get("restartCount") or 0
            for c in status.get("initContainerStatuses") or ()
            if c.get("name") in sidecars
        ),
        default=0,
    )
    return regular, init
