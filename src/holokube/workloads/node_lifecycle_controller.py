"""Watches over nodes: who is silent for too long becomes Unknown, is tainted, and its pods count as not ready.

Upstream looks at all nodes every five seconds. Here a lease renewal is only noted, and each node is looked at
again when it would become silent: a thousand healthy nodes cost next to nothing. Silence is found at the next
full five seconds, as upstream would. Nodes of a zone are tainted NoExecute one by one, at the zone's pace, as
upstream does; that tainting waits for one tenth of a second, so that nodes which fall silent together are all
counted before the first is given up.
"""

from __future__ import annotations

import asyncio
import heapq
from datetime import datetime, timedelta
from typing import Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.audience import STATUS
from holokube.client.client import Client, PatchType
from holokube.client.informer import EventType
from holokube.client.resources import LEASES, NODES, PODS
from holokube.kube.errors import NotFound
from holokube.kube.heartbeats import is_continuous
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, Need, enqueue_self
from holokube.runtime.stop import StopSignal
from holokube.workloads import node_lifecycle_decisions as decisions
from holokube.workloads.node_lifecycle_decisions import Health, Pace, Zone, Zones
from holokube.workloads.pod_indexes import NODE_INDEX, by_node, pods_by_node

NAME: Final = "node-controller"
LEASE_NAMESPACE: Final = "kube-node-lease"
MONITOR_PERIOD_S: Final = 5.0
"""``--node-monitor-period``."""
EVICTION_PERIOD_S: Final = 0.1
SILENT_INDEX: Final = "silent"
SILENT: Final = "silent"
WORKERS: Final = 8


def _silent(node: JsonObject) -> tuple[str, ...]:
    return (SILENT,) if decisions.readiness(node) == "Unknown" else ()


class NodeLifecycle:
    """A component of the app."""

    name = NAME

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._node_informer = informers.indexed(NODES, SILENT_INDEX, _silent, heeds=STATUS)
        self._lease_informer = informers.get(LEASES)
        self._nodes = self._node_informer.lister
        self._leases = self._lease_informer.lister
        pods = pods_by_node(informers)
        self._pods = pods.lister
        self._controller: Controller[str] = Controller(
            clock, NAME, self.reconcile, workers=WORKERS,
            sources=[
                InformerSource(self._node_informer, enqueue_self),
                # A pod that is bound to a node which has just fallen silent is told so as well.
                InformerSource(
                    pods, by_node, concerns=self._concerns_silent, needs=Need(self._node_informer, self._has_silent)
                ),
            ],
        )  # fmt: skip
        self._reset()

    def _reset(self) -> None:
        self._known: dict[str, JsonObject] = {}
        self._health: dict[str, Health] = {}
        self._deadlines: list[tuple[datetime, str]] = []
        self._watched: set[str] = set()
        self._bad_since: dict[str, datetime] = {}
        self._zones = Zones()
        self._paces: dict[Zone, Pace] = {}
        self._all_disrupted = False
        self._wake = asyncio.Event()

    async def run(self, stop: StopSignal) -> None:
        """Watches until the stop. What it knows of the nodes' signs of life starts anew each time."""
        self._reset()
        detach = self._lease_informer.add_handler(self._on_lease)
        monitor = asyncio.create_task(self._monitor(), name=f"{NAME}-monitor")
        try:
            await self._controller.run(stop)
        finally:
            detach()
            monitor.cancel()
            await asyncio.wait([monitor])

    # Signs of life

    def _on_lease(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None or new["metadata"].get("namespace") != LEASE_NAMESPACE:
            return
        name = new["metadata"]["name"]
        health = self._health.get(name)
        if health is None:
            return
        if is_continuous(old) and not is_continuous(new):
            # Nobody has been counting until now; the last sign of life is the one that is told.
            health.end_continuous(new, self._clock.now())
            self._controller.enqueue(name)
        else:
            health.see_lease(new, self._clock.now())

    def _beats(self, name: str) -> bool:
        """Whether the node gives signs of life all the time, which need no watching."""
        return is_continuous(self._leases.get(name, LEASE_NAMESPACE))

    async def _monitor(self) -> None:
        """Has those looked at who would be silent by now, unless they gave a sign of life meanwhile."""
        while True:
            self._wake.clear()
            try:
                async with asyncio.timeout(self._next_look_s()):
                    await self._wake.wait()
                continue
            except TimeoutError:
                pass
            now = self._clock.now()
            while self._deadlines and self._deadlines[0][0] < now:
                _, name = heapq.heappop(self._deadlines)
                health = self._health.get(name)
                if health is None or self._beats(name):
                    self._watched.discard(name)
                elif (silent_from := decisions.silent_from(health)) >= now:
                    heapq.heappush(self._deadlines, (silent_from, name))
                else:
                    self._watched.discard(name)
                    self._controller.enqueue(name)

    def _next_look_s(self) -> float | None:
        """Until the end of the period in which the next node falls silent: all of that period go together."""
        if not self._deadlines:
            return None
        wait_s = max((self._deadlines[0][0] - self._clock.now()).total_seconds(), 0.0)
        return wait_s + MONITOR_PERIOD_S - (self._clock.monotonic() + wait_s) % MONITOR_PERIOD_S

    def _watch_health(self, name: str, health: Health) -> None:
        if name not in self._watched:
            self._watched.add(name)
            deadline = (decisions.silent_from(health), name)
            heapq.heappush(self._deadlines, deadline)
            if self._deadlines[0] is deadline:
                self._wake.set()

    def _has_silent(self) -> bool:
        return self._nodes.has_indexed(SILENT_INDEX, SILENT)

    def _concerns_silent(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        pod = new if new is not None else old
        if pod is None or not self._has_silent():
            return False
        node = self._nodes.get((pod.get("spec") or {}).get("nodeName") or "")
        return node is not None and decisions.readiness(node) == "Unknown"

    # One node

    async def reconcile(self, name: str) -> Result | None:
        node = self._nodes.by_key(name)
        self._introduce(name, node)
        if node is None:
            self._forget(name)
            return None
        now = self._clock.now()
        health = self._health[name] = decisions.see_node(self._health.get(name), node, now)
        lease = self._leases.get(name, LEASE_NAMESPACE)
        if lease is not None:
            health.see_lease(lease, now)
        if is_continuous(lease):
            health.probed_at = now
        elif now > decisions.silent_from(health):
            node = await self._silence(node, now)
        else:
            self._watch_health(name, health)
        self._zones.put(name, node)
        self._note_disruption(now)
        if decisions.readiness(node) == "Unknown":
            await self._mark_pods(name, now)
        return await self._taint(name, node, now)

    def _introduce(self, name: str, node: JsonObject | None) -> None:
        known = self._known.get(name)
        if known is not None and (node is None or known["metadata"]["uid"] != node["metadata"]["uid"]):
            self._tell(known, "RemovingNode", f"Removing Node {name} from Controller")
            self._forget(name)
            known = None
        if node is not None:
            if known is None:
                self._tell(node, "RegisteredNode", f"Registered Node {name} in Controller")
            self._known[name] = node

    def _tell(self, node: JsonObject, reason: str, what: str) -> None:
        name = node["metadata"]["name"]
        self._recorder.event(node, NORMAL, reason, f"Node {name} event: {what}")

    def _forget(self, name: str) -> None:
        self._known.pop(name, None)
        self._health.pop(name, None)
        self._bad_since.pop(name, None)
        self._zones.put(name, None)
        self._note_disruption(self._clock.now())

    async def _silence(self, node: JsonObject, now: datetime) -> JsonObject:
        status = decisions.silenced(node, now)
        if status is None:
            return node
        was_ready = decisions.readiness(node) == "True"
        name = node["metadata"]["name"]
        silent = await self._client.update_status(NODES, {**node, "status": status})
        # Our own write changes no heartbeat, but a node without conditions has some from now on.
        ready = next(c for c in status["conditions"] if c["type"] == "Ready")
        health = self._health.get(name)
        if health is not None:
            health.heartbeat = str(ready.get("lastHeartbeatTime") or "")
        if was_ready:
            self._recorder.event(node, NORMAL, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        return silent

    async def _mark_pods(self, name: str, now: datetime) -> None:
        for pod in self._pods.by_index(NODE_INDEX, name):
            condition = decisions.not_ready_pod(pod, now)
            if condition is None:
                continue
            meta = pod["metadata"]
            patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [condition]}}
            try:
                await self._client.patch_status(
                    PODS, meta["name"], patch, namespace=meta["namespace"], type=PatchType.STRATEGIC
                )
            except NotFound:
                continue
            self._recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")

    # Taints

    def _note_disruption(self, now: datetime) -> None:
        """When the last ready node is lost nobody is evicted any more; with the first that is back, all start anew."""
        disrupted = self._zones.all_disrupted()
        if disrupted == self._all_disrupted:
            return
        self._all_disrupted = disrupted
        for name in self._known:
            if not disrupted and name in self._health:
                self._health[name].probed_at = now
            self._controller.enqueue(name)

    async def _taint(self, name: str, node: JsonObject, now: datetime) -> Result | None:
        execute_key, wait_s = self._execute_key(name, node, now)
        taints = decisions.wanted_taints(node, execute_key=execute_key, now=now)
        labels = decisions.wanted_labels(node)
        if taints is not None or labels:
            meta: JsonObject = {"uid": node["metadata"]["uid"]}
            if labels:
                meta["labels"] = labels
            patch: JsonObject = {"metadata": meta}
            if taints is not None:
                # The list is replaced as a whole, so it may only meet the version that it was made from.
                meta["resourceVersion"] = node["metadata"]["resourceVersion"]
                patch["spec"] = {"taints": taints or None}
            try:
                await self._client.patch(NODES, name, patch)
            except NotFound:
                return None
        return Result(requeue_after_s=wait_s) if wait_s is not None else None

    def _execute_key(self, name: str, node: JsonObject, now: datetime) -> tuple[str, float | None]:
        """The NoExecute taint that the node is to have now, and when to ask again if it has to wait."""
        wanted, present = decisions.wanted_execute_key(node), decisions.execute_keys(node)
        if not wanted or self._all_disrupted:
            self._bad_since.pop(name, None)
            # Without a Ready condition nothing is known, and a taint that is there stays.
            keep = not decisions.readiness(node) and not self._all_disrupted
            return (next(iter(sorted(present)), "") if keep else ""), None
        if present:
            # Given up already: only the reason changes, which needs no leave.
            return wanted, None
        since = self._bad_since.setdefault(name, now)
        due = since + timedelta(seconds=EVICTION_PERIOD_S)
        if now < due:
            return "", (due - now).total_seconds()
        zone = decisions.zone_of(node)
        pace = self._paces.setdefault(zone, Pace())
        wait_s = pace.wait_s(self._zones.eviction_rate_per_s(zone), now)
        if wait_s == 0:
            return wanted, None
        return "", MONITOR_PERIOD_S if wait_s is None else wait_s


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> NodeLifecycle:
    """The node lifecycle controller."""
    return NodeLifecycle(clock, client, informers, recorder)
