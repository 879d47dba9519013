"""A fleet on an in-process cluster with virtual time, and hosts for the pure tests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.transport import Call, Transport, WatchEvent
from holokube.hollow.draws import KeyedDraws
from holokube.hollow.fleet import Fleet, FleetOptions
from holokube.hollow.pod_life import begin, step
from holokube.hollow.pod_state import DeletePod, EmitEvent, PatchStatus, PodRun, Rejection
from holokube.hollow.profile import FAST, PodProfile
from holokube.kube.patch.merge_patch import apply_merge_patch
from holokube.runtime.stop import StopSignal
from holokube.testing import Cluster

DRAW = KeyedDraws(0)


@dataclass
class FakeHost:
    """A host that takes what it is told to take."""

    host_ips: tuple[str, ...] = ("100.64.0.1",)
    slow_factor: float = 1.0
    rejection: Rejection | None = None
    free: list[str] = field(default_factory=lambda: ["10.1.0.1"])

    def admit(self, pod: Mapping[str, Any]) -> Rejection | None:
        return self.rejection

    def resize(self, pod: Mapping[str, Any]) -> Rejection | None:
        return self.rejection

    def take_addresses(self) -> tuple[str, ...] | None:
        return (self.free.pop(0),) if self.free else None


class PodWorld:
    """One pod and its machine: the patches are applied, time is a number."""

    def __init__(
        self, pod: dict[str, Any], profile: PodProfile = FAST, host: FakeHost | None = None, start_s: float = 1000.0
    ) -> None:
        meta = {"uid": "u1", "generation": 1, "resourceVersion": "1", **pod["metadata"]}
        spec = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, **pod["spec"]}
        status = {"phase": "Pending", "qosClass": "BestEffort"}
        self.pod: dict[str, Any] = {**pod, "metadata": meta, "spec": spec, "status": pod.get("status", status)}
        self.host = host or FakeHost()
        self.profile = profile
        self.now_s = start_s
        self.run: PodRun = begin(self.pod, profile, self.host, self.now_s, DRAW)
        self.patches: list[dict[str, Any]] = []
        self.events: list[str] = []
        self.deleted = False
        self.due_s = 0.0

    def step(self) -> PodWorld:
        result = step(self.pod, self.run, self.now_s, DRAW)
        for command in result.commands:
            if isinstance(command, PatchStatus):
                assert isinstance(command.patch, dict)
                self.patches.append(command.patch)
                self._apply(command.patch["status"])
            elif isinstance(command, EmitEvent):
                self.events.append(command.reason)
            elif isinstance(command, DeletePod):
                assert command.uid == "u1"
                self.deleted = True
        self.due_s = result.next_due_s
        return self

    def _apply(self, change: dict[str, Any]) -> None:
        conditions = {c["type"]: c for c in self.pod["status"].get("conditions") or ()}
        for condition in change.get("conditions") or ():
            if condition.get("$patch") == "delete":
                conditions.pop(condition["type"], None)
                continue
            merged = {**conditions.get(condition["type"], {}), **condition}
            conditions[condition["type"]] = {k: v for k, v in merged.items() if v is not None}
        status = apply_merge_patch(self.pod["status"], {**change, "conditions": list(conditions.values())})
        self.pod = {**self.pod, "status": status}

    def run_until(self, end_s: float) -> PodWorld:
        """Steps at every due time up to so many seconds after the start."""
        self.step()
        while self.due_s <= 1000.0 + end_s:
            assert self.due_s > self.now_s
            self.now_s = self.due_s
            self.step()
        self.now_s = 1000.0 + end_s
        return self

    def delete(self, grace_s: int = 30) -> PodWorld:
        meta = {**self.pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": grace_s}
        self.pod = {**self.pod, "metadata": meta}
        return self

    @property
    def phase(self) -> str:
        return str(self.pod["status"]["phase"])

    def condition(self, kind: str) -> tuple[str, str]:
        found = next(c for c in self.pod["status"]["conditions"] if c["type"] == kind)
        return found["status"], found.get("reason", "")

    def container(self, name: str = "c") -> dict[str, Any]:
        status = self.pod["status"]
        listed = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
        return next(entry for entry in listed if entry["name"] == name)

    def state(self, name: str = "c") -> str:
        """``running``, or the reason for which the container waits or has ended."""
        ((kind, body),) = self.container(name)["state"].items()
        return "running" if kind == "running" else str(body["reason"])


class CountingTransport:
    """Counts calls by verb, resource and subresource on their way."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()

    async def call(self, call: Call) -> dict[str, Any]:
        self.calls[f"{call.verb} {call.resource.plural}{'/' + call.subresource if call.subresource else ''}"] += 1
        return await self.inner.call(call)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self.calls[f"watch {call.resource.plural}"] += 1
        return self.inner.watch(call)

    async def request(self, method: str, path: str, **options: Any) -> Any:
        return await self.inner.request(method, path, **options)

    async def close(self) -> None:
        await self.inner.close()


@dataclass
class RunningFleet:
    """A fleet in a task of its own."""

    fleet: Fleet
    transport: CountingTransport
    stop: StopSignal
    task: asyncio.Task[None]

    async def end(self) -> None:
        self.stop.set("test")
        await self.task

    async def kill(self) -> None:
        """As kill -9 would: nothing is given back."""
        self.task.cancel()
        await asyncio.wait({self.task})


async def start_fleet(
    clock: Clock, client: Client, options: FleetOptions, *, identity: str = "one", seed: int = 1
) -> RunningFleet:
    transport = CountingTransport(client.transport)
    fleet = Fleet(clock, Client(transport), options, rng=Rng(seed), identity=identity)
    stop = StopSignal()
    return RunningFleet(fleet, transport, stop, asyncio.create_task(fleet.run(stop), name=f"fleet {identity}"))


def fake_node(name: str, **labels: str) -> dict[str, Any]:
    """A Node as users of kwok write it."""
    meta = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def ready_nodes(cluster: Cluster) -> list[str]:
    from holokube.client.resources import NODES
    from holokube.kube.conditions import is_true

    nodes = cluster.run(cluster.client.list(NODES)).items
    return [node["metadata"]["name"] for node in nodes if is_true(node, "Ready")]
