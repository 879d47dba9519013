"""What becomes of nodes, by what the watch tells: lives, prices, hours by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.client.informer import EventType
from holokube.cluster.cloud import capacity_type_of
from holokube.kube.conditions import is_true
from holokube.kube.requirements import INSTANCE_TYPE_LABEL, NODEPOOL_LABEL, ZONE_LABEL
from holokube.kube.resources import CPU, MEMORY, parse_resources
from holokube.kube.types import JsonObject
from holokube.lab.results import NodeSpan
from holokube.lab.run.amounts import HOUR_MS, NANO_USD, Area, milliseconds
from holokube.lab.run.event_log import EventLog
from holokube.lab.run.prices import price_usd_per_hour
from holokube.pricing.instance_types import Catalog

GROUP_ANNOTATION: Final = "cluster-autoscaler.kwok.nodegroup/name"
_UNKNOWN_TYPE: Final = "unknown"


@dataclass(slots=True, eq=False)
class NodeRecord:
    """A node that is or was there."""

    index: int
    name: str
    uid: str
    group: str
    instance_type: str
    zone: str
    capacity_type: str
    price_nano_usd: int
    """Per hour."""
    cpu_milli: int
    memory_bytes: int
    created_ms: int
    claim: str = ""
    """Its NodeClaim, if it has one."""
    is_ready: bool = False
    ready_ms: int | None = None
    removed_ms: int | None = None
    why_added: str = ""
    why_removed: str = ""
    pods: dict[str, None] = field(default_factory=dict)
    """Uids of pods that take room."""

    @property
    def price_usd_per_hour(self) -> float:
        return self.price_nano_usd / NANO_USD

    def span(self) -> NodeSpan:
        """The life as results have it."""
        return NodeSpan(
            self.name, self.group, self.instance_type, self.zone, self.capacity_type, self.price_usd_per_hour,
            self.cpu_milli, self.memory_bytes, self.created_ms / 1000, _seconds(self.ready_ms),
            _seconds(self.removed_ms), self.why_added, self.why_removed,
        )  # fmt: skip


class NodeMeter:
    """A handler of the informer of nodes."""

    def __init__(self, clock: Clock, catalog: Catalog | None, log: EventLog) -> None:
        self._clock = clock
        self._catalog = catalog
        self._log = log
        self.records: list[NodeRecord] = []
        """All that ever were, in the order in which they came."""
        self.by_name: dict[str, NodeRecord] = {}
        """Those that are there."""
        self.nodes, self.ready, self.price_nano_usd = Area(), Area(), Area()
        self.cpu_milli, self.memory_bytes = Area(), Area()
        self.by_type: dict[str, Area] = {}
        self.by_group: dict[str, int] = {}
        self.most = 0
        self.launches = 0
        self.removals = 0
        self.has_begun = False
        """Nodes before the beginning were there from the start, and nobody has launched them."""
        self.on_gone: Callable[[NodeRecord], None] = _nothing
        self.on_added: Callable[[NodeRecord], None] = _nothing

    def on_event(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        meta = obj["metadata"]
        record = self.by_name.get(meta["name"])
        if record is not None and (new is None or record.uid != meta["uid"]):
            self._remove(record)
            record = None
        if new is None:
            return
        if record is None:
            record = self._add(new)
        self._look(record, new)

    def _add(self, node: JsonObject) -> NodeRecord:
        now_ms = milliseconds(self._clock.monotonic())
        meta = node["metadata"]
        labels: Mapping[str, str] = meta.get("labels") or {}
        price = round(price_usd_per_hour(node, self._catalog) * NANO_USD)
        group = str(
            labels.get(NODEPOOL_LABEL) or (meta.get("annotations") or {}).get(GROUP_ANNOTATION) or ""
        )
        cpu, memory = _allocatable(node)
        record = NodeRecord(
            len(self.records), meta["name"], meta["uid"], group, labels.get(INSTANCE_TYPE_LABEL, _UNKNOWN_TYPE),
            labels.get(ZONE_LABEL, ""), capacity_type_of(labels), price, cpu, memory, now_ms,
            # Karpenter's nodes are named by their machine, and known to it by the claim's name as their host name.
            claim=labels.get("kubernetes.io/hostname", "") if NODEPOOL_LABEL in labels else "",
        )  # fmt: skip
        self.records.append(record)
        self.by_name[record.name] = record
        self.nodes.add(1, now_ms)
        self.most = max(self.most, self.nodes.amount)
        self.launches += self.has_begun
        self.price_nano_usd.add(price, now_ms)
        self.cpu_milli.add(cpu, now_ms)
        self.memory_bytes.add(memory, now_ms)
        self.by_type.setdefault(record.instance_type, Area()).add(1, now_ms)
        self.by_group[group] = self.by_group.get(group, 0) + 1
        self.on_added(record)
        self._log.write(now_ms, "Node", record.name, "created", type=record.instance_type, group=group,
                        zone=record.zone)  # fmt: skip
        return record

    def _look(self, record: NodeRecord, node: JsonObject) -> None:
        """Readiness, and sizes that the kubelet told later than the object came."""
        is_ready = is_true(node, "Ready")
        if is_ready != record.is_ready:
            now_ms = milliseconds(self._clock.monotonic())
            record.is_ready = is_ready
            self.ready.add(1 if is_ready else -1, now_ms)
            if is_ready and record.ready_ms is None:
                record.ready_ms = now_ms
            self._log.write(now_ms, "Node", record.name, "ready" if is_ready else "not ready")
        if not record.cpu_milli and not record.memory_bytes:
            cpu, memory = _allocatable(node)
            if cpu or memory:
                now_ms = milliseconds(self._clock.monotonic())
                record.cpu_milli, record.memory_bytes = cpu, memory
                self.cpu_milli.add(cpu, now_ms)
                self.memory_bytes.add(memory, now_ms)

    def _remove(self, record: NodeRecord) -> None:
        now_ms = milliseconds(self._clock.monotonic())
        record.removed_ms = now_ms
        del self.by_name[record.name]
        if record.is_ready:
            self.ready.add(-1, now_ms)
        self.nodes.add(-1, now_ms)
        self.removals += self.has_begun
        self.price_nano_usd.add(-record.price_nano_usd, now_ms)
        self.cpu_milli.add(-record.cpu_milli, now_ms)
        self.memory_bytes.add(-record.memory_bytes, now_ms)
        self.by_type[record.instance_type].add(-1, now_ms)
        self.by_group[record.group] -= 1
        self.on_gone(record)
        self._log.write(now_ms, "Node", record.name, "removed")

    # What came of it

    def cost_usd(self, now_ms: int) -> float:
        """What all nodes have cost."""
        return self.price_nano_usd.until(now_ms) / (NANO_USD * HOUR_MS)

    def node_hours(self, now_ms: int) -> float:
        return self.nodes.until(now_ms) / HOUR_MS

    def hours_by_type(self, now_ms: int) -> dict[str, float]:
        """By name."""
        return {name: round(self.by_type[name].until(now_ms) / HOUR_MS, 6) for name in sorted(self.by_type)}


def _allocatable(node: Mapping[str, Any]) -> tuple[int, int]:
    """Millicores and bytes."""
    status = node.get("status") or {}
    amounts = parse_resources(status.get("allocatable") or status.get("capacity"))
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0) // 1000


def _seconds(milli: int | None) -> float | None:
    return None if milli is None else milli / 1000


def _nothing(_record: NodeRecord) -> None:
    """Nobody wants to know."""
