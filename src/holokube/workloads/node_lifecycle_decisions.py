"""Node health as the control plane sees it: conditions, taints and zones, without I/O and without a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from holokube.kube.conditions import conditions_of, get_condition
from holokube.kube.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NODE_DISK_PRESSURE,
    NODE_MEMORY_PRESSURE,
    NODE_NETWORK_UNAVAILABLE,
    NODE_NOT_READY,
    NODE_PID_PRESSURE,
    NODE_UNREACHABLE,
    NODE_UNSCHEDULABLE,
)
from holokube.kube.timeformat import format_time, parse_micro_time, parse_time
from holokube.kube.types import JsonObject

MONITOR_GRACE_S: Final = 50.0
"""``--node-monitor-grace-period``."""
STARTUP_GRACE_S: Final = 60.0
"""``--node-startup-grace-period``, for nodes that never posted a status."""
EVICTION_RATE_PER_S: Final = 0.1
"""``--node-eviction-rate``: nodes of a zone that get a NoExecute taint per second."""
SECONDARY_EVICTION_RATE_PER_S: Final = 0.01
"""``--secondary-node-eviction-rate``, for large zones in trouble."""
LARGE_ZONE_NODES: Final = 50
"""``--large-cluster-size-threshold``: in smaller zones in trouble nothing is evicted."""
UNHEALTHY_ZONE_SHARE: Final = 0.55
"""``--unhealthy-zone-threshold``."""

_TAINTED: Final = {
    ("Ready", "False"): NODE_NOT_READY,
    ("Ready", "Unknown"): NODE_UNREACHABLE,
    ("MemoryPressure", "True"): NODE_MEMORY_PRESSURE,
    ("DiskPressure", "True"): NODE_DISK_PRESSURE,
    ("NetworkUnavailable", "True"): NODE_NETWORK_UNAVAILABLE,
    ("PIDPressure", "True"): NODE_PID_PRESSURE,
}
_MANAGED_KEYS: Final = frozenset({*_TAINTED.values(), NODE_UNSCHEDULABLE})
_HEALTH_KEYS: Final = frozenset({NODE_NOT_READY, NODE_UNREACHABLE})
_KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_LABELS: Final = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}
EXCLUDED_LABEL: Final = "node.kubernetes.io/exclude-disruption"

Zone = tuple[str, str]
"""Region and zone; both may be empty."""


@dataclass(slots=True)
class Health:
    """When a node was last heard of. Times are those of the observer: clocks of nodes are not trusted."""

    probed_at: datetime
    heartbeat: str | None
    """``lastHeartbeatTime`` of Ready when last looked at; None while there is no such condition."""
    renewed_at: datetime | None = None
    """``renewTime`` of the lease when last looked at."""

    def see_lease(self, lease: Mapping[str, Any], now: datetime) -> None:
        """A lease that was renewed since is a sign of life."""
        text = (lease.get("spec") or {}).get("renewTime")
        if not text:
            return
        renewed_at = parse_micro_time(text)
        if self.renewed_at is None or renewed_at > self.renewed_at:
            self.renewed_at = renewed_at
            self.probed_at = now

    def end_continuous(self, lease: Mapping[str, Any], now: datetime) -> None:
        """A heartbeat that was told once has ended: at the time that its lease tells."""
        text = (lease.get("spec") or {}).get("renewTime")
        self.renewed_at = parse_micro_time(text) if text else now
        self.probed_at = min(self.renewed_at, now)


def see_node(health: Health | None, node: Mapping[str, Any], now: datetime) -> Health:
    """The health after a look at the node's conditions."""
    ready = get_condition(node, "Ready")
    if ready is None:
        if health is None:
            return Health(parse_time(node["metadata"]["creationTimestamp"]), None)
        if health.heartbeat is not None:
            # The condition was taken away, which no kubelet does; it gets a fresh start.
            health.heartbeat, health.probed_at = None, now
        return health
    heartbeat = str(ready.get("lastHeartbeatTime") or "")
    if health is None:
        return Health(now, heartbeat)
    if health.heartbeat != heartbeat:
        health.heartbeat, health.probed_at = heartbeat, now
    return health


def grace_s(health: Health) -> float:
    return STARTUP_GRACE_S if health.heartbeat is None else MONITOR_GRACE_S


def silent_from(health: Health) -> datetime:
    """The moment after which the node counts as silent if nothing is heard until then."""
    return health.probed_at + timedelta(seconds=grace_s(health))


def silenced(node: Mapping[str, Any], now: datetime) -> JsonObject | None:
    """The status of a node that is silent; None if it says so already."""
    stamp = format_time(now)
    conditions = [dict(condition) for condition in conditions_of(node)]
    changed = False
    for type_ in _KUBELET_CONDITIONS:
        known = next((condition for condition in conditions if condition["type"] == type_), None)
        if known is None:
            conditions.append(
                {
                    "type": type_, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                    "lastHeartbeatTime": node["metadata"]["creationTimestamp"], "lastTransitionTime": stamp,
                }
            )  # fmt: skip
        elif known.get("status") != "Unknown":
            known.update(
                status="Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting node status.",
                lastTransitionTime=stamp,
            )  # fmt: skip
        else:
            continue
        # Upstream writes when Ready changes; the other conditions go along.
        changed = changed or type_ == "Ready"
    return {**(node.get("status") or {}), "conditions": conditions} if changed else None


def readiness(node: Mapping[str, Any]) -> str:
    """Status of Ready: True, False, Unknown, or empty while nobody posted one."""
    ready = get_condition(node, "Ready")
    return str(ready.get("status") or "") if ready is not None else ""


def wanted_execute_key(node: Mapping[str, Any]) -> str:
    """The key of the NoExecute taint that fits the node's readiness; empty for none."""
    return _TAINTED.get(("Ready", readiness(node)), "")


def execute_keys(node: Mapping[str, Any]) -> frozenset[str]:
    """The NoExecute taints for bad health that a node has."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return frozenset(t["key"] for t in taints if t.get("effect") == NO_EXECUTE) & _HEALTH_KEYS


def wanted_taints(node: Mapping[str, Any], *, execute_key: str, now: datetime) -> list[JsonObject] | None:
    """The node's taints as they should be; None when they are.

    NoSchedule taints follow the conditions and ``spec.unschedulable``; of the NoExecute taints for bad health
    only the one with ``execute_key``, if any, is there. All others are left alone.
    """
    spec = node.get("spec") or {}
    wanted = {
        (_TAINTED[pair], NO_SCHEDULE): None
        for condition in conditions_of(node)
        if (pair := (condition.get("type"), condition.get("status"))) in _TAINTED
    }
    if spec.get("unschedulable"):
        wanted[NODE_UNSCHEDULABLE, NO_SCHEDULE] = None
    if execute_key:
        wanted[execute_key, NO_EXECUTE] = None
    taints = []
    for taint in spec.get("taints") or ():
        identity = (taint["key"], taint.get("effect"))
        managed = (identity[1] == NO_SCHEDULE and identity[0] in _MANAGED_KEYS) or (
            identity[1] == NO_EXECUTE and identity[0] in _HEALTH_KEYS
        )
        if identity in wanted:
            del wanted[identity]
        elif managed:
            continue
        taints.append(taint)
    stamp = format_time(now)
    taints += [{"key": key, "effect": effect, "timeAdded": stamp} for key, effect in wanted]
    return None if taints == (spec.get("taints") or []) else taints


def wanted_labels(node: Mapping[str, Any]) -> dict[str, str]:
    """The old names of the labels for system and architecture, where they are missing or differ."""
    labels = node["metadata"].get("labels") or {}
    return {
        old: labels[name] for name, old in _LABELS.items() if name in labels and labels.get(old) != labels[name]
    }


def not_ready_pod(pod: Mapping[str, Any], now: datetime) -> JsonObject | None:
    """The Ready condition for a pod of a silent node; None when it is not Ready, or has none."""
    ready = get_condition(pod, "Ready")
    if ready is None or ready.get("status") == "False":
        return None
    return {**ready, "status": "False", "lastTransitionTime": format_time(now)}


class ZoneState(Enum):
    """How a zone is doing, which says how fast its nodes may be given up."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


def zone_of(node: Mapping[str, Any]) -> Zone:
    labels = node["metadata"].get("labels") or {}
    return (
        labels.get("topology.kubernetes.io/region") or labels.get("failure-domain.beta.kubernetes.io/region") or "",
        labels.get("topology.kubernetes.io/zone") or labels.get("failure-domain.beta.kubernetes.io/zone") or "",
    )


@dataclass(slots=True)
class Zones:
    """Ready and other nodes of each zone, kept by count."""

    _nodes: dict[str, tuple[Zone, bool]] = field(default_factory=dict)
    _counts: dict[Zone, list[int]] = field(default_factory=dict)

    def put(self, name: str, node: Mapping[str, Any] | None) -> None:
        """Takes over a node as it is now; None when it is gone."""
        self._take_out(name)
        if node is None or EXCLUDED_LABEL in (node["metadata"].get("labels") or {}):
            return
        zone, ready = zone_of(node), readiness(node) == "True"
        self._nodes[name] = (zone, ready)
        self._counts.setdefault(zone, [0, 0])[ready] += 1

    def _take_out(self, name: str) -> None:
        known = self._nodes.pop(name, None)
        if known is not None:
            counts = self._counts[known[0]]
            counts[known[1]] -= 1
            if not any(counts):
                del self._counts[known[0]]

    def state(self, zone: Zone) -> ZoneState:
        not_ready, ready = self._counts.get(zone, (0, 0))
        if not_ready and not ready:
            return ZoneState.FULL
        if not_ready > 2 and not_ready / (not_ready + ready) >= UNHEALTHY_ZONE_SHARE:
            return ZoneState.PARTIAL
        return ZoneState.NORMAL

    def eviction_rate_per_s(self, zone: Zone) -> float:
        """How many nodes of a zone may be tainted per second: 0 for none."""
        if self.all_disrupted():
            return 0.0
        if self.state(zone) is ZoneState.PARTIAL:
            return SECONDARY_EVICTION_RATE_PER_S if sum(self._counts[zone]) > LARGE_ZONE_NODES else 0.0
        return EVICTION_RATE_PER_S

    def all_disrupted(self) -> bool:
        """Whether no node of the cluster is ready: then the fault is rather on our side."""
        return bool(self._counts) and all(ready == 0 for _, ready in self._counts.values())


@dataclass(slots=True)
class Pace:
    """A token bucket of one, whose rate may change; what was saved up is kept."""

    tokens: float = 1.0
    updated_at: datetime | None = None
    rate_per_s: float = EVICTION_RATE_PER_S

    def wait_s(self, rate_per_s: float, now: datetime) -> float | None:
        """Takes a token: 0 when there was one, else how long until the next; None while there are none."""
        if self.updated_at is not None:
            passed_s = (now - self.updated_at).total_seconds()
            self.tokens = min(1.0, self.tokens + passed_s * self.rate_per_s)
        self.updated_at, self.rate_per_s = now, rate_per_s
        if rate_per_s <= 0:
            return None
        if self.tokens >= 1.0 - 1e-9:
            self.tokens -= 1.0
            return 0.0
        return (1.0 - self.tokens) / rate_per_s


