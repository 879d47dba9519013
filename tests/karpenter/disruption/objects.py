"""Small clusters for tests of disruption: pools, types, nodes, pods, and a simulator that does as it is told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.pods import key_of
from holokube.karpenter.disruption.view import DisruptionView
from holokube.karpenter.scheduling.results import PlannedClaim, PodError, Results
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import Requirement, Requirements
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType, Offering, type_requirements

NOW_S = 1_767_312_000.0
"""2026-01-02T00:00:00Z"""
LONG_AGO_S = NOW_S - 86_400.0
GIB = 2**30 * 1000


def instance_type(
    name: str,
    price: float = 1.0,
    *,
    cpu: int = 4,
    memory_gib: int = 16,
    zones: Sequence[str] = ("a", "b"),
    spot: float | None = None,
    on_demand: bool = True,
) -> InstanceType:
    """A type that is offered on demand, and on spot if a price for that is given."""
    offerings = [Offering(zone, "on-demand", price) for zone in zones if on_demand]
    if spot is not None:
        offerings += [Offering(zone, "spot", spot) for zone in zones]
    return InstanceType(
        name,
        type_requirements(name, "amd64", ("linux",), offerings),
        {"cpu": cpu * 1000, "memory": memory_gib * GIB, "pods": 110_000},
        {"cpu": 100, "memory": 0},
        tuple(offerings),
    )


SMALL = instance_type("small", 0.1, cpu=2, memory_gib=8)
MEDIUM = instance_type("medium", 0.2, cpu=4, memory_gib=16)
LARGE = instance_type("large", 0.4, cpu=8, memory_gib=32)
TYPES = (SMALL, MEDIUM, LARGE)


def pool(
    name: str = "default",
    *,
    policy: str = "WhenEmptyOrUnderutilized",
    after: str = "0s",
    budgets: Sequence[JsonObject] = ({"nodes": "100%"},),
    requirements: Sequence[JsonObject] = (),
    **spec: Any,
) -> NodePool:
    """A pool that lets everything go, unless told otherwise."""
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    disruption = {"consolidationPolicy": policy, "consolidateAfter": after, "budgets": list(budgets)}
    template = {"spec": {"requirements": list(requirements), "nodeClassRef": node_class}}
    return NodePool.of({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"template": template, "disruption": disruption, **spec},
    })


def pod(
    name: str,
    *,
    cpu: str = "1",
    memory: str = "1Gi",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: tuple[str, str] = ("apps/v1", "ReplicaSet"),
    phase: str = "Running",
    deleted: bool = False,
    started_s: float | None = LONG_AGO_S,
    conditions: Sequence[JsonObject] = (),
    **spec: Any,
) -> JsonObject:
    """A running pod of a workload."""
    metadata: JsonObject = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": labels or {"app": name},
        "ownerReferences": [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "uid": "o", "controller": True}],
    }
    if annotations:
        metadata["annotations"] = annotations
    if deleted:
        metadata["deletionTimestamp"] = format_time(NOW_S)
    status: JsonObject = {"phase": phase, "conditions": list(conditions)}
    if started_s is not None:
        status["startTime"] = format_time(started_s)
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "app", "image": "registry.example/app:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
        "status": status,
    }


def daemon(name: str, **more: Any) -> JsonObject:
    return pod(name, owner=("apps/v1", "DaemonSet"), **more)


def mirror(name: str, **more: Any) -> JsonObject:
    return pod(name, owner=("v1", "Node"), **more)


def pending(name: str, **more: Any) -> JsonObject:
    """A pod that the scheduler found no node for."""
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return pod(name, phase="Pending", conditions=(unschedulable,), started_s=None, **more)


def pdb(name: str, app: str, *, allowed: int = 1, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
        "status": {"disruptionsAllowed": allowed},
    }


def _condition(type: str, since_s: float = LONG_AGO_S, status: str = "True") -> JsonObject:
    return {"type": type, "status": status, "reason": type, "lastTransitionTime": format_time(since_s)}


@dataclass
class NodeSpec:
    """What a test wants to be different about a node."""

    pool: str = "default"
    type: str = "medium"
    zone: str = "a"
    capacity_type: str = "on-demand"
    pods: Sequence[JsonObject] = ()
    registered: bool = True
    initialized: bool = True
    ready: bool = True
    consolidatable: bool = True
    drifted_since_s: float | None = None
    conditions: Sequence[str] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    without_labels: Collection[str] = ()
    labels: dict[str, str] = field(default_factory=dict)
    claim_spec: JsonObject = field(default_factory=dict)
    claim_status: JsonObject = field(default_factory=dict)
    claim_deleted: bool = False
    created_s: float = LONG_AGO_S
    marked: bool = False
    nominated_until_s: float = 0.0
    taints: Sequence[JsonObject] = ()
    cpu: str = "3900m"
    memory: str = "16Gi"


def node(name: str, **spec: Any) -> StateNode:
    """A managed node that is up and has been quiet for long; keywords as in ``NodeSpec``."""
    given = NodeSpec(**spec)
    labels = {
        "karpenter.sh/nodepool": given.pool,
        "node.kubernetes.io/instance-type": given.type,
        "topology.kubernetes.io/zone": given.zone,
        "karpenter.sh/capacity-type": given.capacity_type,
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        **({"karpenter.sh/registered": "true"} if given.registered else {}),
        **({"karpenter.sh/initialized": "true"} if given.initialized else {}),
        **given.labels,
    }
    labels = {key: value for key, value in labels.items() if key not in given.without_labels}
    amounts = {"cpu": given.cpu, "memory": given.memory, "pods": "110"}
    node_object = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, "annotations": given.annotations},
        "spec": {"providerID": f"kwok://{name}", "taints": list(given.taints)},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [_condition("Ready", status="True" if given.ready else "False")],
        },
    }
    conditions = [_condition(one) for one in ("Launched", *given.conditions)]
    if given.registered:
        conditions.append(_condition("Registered"))
    if given.initialized:
        conditions.append(_condition("Initialized"))
    if given.consolidatable:
        conditions.append(_condition("Consolidatable"))
    if given.drifted_since_s is not None:
        conditions.append(_condition("Drifted", given.drifted_since_s))
    metadata: JsonObject = {
        "name": f"claim-{name}",
        "uid": f"uid-claim-{name}",
        "labels": labels,
        "annotations": given.annotations,
        "creationTimestamp": format_time(given.created_s),
    }
    if given.claim_deleted:
        metadata["deletionTimestamp"] = format_time(NOW_S)
    claim = {
        "metadata": metadata,
        "spec": given.claim_spec,
        "status": {
            "providerID": f"kwok://{name}", "nodeName": name, "capacity": amounts, "allocatable": amounts,
            "conditions": conditions, **given.claim_status,
        },
    }  # fmt: skip
    bound = tuple({**one, "spec": {**one["spec"], "nodeName": name}} for one in given.pods)
    return StateNode(node_object, claim, bound, given.marked, given.nominated_until_s)


def planned(
    owner: NodePool,
    types: Sequence[InstanceType],
    *requirements: Requirement,
    pods: Iterable[JsonObject] = (),
) -> PlannedClaim:
    """A claim as a simulation would plan it."""
    return PlannedClaim(
        owner,
        owner.template_requirements.merged(Requirements(requirements)),
        tuple(types),
        tuple(pods),
        {"cpu": 1000},
        ALL_WELL_KNOWN_LABELS,
    )


def everything_fits(existing: dict[str, list[JsonObject]] | None = None) -> Results:
    return Results([], existing or {}, {})


def fits_with(*claims: PlannedClaim) -> Results:
    return Results(list(claims), {}, {})


def nothing_fits(*pods: JsonObject) -> Results:
    return Results([], {}, {key_of(one): PodError(one, "no room") for one in pods})


class ToldSimulator:
    """Answers by the set of nodes that would go; remembers what it was asked."""

    def __init__(self, answers: Any) -> None:
        """``answers``: a result for every question, or a function of the names and pods."""
        self._answers = answers
        self.asked: list[tuple[tuple[str, ...], tuple[str, ...], bool]] = []

    def simulate(self, gone: Collection[str], pods: Sequence[JsonObject], *, is_consolidation: bool) -> Results:
        self.asked.append((tuple(gone), tuple(key_of(one) for one in pods), is_consolidation))
        answer = self._answers(tuple(gone)) if callable(self._answers) else self._answers
        assert isinstance(answer, Results)
        return answer


def view(
    nodes: Sequence[StateNode],
    *,
    pools: Sequence[NodePool] | None = None,
    types: Sequence[InstanceType] = TYPES,
    simulator: Any = None,
    **more: Any,
) -> DisruptionView:
    """A view of a cluster in which everything fits, unless told otherwise."""
    known = {one.name: one for one in (pools if pools is not None else [pool()])}
    return DisruptionView(
        now_s=NOW_S,
        nodes=tuple(nodes),
        pools=known,
        types_of_pool=dict.fromkeys(known, types),
        simulator=simulator or ToldSimulator(everything_fits()),
        **more,
    )
