"""What a pod's status says: ready, available, active, over. Pure functions; the time is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
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


Standings = dict[str, "Standing"]
"""By uid: what the order of deletion has found out about pods that may still be as they were."""


def deletion_order(
    pods: Iterable[JsonObject], related: Iterable[Pod], now: datetime, known: Standings | None = None
) -> list[JsonObject]:
    """The pods, first those that are missed least.

    Unassigned before assigned, pending before running, not ready before ready, cheap before dear, doubled up
    on a node before alone, lately ready before long ready, restarting before stable, young before old.
    ``related`` are the pods that count as company on a node. Ages are compared on a logarithmic scale, so that
    not always the youngest goes; within one step the uid decides. ``known`` is left with what was found out about
    these pods, for the next time: most of them will not have changed.
    """
    standings = _standings(pods, known)
    company: dict[str, int] = {}
    if related is pods:
        for standing in standings:
            if standing.active:
                company[standing.node] = company.get(standing.node, 0) + 1
    else:
        for pod in related:
            if is_active(pod):
                node = node_of(pod)
                company[node] = company.get(node, 0) + 1
    magnitudes: dict[datetime | None, int] = {None: -1}
    ranks = []
    for standing in standings:
        created, since = standing.created, standing.ready_since
        if created not in magnitudes:
            magnitudes[created] = _magnitude(now - created) if created is not None else -1
        if since not in magnitudes:
            magnitudes[since] = _magnitude(now - since) if since is not None else -1
        rank = _Rank()
        rank.first = (
            *standing.first, -company.get(standing.node, 0), magnitudes[since] if standing.ready else 0,
        )  # fmt: skip
        rank.created_magnitude = magnitudes[created]
        rank.standing = standing
        ranks.append(rank)
    ranks.sort()
    return [rank.standing.pod for rank in ranks]


@dataclass(frozen=True, slots=True)
class Standing:
    """What the order of deletion looks at in a pod itself."""

    pod: JsonObject
    node: str
    active: bool
    first: tuple[bool, int, bool, int]
    ready: bool
    ready_since: datetime | None
    """None for all that are not ready: those are not told apart by it."""
    restarts: tuple[int, int]
    created: datetime | None
    uid: str


def _standings(pods: Iterable[JsonObject], known: Standings | None) -> list[Standing]:
    """What is to be known of each pod, and left in ``known`` for the next time."""
    if known is None:
        return [_standing(pod) for pod in pods]
    standings = []
    recall = known.get
    for pod in pods:
        before = recall(pod["metadata"].get("uid") or "")
        standings.append(before if before is not None and before.pod is pod else _standing(pod))
    known.clear()
    known.update({standing.uid: standing for standing in standings})
    return standings


def _standing(pod: JsonObject) -> Standing:
    meta = pod["metadata"]
    node, ready, created = node_of(pod), is_pod_ready(pod), meta.get("creationTimestamp")
    return Standing(
        pod, node, is_active(pod), (bool(node), _PHASE_ORDER.get(phase(pod), 0), ready, deletion_cost(pod)), ready,
        ready_since(pod), _restarts(pod), parse_time(created) if created else None, str(meta.get("uid") or ""),
    )  # fmt: skip


class _Rank:
    """A pod's place in the order of one moment.

    It is compared and not sorted by a key, since equal moments and equal magnitudes go on differently. Magnitudes are
    powers of two of the age in nanoseconds; an unknown moment counts as the youngest.
    """

    __slots__ = ("created_magnitude", "first", "standing")

    first: tuple[bool, int, bool, int, int, int]
    """All that comes before the moments themselves; the last is the magnitude of the time since it is ready."""
    created_magnitude: int
    standing: Standing

    def __lt__(self, other: _Rank) -> bool:
        if self.first != other.first:
            return self.first < other.first
        mine, theirs = self.standing, other.standing
        if mine.ready_since != theirs.ready_since:
            return mine.uid < theirs.uid
        if mine.restarts != theirs.restarts:
            return mine.restarts > theirs.restarts
        if mine.created != theirs.created:
            if self.created_magnitude != other.created_magnitude:
                return self.created_magnitude < other.created_magnitude
            return mine.uid < theirs.uid
        return False


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
