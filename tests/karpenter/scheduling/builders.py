"""Pools, types, pods and nodes for tests of the solver: small, and changed by keyword."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.scheduling.solver import Solver
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.resources import parse_resources
from holokube.pricing.instance_types import InstanceType, Offering, type_requirements

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
CAPACITY = "karpenter.sh/capacity-type"
TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
CPU_LABEL = "example.com/cpu"
FAMILY = "example.com/family"
ZONES = ("zone-a", "zone-b", "zone-c")
WELL_KNOWN = ALL_WELL_KNOWN_LABELS | {CPU_LABEL, FAMILY}

JsonObject = dict[str, Any]


def instance_type(
    name: str, cpu: int, *, memory_gib: int | None = None, zones: Sequence[str] = ZONES, spot: bool = False,
    price: float | None = None, pods: int = 110, arch: str = "amd64", family: str = "m",
    offerings: Sequence[Offering] | None = None, resources: Mapping[str, str] | None = None,
) -> InstanceType:  # fmt: skip
    """A type without overhead that is offered on demand (and on spot) in all zones, by default for its cpus."""
    cost = float(cpu) if price is None else price
    places = offerings or tuple(
        Offering(zone, kind, cost * (0.5 if kind == "spot" else 1.0))
        for zone in zones
        for kind in (("on-demand", "spot") if spot else ("on-demand",))
    )
    amounts = {"cpu": str(cpu), "memory": f"{memory_gib or 4 * cpu}Gi", "pods": str(pods), **(resources or {})}
    labels = {CPU_LABEL: str(cpu), FAMILY: family}
    requirements = type_requirements(name, arch, ("linux",), places, labels)
    return InstanceType(name, requirements, parse_resources(amounts), {}, tuple(places))


SIZES = tuple(instance_type(f"m-{cpu}", cpu) for cpu in (1, 2, 4, 8))


def pool(
    name: str = "default", *, weight: int = 0, requirements: Sequence[JsonObject] = (),
    labels: Mapping[str, str] | None = None, taints: Sequence[JsonObject] = (),
    startup_taints: Sequence[JsonObject] = (), limits: Mapping[str, str] | None = None, consolidate_after: str = "0s",
) -> NodePool:  # fmt: skip
    spec: JsonObject = {
        "template": {
            "metadata": {"labels": dict(labels or {})},
            "spec": {
                "requirements": list(requirements), "taints": list(taints), "startupTaints": list(startup_taints),
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            },
        },
        "disruption": {"consolidateAfter": consolidate_after},
    }  # fmt: skip
    if weight:
        spec["weight"] = weight
    if limits is not None:
        spec["limits"] = dict(limits)
    return NodePool.of({"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec})


def need(key: str, operator: str, *values: str, min_values: int | None = None) -> JsonObject:
    """A requirement."""
    found: JsonObject = {"key": key, "operator": operator}
    if values:
        found["values"] = list(values)
    if min_values is not None:
        found["minValues"] = min_values
    return found


def pod(
    name: str, cpu: str = "500m", memory: str = "100Mi", *, app: str = "", uid: str = "", ports: Sequence[int] = (),
    **spec: Any,
) -> JsonObject:  # fmt: skip
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    if ports:
        container["ports"] = [{"hostPort": port, "protocol": "TCP"} for port in ports]
    metadata: JsonObject = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"}
    if app:
        metadata["labels"] = {"app": app}
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def pods(count: int, prefix: str = "p", **more: Any) -> list[JsonObject]:
    return [pod(f"{prefix}{number}", **more) for number in range(count)]


def selects(app: str) -> JsonObject:
    return {"matchLabels": {"app": app}}


def spread(key: str, app: str, *, skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> JsonObject:
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, "labelSelector": selects(app), **more}


def required_nodes(*terms: Sequence[JsonObject]) -> JsonObject:
    """Required node affinity with alternatives."""
    listed = [{"matchExpressions": list(term)} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def preferred_nodes(*wishes: tuple[int, JsonObject]) -> JsonObject:
    listed = [{"weight": weight, "preference": {"matchExpressions": [e]}} for weight, e in wishes]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": listed}}


def required_pods(kind: str, key: str, app: str) -> JsonObject:
    """Required ``podAffinity`` or ``podAntiAffinity``."""
    term = {"topologyKey": key, "labelSelector": selects(app)}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def preferred_pods(kind: str, key: str, app: str, weight: int = 1) -> JsonObject:
    term = {"topologyKey": key, "labelSelector": selects(app)}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}}


def state_node(
    name: str, *, cpu: str = "4", memory: str = "16Gi", zone: str = "zone-a", labels: Mapping[str, str] | None = None,
    taints: Sequence[JsonObject] = (), bound: Iterable[JsonObject] = (), managed_by: str = "default",
    is_initialized: bool = True, is_marked: bool = False, startup_taints: Sequence[JsonObject] = (),
    claim_status: JsonObject | None = None,
) -> StateNode:  # fmt: skip
    """A node of a pool; of none if ``managed_by`` is empty."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    shown = {HOST: name, ZONE: zone, CAPACITY: "on-demand", ARCH: "amd64", **(labels or {})}
    if managed_by:
        ready = "true" if is_initialized else "false"
        shown |= {"karpenter.sh/registered": "true", "karpenter.sh/initialized": ready}
        shown["karpenter.sh/nodepool"] = managed_by
    node = {
        "metadata": {"name": name, "labels": shown}, "spec": {"taints": list(taints), "providerID": f"kwok://{name}"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }  # fmt: skip
    claim = {
        "metadata": {"name": f"claim-{name}", "labels": shown}, "spec": {"startupTaints": list(startup_taints)},
        "status": {"capacity": amounts, "allocatable": amounts, "providerID": f"kwok://{name}", **(claim_status or {})},
    }  # fmt: skip
    running = tuple(
        {**one, "spec": {**one["spec"], "nodeName": name}, "status": {"phase": "Running"}} for one in bound
    )
    return StateNode(node, claim if managed_by else None, running, is_marked)


def problem(
    pods: Sequence[JsonObject], *, pools: Sequence[NodePool] | None = None, types: Any = SIZES, **more: Any
) -> Problem:
    """A problem; all pools have all types, unless ``types`` says by name which they have."""
    listed = [pool()] if pools is None else list(pools)
    by_pool = types if isinstance(types, dict) else {one.name: types for one in listed}
    return Problem(listed, by_pool, pods, well_known=WELL_KNOWN, **more)


def solve(pods: Sequence[JsonObject], **more: Any) -> Results:
    """The solution of such a problem."""
    return Solver(problem(pods, **more)).solve()


def placed(results: Results) -> list[list[str]]:
    """Names of the pods on each new node."""
    return [[one["metadata"]["name"] for one in claim.pods] for claim in results.new_claims]


def failed(results: Results) -> set[str]:
    return {pod_key(error.pod).partition("/")[2] for error in results.failed.values()}


def zone_counts(results: Results) -> list[int]:
    """Pods by zone, most first, over nodes whose zone is decided."""
    counts: dict[str, int] = {}
    for claim in results.new_claims:
        (zone,) = claim.requirements[ZONE].values
        counts[zone] = counts.get(zone, 0) + len(claim.pods)
    return sorted(counts.values(), reverse=True)
