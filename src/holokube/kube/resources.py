"""Resource amounts as integers, and what a pod asks for in all.

A resource vector maps names to **milli-units**: thousandths of a core for ``cpu``, thousandths of a byte for
``memory``, thousandths of a piece for everything else. The API server stores no finer amounts, so this is
exact, and one unit for all names spares every sum and comparison a case distinction. Vectors are plain dicts,
never changed in place; a missing name means zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from holokube.kube import names
from holokube.kube.quantity import Format, Quantity, milli_of

ResourceVector: TypeAlias = dict[str, int]
"""Milli-units by resource name."""

QosClass: TypeAlias = Literal["Guaranteed", "Burstable", "BestEffort"]

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
STORAGE: Final = "storage"
HUGEPAGES_PREFIX: Final = "hugepages-"

NONZERO_REQUESTS: Final[Mapping[str, int]] = {CPU: 100, MEMORY: 200 * 1024 * 1024 * 1000}
"""What the scheduler's scoring assumes for a container that requests nothing: 100m cpu, 200Mi memory."""

_BINARY_NAMES: Final = frozenset({MEMORY, EPHEMERAL_STORAGE, STORAGE})
_EMPTY: Final[Mapping[str, Any]] = {}


def parse_resources(resources: Mapping[str, str | int | float] | None) -> ResourceVector:
    """The vector in a ``requests``, ``limits``, ``capacity`` or ``allocatable`` map."""
    if not resources:
        return {}
    return {name: milli_of(amount) for name, amount in resources.items()}


def to_quantity(name: str, milli: int) -> Quantity:
    """An amount as a quantity; bytes get binary suffixes, everything else decimal ones."""
    binary = name in _BINARY_NAMES or name.startswith(HUGEPAGES_PREFIX)
    return Quantity.from_milli(milli, Format.BINARY_SI if binary else Format.DECIMAL_SI)


def to_json(vector: Mapping[str, int]) -> dict[str, str]:
    """The map of canonical texts that goes into an object."""
    return {name: str(to_quantity(name, milli)) for name, milli in vector.items()}


def add(a: Mapping[str, int], b: Mapping[str, int]) -> ResourceVector:
    """The sum."""
    total = dict(a)
    for name, milli in b.items():
        total[name] = total.get(name, 0) + milli
    return total


def total_of(vectors: Iterable[Mapping[str, int]]) -> ResourceVector:
    """The sum of any number of vectors."""
    total: ResourceVector = {}
    for vector in vectors:
        for name, milli in vector.items():
            total[name] = total.get(name, 0) + milli
    return total


def subtract(a: Mapping[str, int], b: Mapping[str, int]) -> ResourceVector:
    """``a`` without ``b``; amounts may become negative."""
    rest = dict(a)
    for name, milli in b.items():
        rest[name] = rest.get(name, 0) - milli
    return rest


def maximum(a: Mapping[str, int], b: Mapping[str, int]) -> ResourceVector:
    """The larger amount of each name. A name that only one has keeps its amount, even below zero."""
    larger = dict(a)
    for name, milli in b.items():
        if name not in larger or milli > larger[name]:
            larger[name] = milli
    return larger


def scale(vector: Mapping[str, int], factor: int) -> ResourceVector:
    """So many times as much."""
    return {name: milli * factor for name, milli in vector.items()}


def fits(requests: Mapping[str, int], available: Mapping[str, int]) -> bool:
    """Whether everything asked for is there. Zero of something fits even where less than nothing is left."""
    for name, milli in requests.items():  # noqa: SIM110 - a plain loop costs half of all() with a generator
        if milli > 0 and milli > available.get(name, 0):
            return False
    return True


def lacking(requests: Mapping[str, int], available: Mapping[str, int]) -> list[str]:
    """The names of which not enough is there, in the order they were asked for."""
    return [name for name, milli in requests.items() if milli > 0 and milli > available.get(name, 0)]


def is_pod_level_resource(name: str) -> bool:
    """Whether ``spec.resources`` of a pod has a say about this resource."""
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)


def pod_requests(
    pod: Mapping[str, Any],
    *,
    use_status: bool = False,
    exclude_overhead: bool = False,
    skip_pod_level: bool = False,
    use_claim_status: bool = False,
    assume_missing: Mapping[str, int] | None = None,
) -> ResourceVector:
    """What a pod (or anything with a pod's ``spec``) requests in all, by upstream's rules.

    ``use_status``: a pod in the middle of a resize counts with the largest of desired, allocated and actual.
    ``use_claim_status``: add what ResourceClaims hold of the node's own resources.
    ``assume_missing``: amounts for containers that do not mention a resource; a written zero stays zero.
    """
    spec = pod.get("spec") or _EMPTY
    requests = _container_total(pod, spec, "requests", use_status, assume_missing)
    if use_claim_status:
        claims = (pod.get("status") or _EMPTY).get("nodeAllocatableResourceClaimStatuses") or ()
        requests = total_of((requests, *(parse_resources(claim.get("resources")) for claim in claims)))
    if not skip_pod_level and spec.get("resources"):
        requests.update(_pod_level(pod, spec, "requests", use_status))
    if not exclude_overhead and spec.get("overhead"):
        requests = add(requests, parse_resources(spec["overhead"]))
    return requests


def pod_limits(
    pod: Mapping[str, Any],
    *,
    use_status: bool = False,
    exclude_overhead: bool = False,
    skip_pod_level: bool = False,
) -> ResourceVector:
    """What a pod is limited to in all. Overhead is added only to limits that exist."""
    spec = pod.get("spec") or _EMPTY
    limits = _container_total(pod, spec, "limits", use_status, None)
    if not skip_pod_level and spec.get("resources"):
        limits.update(_pod_level(pod, spec, "limits", use_status))
    if not exclude_overhead:
        for name, milli in parse_resources(spec.get("overhead")).items():
            if limits.get(name):
                limits[name] += milli
    return limits


_Kind: TypeAlias = Literal["requests", "limits"]


def _container_total(
    pod: Mapping[str, Any],
    spec: Mapping[str, Any],
    kind: _Kind,
    use_status: bool,
    assume_missing: Mapping[str, int] | None,
) -> ResourceVector:
    """Containers and sidecars run together; an init container runs beside the sidecars started before it."""
    statuses = _statuses_by_name(pod) if use_status else _EMPTY
    total: ResourceVector = {}
    for container in spec.get("containers") or ():
        amounts = _of_container(pod, container, kind, statuses, assume_missing)
        total = add(total, amounts) if total else amounts
    init_containers = spec.get("initContainers")
    if not init_containers:
        # The sum of one container may be shared, but the result belongs to the caller.
        return dict(total)
    sidecars: ResourceVector = {}
    peak: ResourceVector = {}
    for container in init_containers:
        if container.get("restartPolicy") == "Always":
            amounts = _of_container(pod, container, kind, statuses, assume_missing)
            total = add(total, amounts)
            sidecars = add(sidecars, amounts)
            peak = maximum(peak, sidecars)
        else:
            # Only sidecars can be resized, so an ordinary init container counts as it is written.
            amounts = _of_container(pod, container, kind, _EMPTY, assume_missing)
            peak = maximum(peak, add(amounts, sidecars))
    return maximum(total, peak)


def _of_container(
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    kind: _Kind,
    statuses: Mapping[str, Mapping[str, Any]],
    assume_missing: Mapping[str, int] | None,
) -> ResourceVector:
    amounts = parse_resources((container.get("resources") or _EMPTY).get(kind))
    status = statuses.get(container.get("name", ""))
    if status is not None and status.get("resources") is not None:
        amounts = _during_resize(pod, amounts, status, kind)
    if assume_missing:
        amounts = {**assume_missing, **amounts}
    return amounts


def _during_resize(
    pod: Mapping[str, Any], desired: ResourceVector, status: Mapping[str, Any], kind: _Kind
) -> ResourceVector:
    """The largest of desired, actual and (for requests) allocated; an infeasible desire is ignored."""
    amounts = parse_resources((status.get("resources") or _EMPTY).get(kind))
    if kind == "requests":
        amounts = maximum(amounts, parse_resources(status.get("allocatedResources")))
    return amounts if is_resize_infeasible(pod) else maximum(desired, amounts)


def _pod_level(
    pod: Mapping[str, Any], spec: Mapping[str, Any], kind: _Kind, use_status: bool
) -> ResourceVector:
    """The amounts of ``spec.resources``, which stand instead of the containers' sum."""
    desired = parse_resources(spec["resources"].get(kind))
    amounts = desired
    status = pod.get("status") or _EMPTY
    actual = status.get("resources") if use_status else None
    # An infeasible limit still stands if no actual limits are known at all.
    limits_unknown = actual is not None and kind == "limits" and actual.get("limits") is None
    if actual is not None and not (limits_unknown and is_resize_infeasible(pod)):
        amounts = _during_resize(pod, desired, status, kind)
    return {name: amounts.get(name, 0) for name in desired if is_pod_level_resource(name)}


def _statuses_by_name(pod: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    status = pod.get("status") or _EMPTY
    return {
        container.get("name", ""): container
        for field in ("containerStatuses", "initContainerStatuses")
        for container in status.get(field) or ()
    }


def is_resize_infeasible(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet has said that the node can never grant the desired resources."""
    for condition in (pod.get("status") or _EMPTY).get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def qos_class(pod: Mapping[str, Any]) -> QosClass:
    """The quality-of-service class, from cpu and memory of all containers or of the pod as a whole."""
    spec = pod.get("spec") or _EMPTY
    requests: ResourceVector = {}
    limits: ResourceVector = {}
    guaranteed = True
    pod_level = spec.get("resources")
    if pod_level is not None:
        requests = _qos_amounts(pod_level.get("requests"))
        limits = _qos_amounts(pod_level.get("limits"))
        # Upstream asks for both limits only if any limit is written at all.
        guaranteed = not pod_level.get("limits") or len(limits) == 2
    else:
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or _EMPTY
            requests = add(requests, _qos_amounts(resources.get("requests")))
            container_limits = _qos_amounts(resources.get("limits"))
            limits = add(limits, container_limits)
            guaranteed = guaranteed and len(container_limits) == 2
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _qos_amounts(resources: Mapping[str, str | int | float] | None) -> ResourceVector:
    amounts = parse_resources(resources)
    return {name: amounts[name] for name in (CPU, MEMORY) if amounts.get(name, 0) > 0}


def is_native_resource(name: str) -> bool:
    """Whether a resource belongs to Kubernetes itself: ``cpu``, ``hugepages-2Mi``, anything under kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """Whether a resource is one of a device plugin, such as ``nvidia.com/gpu``."""
    if is_native_resource(name) or name.startswith("requests."):
        return False
    return not names.is_qualified_name(f"requests.{name}")
