"""What a pod's status says: ready, available, active, over. Pure functions; the time is an argument."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from holokube.kube.conditions import find_condition, get_condition, has_status
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject

Pod = Mapping[str, Any]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
_OVER = ("Succeeded", "Failed")
_INT32_MAX = 2**31 - 1
_EMPTY: Final[Mapping[str, Any]] = {}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def phase(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def is_terminating(pod: Pod) -> bool:
    """Whether its deletion was asked for."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_terminated(pod: Pod) -> bool:
    """Whether its containers are over for good."""
    return (pod.get("status") or _EMPTY).get("phase") in _OVER


def is_active(pod: Pod) -> bool:
    """Whether it counts as a replica: neither over nor being deleted."""
    # As the two above have it, without a call of each.
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return (pod.get("status") or _EMPTY).get("phase") not in _OVER


def is_pod_ready(pod: Pod) -> bool:
    return has_status(pod, "Ready", "True")


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


Standings = dict[int, "Standing"]
"""What the order of deletion has found out about pods that may still be there as they were.

By the identity of a pod's state, which is kept alive here, so that no other can have the same. A pod that is as it was
need not even be looked at.
"""


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
    standings = remember(pods, {} if known is None else known)
    if related is pods:
        nodes = [standing.node for standing in standings if standing.active]
    else:
        nodes = [node_of(pod) for pod in related if is_active(pod)]
    return [standing.pod for standing in in_order(standings, nodes, now)]


def in_order(
    standings: Iterable[Standing], nodes: Iterable[str], now: datetime, count: int | None = None
) -> list[Standing]:
    """The same for pods that have been looked at; ``nodes`` are where company is, once for each.

    Where only the first ``count`` are asked for, the others are not told apart.
    """
    company = Counter(nodes)
    now_us = _microseconds(now)
    by_first: dict[tuple[bool, int, bool, int], list[Standing]] = {}
    last: tuple[bool, int, bool, int] | None = None
    for standing in standings:
        if standing.first is not last:
            # Most have the very same as the one before.
            last = standing.first
            group = by_first.setdefault(last, [])
        group.append(standing)
    ordered: list[Standing] = []
    number_of = company.get
    for first in sorted(by_first):
        group = by_first[first]
        numbers = [number_of(standing.node, 0) for standing in group]
        for number in sorted(set(numbers), reverse=True):
            # Who has most company goes first; the others are not looked at any closer if these are enough.
            left = None if count is None else count - len(ordered)
            alike = [standing for standing, theirs in zip(group, numbers, strict=True) if theirs == number]
            ordered += _by_times(alike, now_us, left)
            if count is not None and len(ordered) >= count:
                return ordered[:count]
    return ordered


def _by_times(standings: Iterable[Standing], now_us: int, count: int | None) -> list[Standing]:
    """The order of those that differ only in when they became ready and what comes after that.

    Not all of them have to be there if there are ``count``.
    """
    alike: dict[int, list[Standing]] = {}
    for standing in standings:
        since_us = standing.ready_us
        # As ``_magnitude`` has it, without a call.
        if since_us is None:
            rank = -1
        else:
            rank = ((now_us - since_us) * 1_000).bit_length() if since_us < now_us else 0
        equals = alike.get(rank)
        if equals is None:
            alike[rank] = [standing]
        else:
            equals.append(standing)
    ordered: list[Standing] = []
    for rank in sorted(alike):
        equals = []
        for standing in alike[rank]:
            standing.age = _magnitude(now_us, standing.created_us)
            # What comes first of three can hang on which two are compared, and how lists are sorted changes from
            # one Python to the next: one by one, by bisection, it is the same everywhere.
            insort(equals, standing)
        ordered += equals
        if count is not None and len(ordered) >= count:
            break
    return ordered


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=16_384)
def _moment_us(text: str) -> int:
    """Pods come, and become ready, many at once."""
    return _microseconds(parse_time(text))


def _magnitude(now_us: int, moment_us: int | None) -> int:
    """The order of magnitude of the time since a moment: the power of two, in nanoseconds; -1 if it is not known."""
    if moment_us is None:
        return -1
    return ((now_us - moment_us) * 1_000).bit_length() if moment_us < now_us else 0


@dataclass(slots=True, eq=False)
class Standing:
    """What the order of deletion looks at in a pod itself.

    Those that are alike up to their moments are compared and not sorted by a key, since equal moments and equal ages
    go on differently. Ages are powers of two, in nanoseconds; an unknown moment counts as the youngest.
    """

    pod: JsonObject
    node: str
    active: bool
    first: tuple[bool, int, bool, int]
    """What counts before the company on the node and the time since it is ready: assigned, phase, ready, cost."""
    ready_us: int | None
    """Since when, in microseconds. None for all that are not ready: those are not told apart by it."""
    restarts: tuple[int, int]
    created_us: int | None
    uid: str
    age: int = -1
    """At the moment of the comparison."""

    def __lt__(self, other: Standing) -> bool:
        if self.ready_us != other.ready_us:
            return self.uid < other.uid
        if self.restarts != other.restarts:
            return self.restarts > other.restarts
        if self.created_us != other.created_us:
            if self.age != other.age:
                return self.age < other.age
            return self.uid < other.uid
        return False


def remember(pods: Iterable[JsonObject], known: Standings) -> list[Standing]:
    """What is to be known of each pod; just that is left in ``known`` for the next time."""
    listed = pods if isinstance(pods, list) else list(pods)
    identities = list(map(id, listed))
    standings = [one or _note(pod, known) for one, pod in zip(map(known.get, identities), listed, strict=True)]
    if len(known) > len(listed):
        for gone in known.keys() - identities:
            del known[gone]
    return standings


def _note(pod: JsonObject, known: Standings) -> Standing:
    standing = known[id(pod)] = _standing(pod)
    return standing


def _standing(pod: JsonObject) -> Standing:
    meta, status = pod["metadata"], pod.get("status") or _EMPTY
    node, phase, created = node_of(pod), status.get("phase") or "", meta.get("creationTimestamp")
    cost = deletion_cost(pod) if meta.get("annotations") else 0
    condition = find_condition(status.get("conditions") or (), "Ready")
    ready, since = False, None
    if condition is not None and condition.get("status") == "True":
        ready, since = True, condition.get("lastTransitionTime")
    return Standing(
        pod, node, phase not in _OVER and not meta.get("deletionTimestamp"),
        _first(bool(node), _PHASE_ORDER.get(phase, 0), ready, cost),
        _moment_us(since) if since else None, _restarts(pod), _moment_us(created) if created else None,
        meta.get("uid") or "",
    )  # fmt: skip


@lru_cache(maxsize=1_024)
def _first(*parts: Any) -> Any:
    """One tuple for all pods that have the same: to find them equal then takes no look into them."""
    return parts


def node_of(pod: Pod) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def deletion_cost(pod: Pod) -> int:
    """The cost its annotation gives; zero for none and for nonsense, as upstream reads it."""
    annotations = pod["metadata"].get("annotations")
    text = str(annotations.get(DELETION_COST) or "") if annotations else ""
    if not text:
        return 0
    try:
        cost = int(text)
    except ValueError:
        return 0
    canonical = str(cost) == text and -_INT32_MAX - 1 <= cost <= _INT32_MAX
    return cost if canonical else 0


def _restarts(pod: Pod) -> tuple[int, int]:
    """Most restarts of a regular container, and of a restartable init container."""
    status = pod.get("status") or _EMPTY
    regular = 0
    for entry in status.get("containerStatuses") or ():
        regular = max(regular, entry.get("restartCount") or 0)
    initial = status.get("initContainerStatuses")
    if not initial:
        return regular, 0
    containers = (pod.get("spec") or _EMPTY).get("initContainers") or ()
    sidecars = {one["name"] for one in containers if one.get("restartPolicy") == "Always"}
    return regular, max((one.get("restartCount") or 0 for one in initial if one.get("name") in sidecars), default=0)
