"""Metrics that tell how the cluster is now: nodes, pools and pods, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from holokube.base.clock import Clock
from holokube.client.informer import Informer
from holokube.karpenter.api.labels import CAPACITY_TYPE_LABEL, NODEPOOL_LABEL
from holokube.karpenter.api.node_claim import seconds_of
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.disruption.budgets import pool_budgets
from holokube.karpenter.disruption.types import Reason
from holokube.karpenter.metrics import PREFIX
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.requirements import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, ZONE_LABEL
from holokube.kube.resources import CPU, MEMORY, ResourceVector, subtract
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType

_WELL_KNOWN: Final = {
    "arch": ARCH_LABEL, "capacity_type": CAPACITY_TYPE_LABEL, "instance_type": INSTANCE_TYPE_LABEL,
    "nodepool": NODEPOOL_LABEL, "os": OS_LABEL, "zone": ZONE_LABEL,
}  # fmt: skip
_NODE: Final = ("node_name", *_WELL_KNOWN)
_POD: Final = (
    "name", "namespace", "owner", "node", "nodepool", "zone", "arch", "capacity_type", "instance_type", "phase",
)  # fmt: skip

Types = Callable[[], Mapping[str, Sequence[InstanceType]]]
Pools = Callable[[], Mapping[str, NodePool]]


class ClusterCollector(Collector):
    """Families of the present state; nothing is kept up to date between two scrapes."""

    def __init__(self, clock: Clock, state: ClusterState, pods: Informer, pools: Pools, types: Types) -> None:
        self._clock = clock
        self._state = state
        self._pods = pods
        self._pools = pools
        self._types = types

    def describe(self) -> list[Metric]:
        """Nothing is read when the collector is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        nodes = self._state.nodes()
        yield from self._of_state(len(nodes))
        yield from self._of_nodes(nodes)
        yield from self._of_pools(nodes)
        yield self._of_pods({node.node_name: node for node in nodes if node.node_name})

    def _of_state(self, count: int) -> Iterator[Metric]:
        yield _gauge("cluster_state_node_count", "Nodes and launched claims that are known.", count)
        synced = self._state.is_synced()
        yield _gauge("cluster_state_synced", "1 if all caches are filled and all claims launched, else 0.", synced)
        since_s = self._state.unsynced_since_s
        waited_s = 0.0 if since_s is None else self._clock.time() - since_s
        yield _gauge("cluster_state_unsynced_time_seconds", "For how long it has not been synced.", waited_s)

    def _of_nodes(self, nodes: Sequence[StateNode]) -> Iterator[Metric]:
        labels = (*_NODE, "resource_type")
        families = {
            name: GaugeMetricFamily(PREFIX + name, text, labels=labels)
            for name, text in (
                ("nodes_allocatable", "What pods may use."),
                ("nodes_total_pod_requests", "What pods of others than DaemonSets ask for."),
                ("nodes_total_daemon_requests", "What pods of DaemonSets ask for."),
                ("nodes_system_overhead", "What the system keeps for itself."),
            )
        }
        lifetime = GaugeMetricFamily(PREFIX + "nodes_current_lifetime_seconds", "The age of nodes.", labels=_NODE)
        asked: ResourceVector = {}
        total: ResourceVector = {}
        for node in nodes:
            if node.node is None:
                continue
            of_node = [node.name, *(node.labels.get(key, "") for key in _WELL_KNOWN.values())]
            created_s = seconds_of(node.node["metadata"].get("creationTimestamp"))
            lifetime.add_metric(of_node, self._clock.time() - (created_s or self._clock.time()))
            vectors = (
                node.allocatable, subtract(node.pod_requests, node.daemon_requests), node.daemon_requests,
                _overhead(node),
            )  # fmt: skip
            for family, vector in zip(families.values(), vectors, strict=True):
                for resource, milli in vector.items():
                    family.add_metric([*of_node, resource], milli / 1000)
            for resource in (CPU, MEMORY):
                asked[resource] = asked.get(resource, 0) + node.pod_requests.get(resource, 0)
                total[resource] = total.get(resource, 0) + node.allocatable.get(resource, 0)
        yield from families.values()
        yield lifetime
        use = GaugeMetricFamily(
            PREFIX + "cluster_utilization_percent", "Requests by allocatable.", labels=("resource_type",)
        )
        for resource, milli in total.items():
            use.add_metric([resource], 100 * asked[resource] / milli if milli else 0.0)
        yield use

    def _of_pools(self, nodes: Sequence[StateNode]) -> Iterator[Metric]:
        pools = self._pools()
        by_resource = ("nodepool", "resource_type")
        limit = GaugeMetricFamily(PREFIX + "nodepools_limit", "Limits of pools.", labels=by_resource)
        usage = GaugeMetricFamily(PREFIX + "nodepools_usage", "What the nodes of pools have.", labels=by_resource)
        cost = GaugeMetricFamily(PREFIX + "nodepools_cost_total", "Dollars per hour.", labels=("nodepool",))
        for name, pool in pools.items():
            for family, vector in ((limit, pool.limits or {}), (usage, self._state.usage_of(name))):
                for resource, milli in vector.items():
                    family.add_metric([name, resource], milli / 1000)
        for name, dollars in pool_costs(nodes, self._types()).items():
            cost.add_metric([name], dollars)
        yield from (limit, usage, cost)
        by_reason = ("nodepool", "reason")
        allowed = GaugeMetricFamily(
            PREFIX + "nodepools_allowed_disruptions", "How many nodes budgets let go now.", labels=by_reason
        )
        consuming = GaugeMetricFamily(
            PREFIX + "nodepools_nodes_consuming_budgets", "Nodes that count against budgets.", labels=by_reason
        )
        for reason in Reason:
            for name, budget in pool_budgets(pools, tuple(nodes), self._clock.time(), reason).items():
                allowed.add_metric([name, reason.value.lower()], budget.left)
                consuming.add_metric([name, reason.value.lower()], budget.count.disrupting)
        yield from (allowed, consuming)

    def _of_pods(self, nodes: Mapping[str, StateNode]) -> Metric:
        family = GaugeMetricFamily(PREFIX + "pods_state", "1 for each pod, with where and how it is.", labels=_POD)
        for pod in self._pods.lister:
            metadata, name = pod["metadata"], (pod.get("spec") or {}).get("nodeName") or ""
            labels = nodes[name].labels if name in nodes else {}
            family.add_metric(
                [
                    metadata["name"], metadata.get("namespace", ""), _owner(pod), name,
                    *(labels.get(_WELL_KNOWN[key], "") for key in ("nodepool", "zone", "arch", "capacity_type")),
                    labels.get(INSTANCE_TYPE_LABEL, ""), str((pod.get("status") or {}).get("phase") or ""),
                ],
                1,
            )  # fmt: skip
        return family


def pool_costs(nodes: Sequence[StateNode], types: Mapping[str, Sequence[InstanceType]]) -> dict[str, float]:
    """What the nodes of each pool cost by the hour, those on their way out as well."""
    by_name = {pool: {one.name: one for one in offered} for pool, offered in types.items()}
    costs: dict[str, float] = dict.fromkeys(types, 0.0)
    for node in nodes:
        one = by_name.get(node.pool_name, {}).get(node.labels.get(INSTANCE_TYPE_LABEL, ""))
        place = node.labels.get(ZONE_LABEL, ""), node.labels.get(CAPACITY_TYPE_LABEL, "")
        offering = one.offering(*place) if one is not None else None
        if offering is not None:
            costs[node.pool_name] += offering.price_usd_per_hour
    return costs


def _overhead(node: StateNode) -> ResourceVector:
    capacity, allocatable = node.capacity, node.allocatable
    return {name: capacity[name] - milli for name, milli in allocatable.items() if name in capacity}


def _owner(pod: JsonObject) -> str:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner['kind']}/{owner['name']}"
    return ""


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)
