"""Whether a node takes a pod that was bound to it: the checks a kubelet makes itself, with its own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holokube.hollow.pod_state import Rejection
from holokube.kube.affinity import RequiredNodeAffinity
from holokube.kube.resources import CPU, PODS, is_extended_resource, pod_requests
from holokube.kube.taints import find_untolerated, taints_of, tolerations_of

# The scheduler's fit looks at these before the others, and only the first failure is reported.
_ORDER = ("cpu", "memory", "ephemeral-storage")


def requests_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """What the pod counts on its node, in milli-units."""
    return dict(pod_requests(pod))


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
    if not RequiredNodeAffinity.of_pod(pod).matches_node(node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    taken = set(host_ports)
    if any(_collides(port, taken) for port in host_ports_of(pod)):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    taints = [taint for taint in taints_of(node) if taint.effect == "NoExecute"]
    if taints and find_untolerated(taints, tolerations_of(pod)) is not None:
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


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
