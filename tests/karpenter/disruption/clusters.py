"""Seeded clusters for measuring and for property tests: many nodes, many types, pods that fill them as far as asked.

``plain`` pods ask for resources only. ``constrained`` clusters have four pools, and most of their pods spread over
zones, keep away from their like on the same host, or stay in a zone with their like, all of which holds from the
start. The same seed gives the same cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.base.rng import Rng
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType, Offering, type_requirements

NOW_S: Final = 1_767_312_000.0
_LONG_AGO: Final = "2026-01-01T00:00:00Z"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
_MIB: Final = 2**20 * 1000
_GIB: Final = 2**30 * 1000
_OVERHEAD: Final = {"cpu": 100, "memory": 10 * _MIB}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a cluster is like."""

    nodes: int = 1000
    types: int = 400
    pools: int = 1
    fill: float = 0.4
    """The share of cpu that pods ask for, on average."""
    constrained: bool = False
    snug: bool = False
    """Whether every node is of the cheapest type that holds its pods, so that hardly anything can be gained."""
    spot: bool = False
    budgets: tuple[dict[str, Any], ...] = ({"nodes": "100%"},)
    node_cpu: tuple[int, int] = (8, 32)
    """The smallest and the largest of its nodes, in cores."""
    pod_cpu_milli: tuple[int, int] = (250, 2000)


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Pools, types, nodes and the pods on them."""

    pools: tuple[NodePool, ...]
    types: tuple[InstanceType, ...]
    nodes: tuple[StateNode, ...]

    @property
    def types_of_pool(self) -> dict[str, Sequence[InstanceType]]:
        """Every pool may use every type."""
        return {pool.name: self.types for pool in self.pools}


PLAIN: Final = Shape()
CONSTRAINED: Final = Shape(pools=4, constrained=True)
CROWDED: Final = Shape(pools=4, constrained=True, fill=0.93)
"""Little room is left, so that most choices of nodes fail."""
SNUG: Final = Shape(pools=4, constrained=True, fill=0.8, snug=True)
"""Nodes fit their pods, so that nearly every candidate is looked at in vain."""


def build(seed: int | str, shape: Shape = PLAIN) -> Cluster:
    """The cluster of that seed."""
    rng = Rng(f"cluster {seed}")
    types = catalogue(shape.types)
    pools = tuple(_pool(f"pool-{number}", shape) for number in range(shape.pools))
    hosts = [_host(rng, number, types, shape) for number in range(shape.nodes)]
    _fill(rng.fork("pods"), hosts, shape)
    if shape.snug:
        for host in hosts:
            host.shrink(types)
    return Cluster(pools, types, tuple(host.state_node() for host in hosts))


def catalogue(count: int) -> tuple[InstanceType, ...]:
    """Types in three shapes, each size in all of them, on demand and spot in three zones; no two prices are equal."""
    types = []
    for number in range(count):
        cpu = number // 3 + 1
        gib_per_cpu = (2, 4, 8)[number % 3]
        name = f"{'cmr'[number % 3]}-{cpu}"
        base = 0.03 * cpu + 0.004 * cpu * gib_per_cpu
        offerings = []
        for place, zone in enumerate(ZONES):
            price = round(base * (1 + place / 1000) + number / 1e6, 6)
            offerings.append(Offering(zone, "on-demand", price))
            offerings.append(Offering(zone, "spot", round(price * (0.4 + place / 100), 6)))
        capacity = {"cpu": cpu * 1000, "memory": cpu * gib_per_cpu * _GIB, "pods": 110_000}
        requirements = type_requirements(name, "amd64", ("linux",), offerings)
        types.append(InstanceType(name, requirements, capacity, _OVERHEAD, tuple(offerings)))
    return tuple(types)


def _pool(name: str, shape: Shape) -> NodePool:
    capacity_types = ["on-demand", "spot"] if shape.spot else ["on-demand"]
    return NodePool.of({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "template": {
                "metadata": {"labels": {"team": name}},
                "spec": {
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
                        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    ],
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "0s",
                "budgets": list(shape.budgets),
            },
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })


@dataclass(slots=True, eq=False)
class _Host:
    name: str
    pool: str
    zone: str
    type: InstanceType
    capacity_type: str
    cpu_left: int
    memory_left: int
    pods: list[JsonObject] = field(default_factory=list)
    apps: set[str] = field(default_factory=set)

    def shrink(self, types: Sequence[InstanceType]) -> None:
        """Become the cheapest type that holds the pods."""
        room = self.type.allocatable
        cpu, memory = room["cpu"] - self.cpu_left, room["memory"] - self.memory_left
        fitting = [one for one in types if one.allocatable["cpu"] >= cpu and one.allocatable["memory"] >= memory]
        self.type = min(fitting, key=self.price_of)

    def price_of(self, one: InstanceType) -> float:
        """What a type costs here."""
        offering = one.offering(self.zone, self.capacity_type)
        assert offering is not None
        return offering.price_usd_per_hour

    def state_node(self) -> StateNode:
        labels = {
            "karpenter.sh/nodepool": self.pool,
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": "true",
            "karpenter.kwok.sh/kwoknodeclass": "default",
            "node.kubernetes.io/instance-type": self.type.name,
            "topology.kubernetes.io/zone": self.zone,
            "karpenter.sh/capacity-type": self.capacity_type,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": self.name,
            "team": self.pool,
        }
        amounts = {name: f"{milli}m" for name, milli in self.type.allocatable.items()}
        conditions = [
            {"type": one, "status": "True", "reason": one, "lastTransitionTime": _LONG_AGO}
            for one in ("Launched", "Registered", "Initialized", "Ready", "Consolidatable")
        ]
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name, "uid": f"uid-{self.name}", "labels": labels, "creationTimestamp": _LONG_AGO,
            },
            "spec": {"providerID": f"kwok://{self.name}"},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _LONG_AGO}],
            },
        }  # fmt: skip
        claim = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": f"claim-{self.name}", "uid": f"uid-claim-{self.name}", "labels": labels,
                "creationTimestamp": _LONG_AGO,
            },
            "spec": {"expireAfter": "720h"},
            "status": {
                "nodeName": self.name, "providerID": f"kwok://{self.name}", "capacity": amounts,
                "allocatable": amounts, "conditions": conditions,
            },
        }  # fmt: skip
        return StateNode(node, claim, tuple(self.pods))


def _host(rng: Rng, number: int, types: Sequence[InstanceType], shape: Shape) -> _Host:
    low, high = shape.node_cpu
    fitting = [one for one in types if low * 1000 <= one.capacity["cpu"] <= high * 1000]
    one = rng.choice(fitting or list(types))
    room = one.allocatable
    return _Host(
        name=f"node-{number:05}",
        pool=f"pool-{rng.randrange(shape.pools)}",
        zone=ZONES[number % len(ZONES)],
        type=one,
        capacity_type="spot" if shape.spot and rng.random() < 0.5 else "on-demand",
        cpu_left=room["cpu"],
        memory_left=room["memory"],
    )


def _fill(rng: Rng, hosts: list[_Host], shape: Shape) -> None:
    """Workloads of a few equal pods, one after the other, until so much of the cpu is asked for."""
    wanted = int(sum(host.cpu_left for host in hosts) * shape.fill)
    number = failures = 0
    while wanted > 0 and failures < 50:
        number += 1
        app = f"app-{number:05}"
        kind = rng.choice(("plain", "spread", "apart", "together")) if shape.constrained else "plain"
        low, high = shape.pod_cpu_milli
        cpu = low + rng.randrange(high - low + 1)
        memory_mib = cpu * (1 + rng.randrange(4))
        pool = f"pool-{rng.randrange(shape.pools)}" if shape.constrained and rng.random() < 0.5 else ""
        placed = _place(rng, hosts, app, kind, cpu, memory_mib, pool, 2 + rng.randrange(8))
        failures = 0 if placed else failures + 1
        wanted -= placed * cpu


def _place(
    rng: Rng, hosts: list[_Host], app: str, kind: str, cpu: int, memory_mib: int, pool: str, replicas: int
) -> int:
    """Put the pods of a workload where its constraints allow; how many could be put somewhere."""
    placed = 0
    home = rng.choice(ZONES)
    start = rng.randrange(len(ZONES))
    for replica in range(replicas):
        zone = ""
        if kind == "together":
            zone = home
        elif kind == "spread":
            zone = ZONES[(start + replica) % len(ZONES)]
        for _ in range(30):
            host = hosts[rng.randrange(len(hosts))]
            if host.cpu_left < cpu or host.memory_left < memory_mib * _MIB or len(host.pods) >= 100:
                continue
            if (zone and host.zone != zone) or (pool and host.pool != pool) or (kind == "apart" and app in host.apps):
                continue
            host.cpu_left -= cpu
            host.memory_left -= memory_mib * _MIB
            host.apps.add(app)
            host.pods.append(_pod(rng, app, f"{app}-{replica}", kind, cpu, memory_mib, pool, host.name))
            placed += 1
            break
        else:
            # The rest of a workload that spreads must not come out lopsided.
            return placed
    return placed


def _pod(
    rng: Rng, app: str, name: str, kind: str, cpu: int, memory_mib: int, pool: str, node: str
) -> JsonObject:
    requests = {"cpu": f"{cpu}m", "memory": f"{memory_mib}Mi"}
    spec: JsonObject = {
        "nodeName": node,
        "containers": [{"name": "app", "image": "registry.example/app:1", "resources": {"requests": requests}}],
    }
    selector = {"matchLabels": {"app": app}}
    if pool:
        spec["nodeSelector"] = {"team": pool}
    if kind == "spread":
        spec["topologySpreadConstraints"] = [{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }]  # fmt: skip
    elif kind in ("apart", "together"):
        which = "podAntiAffinity" if kind == "apart" else "podAffinity"
        key = "kubernetes.io/hostname" if kind == "apart" else "topology.kubernetes.io/zone"
        term = {"labelSelector": selector, "topologyKey": key}
        spec["affinity"] = {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": rng.uid(), "labels": {"app": app},
            "creationTimestamp": _LONG_AGO,
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"uid-{app}", "controller": True}
            ],
        },
        "spec": spec,
        "status": {"phase": "Running", "startTime": _LONG_AGO},
    }  # fmt: skip
