"""Whether a node takes a pod that was bound to it: the checks a kubelet makes itself, with its own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Final

from holokube.hollow.pod_state import Rejection
from holokube.kube.affinity import RequiredNodeAffinity
from holokube.kube.resources import CPU, PODS, is_extended_resource, parse_resources, pod_requests, qos_class
from holokube.kube.taints import Taint, find_untolerated, taints_of, tolerations_of
from holokube.kube.types import JsonObject

CRITICAL_PRIORITY = 2_000_000_000
NODE_AFFINITY: Final = "NodeAffinity"
TAINT_TOLERATION: Final = "TaintToleration"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_MEMORY_TAINT = Taint("node.kubernetes.io/memory-pressure", "", "NoSchedule")
_MIRROR = "kubernetes.io/config.mirror"
_SOURCE = "kubernetes.io/config.source"

# The scheduler's fit looks at these before the others, and only the first failure is reported.
_ORDER = ("cpu", "memory", "ephemeral-storage")


def requests_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """What the pod counts on its node, in milli-units."""
    return dict(pod_requests(pod))


@dataclass(frozen=True, slots=True)
class Share:
    """What one pod takes of its node. Pods of one template have theirs in common; it is never changed."""

    requests: dict[str, int]
    ports: list[tuple[str, str, int]]


class Shares:
    """What pods take. Most have nothing but containers to take it for, in one list for all pods of a template."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[JsonObject], Share]] = {}
        self._last: tuple[Mapping[str, Any] | None, Share] = (None, Share({}, []))
        """The last spec that was asked about: one that is admitted is counted the next moment."""

    def of(self, pod: Mapping[str, Any]) -> Share:
        """The share of a pod, by its spec."""
        spec = pod["spec"]
        last, share = self._last
        if spec is not last:
            share = self._of(pod, spec)
            self._last = spec, share
        return share

    def _of(self, pod: Mapping[str, Any], spec: Mapping[str, Any]) -> Share:
        if not spec.keys().isdisjoint(_BESIDE_CONTAINERS):
            return Share(requests_of(pod), host_ports_of(pod))
        containers = spec.get("containers") or []
        known = self._known.get(id(containers))
        # The list is held, so that no other one can come to lie in its place.
        if known is not None and known[0] is containers:
            return known[1]
        share = Share(requests_of(pod), host_ports_of(pod))
        if len(self._known) >= _SHARES_KEPT:
            self._known.clear()
        self._known[id(containers)] = containers, share
        return share


_BESIDE_CONTAINERS = frozenset(("initContainers", "overhead", "resources"))
_SHARES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node has for pods, as one state of its object says."""

    node: Mapping[str, Any]
    allocatable: dict[str, int]
    is_open: bool
    """Whether neither pressure nor a taint keeps any pod away."""

    @classmethod
    def of(cls, node: Mapping[str, Any], default_allocatable: Mapping[str, str]) -> Offer:
        """What a Node object offers; ``default_allocatable`` if it does not say."""
        status = node.get("status") or {}
        offered = status.get("allocatable") or status.get("capacity") or default_allocatable
        taints = [taint for taint in taints_of(node) if taint.effect == "NoExecute"]
        return cls(node, parse_resources(offered), not _pressures(node) and not taints)

    def plainly_admits(self, pod: Mapping[str, Any], share: Share, used: Mapping[str, int], pods: int) -> bool:
        """Whether there is no reason to refuse a pod that could be doubted; if not, ``check_admission`` knows."""
        spec = pod["spec"]
        if not self.is_open or share.ports or spec.get("nodeSelector") or spec.get("affinity"):
            return False
        allocatable = self.allocatable
        if (pods + 1) * 1000 > allocatable.get(PODS, 0):
            return False
        for name, wanted in share.requests.items():  # noqa: SIM110 - all() with a generator costs twice as much
            if wanted > allocatable.get(name, 0) - used.get(name, 0):
                return False
        return True


def check_admission(
    pod: Mapping[str, Any],
    node: Mapping[str, Any],
    *,
    allocatable: Mapping[str, int],
    used: Mapping[str, int],
    pods: int,
    host_ports: Iterable[tuple[str, str, int]] = (),
) -> Rejection | None:
    """The first reason to refuse, None when the pod is taken. Amounts are in milli-units."""
    under_pressure = _pressure_refuses(pod, node)
    if under_pressure is not None:
        return under_pressure
    shortage = check_resources(pod, allocatable=allocatable, used=used, pods=pods)
    if shortage is not None:
        return shortage
    return _check_predicates(pod, node, host_ports)


def check_resources(
    pod: Mapping[str, Any], *, allocatable: Mapping[str, int], used: Mapping[str, int], pods: int
) -> Rejection | None:
    """The first resource that the node lacks for the pod, beside ``pods`` others that use so much."""
    pods_max = allocatable.get(PODS, 0) // 1000
    if pods + 1 > pods_max:
        return _insufficient(PODS, 1, pods, pods_max)
    requests = requests_of(pod)
    for name in (*_ORDER, *sorted(set(requests) - set(_ORDER))):
        wanted = requests.get(name, 0)
        if wanted <= 0:
            continue
        if name not in allocatable and is_extended_resource(name):
            # A resource of the cluster that no node knows is not the kubelet's business.
            continue
        if wanted > allocatable.get(name, 0) - used.get(name, 0):
            shown = [_shown(name, amount) for amount in (wanted, used.get(name, 0), allocatable.get(name, 0))]
            return _insufficient(name, *shown)
    return None


def _check_predicates(
    pod: Mapping[str, Any], node: Mapping[str, Any], host_ports: Iterable[tuple[str, str, int]]
) -> Rejection | None:
    spec = pod["spec"]
    is_choosy = spec.get("nodeSelector") or spec.get("affinity")
    if is_choosy and not RequiredNodeAffinity.of_pod(pod).matches_node(node):
        return _predicate(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector")
    ports = host_ports_of(pod)
    if ports:
        taken = set(host_ports)
        if any(_collides(port, taken) for port in ports):
            return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    taints = [taint for taint in taints_of(node) if taint.effect == "NoExecute"]
    if taints and find_untolerated(taints, tolerations_of(pod)) is not None:
        return _predicate(TAINT_TOLERATION, "node(s) had taints that the pod didn't tolerate")
    return None


def _pressure_refuses(pod: Mapping[str, Any], node: Mapping[str, Any]) -> Rejection | None:
    """A node under pressure takes critical pods only; under memory pressure alone, pods with requests as well."""
    pressures = _pressures(node)
    if not pressures or is_critical(pod):
        return None
    if pressures == ["MemoryPressure"]:
        if qos_class(pod) != "BestEffort":
            return None
        if any(toleration.tolerates(_MEMORY_TAINT) for toleration in tolerations_of(pod)):
            return None
    return Rejection("Evicted", f"The node had condition: [{' '.join(pressures)}]. ")


def _pressures(node: Mapping[str, Any]) -> list[str]:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return [c["type"] for c in conditions if c.get("type") in _PRESSURES and c.get("status") == "True"]


def is_critical(pod: Mapping[str, Any]) -> bool:
    """Static pods, their mirrors, and those with the priority of the system."""
    annotations = pod["metadata"].get("annotations") or {}
    if _MIRROR in annotations or annotations.get(_SOURCE, "api") != "api":
        return True
    return int(pod["spec"].get("priority") or 0) >= CRITICAL_PRIORITY


def lacking_resources(
    pod: Mapping[str, Any], *, allocatable: Mapping[str, int], used: Mapping[str, int], pods: int
) -> dict[str, int]:
    """By how much the node falls short for the pod, in milli-units."""
    requests = {**requests_of(pod), PODS: 1000}
    taken = {**used, PODS: pods * 1000}
    short = {
        name: wanted - (allocatable.get(name, 0) - taken.get(name, 0))
        for name, wanted in requests.items()
        if wanted > 0 and (name in allocatable or not is_extended_resource(name))
    }
    return {name: amount for name, amount in short.items() if amount > 0}


def choose_victims(
    pod: Mapping[str, Any], others: Sequence[JsonObject], lacking: Mapping[str, int]
) -> list[JsonObject] | None:
    """Which of the other pods make room for a critical one; None when all of them together do not.

    As a kubelet chooses: no guaranteed pod while burstable and best-effort ones suffice, and as few as possible.
    """
    if not is_critical(pod):
        return None
    by_class: dict[str, list[JsonObject]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for other in others:
        if _is_preemptable(pod, other):
            by_class[qos_class(other)].append(other)
    best_effort, burstable, guaranteed = by_class.values()
    if _still_lacking(lacking, [*best_effort, *burstable, *guaranteed]):
        return None
    chosen_g = _nearest(guaranteed, _still_lacking(lacking, [*best_effort, *burstable]))
    chosen_b = _nearest(burstable, _still_lacking(lacking, [*best_effort, *chosen_g]))
    chosen_e = _nearest(best_effort, _still_lacking(lacking, [*chosen_b, *chosen_g]))
    return [*chosen_e, *chosen_b, *chosen_g]


def _is_preemptable(pod: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if not is_critical(other):
        return True
    return int(pod["spec"].get("priority") or 0) > int(other["spec"].get("priority") or 0)


def _amounts(pod: Mapping[str, Any]) -> dict[str, int]:
    return {**requests_of(pod), PODS: 1000}


def _still_lacking(lacking: Mapping[str, int], gone: Sequence[JsonObject]) -> dict[str, int]:
    freed = [_amounts(pod) for pod in gone]
    left = {name: amount - sum(one.get(name, 0) for one in freed) for name, amount in lacking.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(pods: Sequence[JsonObject], lacking: Mapping[str, int]) -> list[JsonObject]:
    """Takes the pod that frees the largest share of what is lacking, the smaller of two, until nothing is."""
    left = list(pods)
    chosen: list[JsonObject] = []
    while lacking:

        def rank(pod: JsonObject, missing: Mapping[str, int] = lacking) -> tuple[float, int, int]:
            has = _amounts(pod)
            rests = [(max(0, amount - has.get(name, 0)) / amount) ** 2 for name, amount in missing.items()]
            return fsum(rests), has.get("memory", 0), has.get(CPU, 0)

        best = min(left, key=rank)
        left.remove(best)
        chosen.append(best)
        lacking = _still_lacking(lacking, [best])
    return chosen


def host_ports_of(pod: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """(address, protocol, port) of every host port the pod takes."""
    spec = pod["spec"]
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(port["hostPort"]))  # noqa: S104 - compared, not bound
        for container in (*(spec.get("containers") or ()), *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def _collides(port: tuple[str, str, int], taken: set[tuple[str, str, int]]) -> bool:
    address, protocol, number = port
    anywhere = "0.0.0.0"  # noqa: S104 - compared, not bound
    return any(
        (protocol, number) == (p, n) and (address == a or anywhere in (address, a)) for a, p, n in taken
    )


def _shown(name: str, milli: int) -> int:
    return milli if name == CPU else -(-milli // 1000)


def _insufficient(name: str, requested: int, used: int, capacity: int) -> Rejection:
    return Rejection(
        f"OutOf{name}",
        f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}",
    )


def _predicate(name: str, why: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {why}")
