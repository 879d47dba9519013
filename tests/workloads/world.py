"""A cluster on virtual time with controllers, a fake kubelet, and short ways to look at it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from holokube.client.client import Client, PatchType
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.resources import EVENTS, NODES, PODS, Resource
from holokube.kube.types import JsonObject
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.cluster import Cluster
from tests.builders import node
from tests.workloads.fake_kubelet import FakeKubelet

Build = Callable[..., Component]

STORM = Faults(
    conflict=0.08, internal_error=0.06, too_many_requests=0.04, timeout_before=0.03, timeout_after=0.03,
    watch_drop=0.03, watch_stale=0.02, event_delay=0.1, answer_timeout_s=5, watch_lifetime_mean_s=60,
)  # fmt: skip


class World:
    """``builds`` are the controllers that run. With ``faults`` they, and only they, meet them."""

    def __init__(
        self, builds: Iterable[Build], *, nodes: int = 3, seed: int = 0, faults: Faults | None = None
    ) -> None:
        self.cluster = Cluster(seed=seed)
        self.clock, self.client, rng = self.cluster.clock, self.cluster.client, self.cluster.rng
        transport = FaultyTransport(self.clock, self.client.transport, rng.fork("faults"), faults or Faults())
        self.faulty = transport
        client = Client(transport)
        self.app = App(self.clock)
        self.kubelet = FakeKubelet(self.clock, self.client)
        recorder = EventRecorder(self.clock, client, "test", rng=rng.fork("events"))
        informers = InformerSet(self.clock, client, rng.fork("informers"))
        controllers = [build(self.clock, client, informers, recorder, rng.fork("controllers")) for build in builds]
        for component in (recorder, informers.runner(), *controllers, self.kubelet):
            self.app.add(component)
        self._running: asyncio.Task[bool] | None = None
        for number in range(nodes):
            self.add_node(f"node-{number}")
        self.cluster.run(self._start())

    def add_node(self, name: str, **labels: str) -> None:
        """A node that is up: without the taint that every new node gets."""
        self.create(NODES, node(name, **labels))
        self.patch(NODES, name, {"spec": {"taints": None}})

    async def _start(self) -> None:
        self._running = asyncio.create_task(self.app.run())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.app.stop()
        assert self._running is not None
        self.cluster.run(self._running)
        self.cluster.close()

    def pass_time(self, seconds: float = 60) -> None:
        self.cluster.pass_time(seconds)

    def create(self, resource: Resource, obj: JsonObject) -> JsonObject:
        return self.cluster.run(self.client.create(resource, obj))

    def get(self, resource: Resource, name: str, namespace: str = "default") -> JsonObject:
        return self.cluster.run(self.client.get(resource, name, namespace))

    def patch(self, resource: Resource, name: str, patch: Any, namespace: str = "default") -> JsonObject:
        return self.cluster.run(self.client.patch(resource, name, patch, namespace=namespace, type=PatchType.MERGE))

    def delete(self, resource: Resource, name: str, namespace: str = "default", **options: Any) -> None:
        self.cluster.run(self.client.delete(resource, name, namespace, **options))

    def list(self, resource: Resource, namespace: str = "default") -> list[JsonObject]:
        return self.cluster.run(self.client.list(resource, namespace)).items

    def pods(self, **labels: str) -> list[JsonObject]:
        """Pods that are not over and not being deleted."""
        return [
            pod for pod in self.list(PODS)
            if not pod["metadata"].get("deletionTimestamp")
            and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
            and labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]  # fmt: skip

    def events(self, reason: str = "") -> list[str]:
        """Messages of events, in the order in which they first happened."""
        found = sorted(self.list(EVENTS), key=lambda e: int(e["metadata"]["resourceVersion"]))
        return [event["message"] for event in found if reason in ("", event["reason"])]


def conditions(obj: JsonObject) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    return {c["type"]: (c["status"], c.get("reason", "")) for c in obj.get("status", {}).get("conditions") or ()}
