"""What becomes of pods, by what the watch tells: how long they wait, where they run, how they end, what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from holokube.base.clock import Clock
from holokube.client.informer import EventType
from holokube.kube.conditions import get_condition
from holokube.kube.resources import CPU, MEMORY
from holokube.kube.types import JsonObject
from holokube.lab.results import PodSpan
from holokube.lab.run.amounts import HOUR_MS, Area, milliseconds
from holokube.lab.run.event_log import EventLog
from holokube.lab.run.node_meter import NodeMeter, NodeRecord
from holokube.lab.run.owners import Owners, controller_of, is_daemon
from holokube.lab.run.shapes import Shapes
from holokube.lab.run.usage_meter import UsageMeter
from holokube.pricing.cost_meter import PodShare, workload_fractions

_ENDS: Final[Mapping[str, Literal["done", "failed"]]] = {"Succeeded": "done", "Failed": "failed"}
_EMPTY: Final[Mapping[str, Any]] = {}
_EVICTION: Final = "DisruptionTarget"
_BESIDE_CONTAINERS: Final = frozenset(("initContainers", "overhead", "resources"))
"""Fields of a pod's spec that make its requests more than those of its containers."""
_ALIKE_MAX: Final = 4_096
"""So many controllers are remembered before all are forgotten."""
OnUnschedulable = Callable[[str, str], None]
"""Called with ``namespace/name`` and the scheduler's words, once for each pod that finds no place at first."""
OnEvicted = Callable[[str, str, str], None]
"""Called with ``namespace/name``, and the reason and message of the condition that tells why a pod must go."""


class PodRecord(msgspec.Struct, eq=False):
    """A pod that is or was there."""

    name: str
    """``namespace/name``."""
    workload: str
    cpu_milli: int
    memory_bytes: int
    created_ms: int
    shape: int
    """Pods of one shape are placed alike; -1 for those of daemons."""
    was_there: bool = False
    """Whether it was on a node before the run began: it has not waited for one."""
    node: NodeRecord | None = None
    bound_ms: int | None = None
    ready_ms: int | None = None
    ended_ms: int | None = None
    end: Literal["", "done", "failed", "deleted", "evicted"] = ""
    is_evicted: bool = False
    is_ready: bool = False
    waits_loudly: bool = False
    """Whether the scheduler has told why it waits."""

    def span(self) -> PodSpan:
        """The life as results have it."""
        return PodSpan(
            self.name, self.workload, None if self.node is None else self.node.index, self.cpu_milli,
            self.memory_bytes, self.created_ms / 1000, _seconds(self.bound_ms), _seconds(self.ready_ms),
            _seconds(self.ended_ms), self.end,
        )  # fmt: skip


class _Alike(NamedTuple):
    """What the pods of one controller and one template have in common."""

    containers: list[JsonObject]
    """Held, so that no other list can come to lie in its place."""
    workload: str
    cpu_milli: int
    memory_bytes: int
    shape: int


class PodMeter:
    """A handler of the informer of pods."""

    def __init__(
        self, clock: Clock, nodes: NodeMeter, owners: Owners, usage: UsageMeter, log: EventLog,
        on_unschedulable: OnUnschedulable, on_evicted: OnEvicted = lambda _name, _reason, _message: None,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._nodes = nodes
        self._owners = owners
        self._usage = usage
        self._log = log
        self._on_unschedulable = on_unschedulable
        self._on_evicted = on_evicted
        self._alive: dict[str, PodRecord] = {}
        self.records: list[PodRecord] = []
        """All that ever were, in the order in which they came."""
        self.shapes = Shapes()
        self._alike: dict[tuple[str, int, str | None], _Alike] = {}
        self.pending, self.running = Area(), Area()
        self.cpu_milli, self.memory_bytes = Area(), Area()
        self.created = 0
        self.evictions = 0
        self.cost_usd: dict[str, float] = {}
        """By workload, of pods that have left their node."""
        self.has_begun = False
        nodes.on_gone = self._node_gone

    def on_event(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            assert old is not None
            self._delete(old)
            return
        uid = new["metadata"]["uid"]
        record = self._alive.get(uid)
        if record is None:
            if old is not None and old["metadata"]["uid"] != uid:
                self._delete(old)
            elif old is not None:
                # It has ended already; that it is still being written about changes nothing.
                return
            record = self._create(new)
        self._look(record, uid, new)

    def _create(self, pod: JsonObject) -> PodRecord:
        now_ms = milliseconds(self._clock.monotonic())
        meta = pod["metadata"]
        _, workload, cpu, memory, shape = self._alike_of(pod)
        record = PodRecord(f"{meta.get('namespace', '')}/{meta['name']}", workload, cpu, memory, now_ms, shape)
        self.records.append(record)
        self._alive[meta["uid"]] = record
        self.created += self.has_begun
        self.pending.add(1, now_ms)
        if self._log.is_on:
            self._log.write(now_ms, "Pod", record.name, "created", workload=workload)
        return record

    def _alike_of(self, pod: JsonObject) -> _Alike:
        meta, spec = pod["metadata"], pod["spec"]
        owner, containers = controller_of(meta), spec["containers"]
        is_plain = spec.keys().isdisjoint(_BESIDE_CONTAINERS)
        labels = meta.get("labels") or _EMPTY
        key = (
            "" if owner is None else owner["uid"], id(containers),
            labels.get("pod-template-hash") or labels.get("controller-revision-hash"),
        )  # fmt: skip
        known = self._alike.get(key) if is_plain and owner is not None else None
        if known is not None:
            return known
        cpu, memory = self.shapes.requests_of(pod)
        shape = -1 if is_daemon(pod) else self.shapes.shape_of(pod)
        found = _Alike(containers, self._owners.workload_of(pod), cpu, memory, shape)
        if is_plain and owner is not None and self._owners.knows(owner["uid"]):
            if len(self._alike) >= _ALIKE_MAX:
                self._alike.clear()
            self._alike[key] = found
        return found

    def _look(self, record: PodRecord, uid: str, pod: JsonObject) -> None:
        status = pod.get("status") or _EMPTY
        if record.bound_ms is None:
            node = pod["spec"].get("nodeName")
            if node:
                self._bind(record, uid, node)
            elif not record.waits_loudly and status.get("conditions"):
                self._hear(record, status["conditions"])
        if not record.is_evicted and pod["metadata"].get("deletionTimestamp"):
            self._see_eviction(record, pod)
        end = _ENDS.get(status.get("phase") or "")
        if end is not None:
            if end == "failed" and not record.is_evicted:
                # A pod of a lost node is marked as failed on its way out.
                self._see_eviction(record, pod)
            self._end(record, uid, "evicted" if end == "failed" and record.is_evicted else end)
            return
        if record.node is not None:
            self._see_readiness(record, uid, pod, status)

    def _bind(self, record: PodRecord, uid: str, node: str) -> None:
        now_ms = milliseconds(self._clock.monotonic())
        record.bound_ms = now_ms
        record.was_there = not self.has_begun
        self.pending.add(-1, now_ms)
        self.running.add(1, now_ms)
        host = self._nodes.by_name.get(node)
        if host is not None:
            record.node = host
            host.pods[uid] = None
            self.cpu_milli.add(record.cpu_milli, now_ms)
            self.memory_bytes.add(record.memory_bytes, now_ms)
        if self._log.is_on:
            self._log.write(now_ms, "Pod", record.name, "bound", node=node)

    def _hear(self, record: PodRecord, conditions: list[JsonObject]) -> None:
        for condition in conditions:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                record.waits_loudly = True
                self._on_unschedulable(record.name, str(condition.get("message") or condition.get("reason") or ""))

    def _see_eviction(self, record: PodRecord, pod: JsonObject) -> None:
        condition = get_condition(pod, _EVICTION)
        if condition is not None and condition.get("status") == "True":
            record.is_evicted = True
            self.evictions += self.has_begun
            now_ms = milliseconds(self._clock.monotonic())
            reason = str(condition.get("reason") or "")
            self._log.write(now_ms, "Pod", record.name, "evicted", why=reason)
            self._on_evicted(record.name, reason, str(condition.get("message") or ""))

    def _see_readiness(self, record: PodRecord, uid: str, pod: JsonObject, status: Mapping[str, Any]) -> None:
        is_ready = False
        for condition in status.get("conditions") or ():
            if condition.get("type") == "Ready":
                is_ready = condition.get("status") == "True"
                break
        if is_ready and record.ready_ms is None:
            now_ms = milliseconds(self._clock.monotonic())
            record.ready_ms = now_ms
            if self._log.is_on:
                self._log.write(now_ms, "Pod", record.name, "ready")
        if is_ready != record.is_ready:
            record.is_ready = is_ready
            self._usage.see(uid, pod)

    def _delete(self, pod: JsonObject) -> None:
        uid = pod["metadata"]["uid"]
        record = self._alive.get(uid)
        if record is not None:
            if not record.is_evicted:
                # One that is removed by force was never seen on its way out.
                self._see_eviction(record, pod)
            self._end(record, uid, "evicted" if record.is_evicted else "deleted")

    def _end(self, record: PodRecord, uid: str, end: Literal["done", "failed", "deleted", "evicted"]) -> None:
        now_ms = milliseconds(self._clock.monotonic())
        del self._alive[uid]
        record.ended_ms, record.end = now_ms, end
        if record.bound_ms is None:
            self.pending.add(-1, now_ms)
        else:
            self.running.add(-1, now_ms)
            self._leave(record, uid, now_ms)
        self._usage.forget(uid)
        if self._log.is_on:
            self._log.write(now_ms, "Pod", record.name, end)

    def _leave(self, record: PodRecord, uid: str, now_ms: int) -> None:
        """It takes no room any more, and costs nothing."""
        node = record.node
        if node is not None and uid in node.pods:
            del node.pods[uid]
            self.cpu_milli.add(-record.cpu_milli, now_ms)
            self.memory_bytes.add(-record.memory_bytes, now_ms)
            usd = _cost_usd(record, node, now_ms)
            if usd:
                self.cost_usd[record.workload] = self.cost_usd.get(record.workload, 0.0) + usd

    def _node_gone(self, node: NodeRecord) -> None:
        now_ms = milliseconds(self._clock.monotonic())
        for uid in [*node.pods]:
            record = self._alive.get(uid)
            if record is not None:
                self._leave(record, uid, now_ms)

    # What came of it

    def cost_by_workload(self, now_ms: int) -> dict[str, float]:
        """USD by whose requests took the nodes up; those that are still there up to now."""
        found = dict(self.cost_usd)
        for uid, record in self._alive.items():
            if record.node is not None and uid in record.node.pods:
                usd = _cost_usd(record, record.node, now_ms)
                if usd:
                    found[record.workload] = found.get(record.workload, 0.0) + usd
        return found

    def waits_ms(self, now_ms: int) -> list[int]:
        """From creation to a node, in order; of pods that have none yet, up to now.

        Pods that were taken away before they got one have waited until then: left out, a policy that lets them wait
        for hours would look as good as one that places them at once.
        """
        found = []
        for record in self.records:
            if record.bound_ms is not None:
                if not record.was_there:
                    found.append(record.bound_ms - record.created_ms)
            else:
                found.append((now_ms if record.ended_ms is None else record.ended_ms) - record.created_ms)
        found.sort()
        return found

    def starts_ms(self) -> list[int]:
        """From creation to ready, in order."""
        return sorted(
            record.ready_ms - record.created_ms
            for record in self.records
            if record.ready_ms is not None and not record.was_there
        )


def _cost_usd(record: PodRecord, node: NodeRecord, now_ms: int) -> float:
    """What the pod's part of its node has cost since it came.

    A scheduler puts no more on a node than it has, so that no part depends on the others.
    """
    if not node.price_nano_usd or record.bound_ms is None:
        return 0.0
    part = _part(record.cpu_milli, record.memory_bytes, node.cpu_milli, node.memory_bytes)
    return node.price_usd_per_hour * part * (now_ms - record.bound_ms) / HOUR_MS


@lru_cache(maxsize=4_096)
def _part(cpu_milli: int, memory_bytes: int, node_cpu_milli: int, node_memory_bytes: int) -> float:
    """Which part of a node a pod takes that asks for so much."""
    share = PodShare("pod", {CPU: cpu_milli, MEMORY: memory_bytes})
    return workload_fractions({CPU: node_cpu_milli, MEMORY: node_memory_bytes}, (share,))["pod"]


def _seconds(milli: int | None) -> float | None:
    return None if milli is None else milli / 1000
