"""Runs controllers in a cluster inside the test, on virtual time, through a transport that may misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.resources import EVENTS, Resource
from holokube.kube.errors import NotFound
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.cluster import Cluster

JsonObject = dict[str, Any]
Build = Callable[[Clock, Client, InformerSet, EventRecorder, Rng], Component]

STORM = Faults(
    conflict=0.06, internal_error=0.06, too_many_requests=0.03, timeout_before=0.03, timeout_after=0.03,
    watch_drop=0.03, watch_stale=0.02, event_delay=0.1, list_too_old=0.02, answer_timeout_s=5,
    watch_lifetime_mean_s=60,
)  # fmt: skip


class House(Cluster):
    """A cluster with controllers running in it. ``calm`` ends the misbehaviour."""

    def __init__(
        self,
        *builds: Build,
        objects: Iterable[Mapping[str, Any]] = (),
        faults: Faults | None = None,
        seed: int | str = 0,
    ) -> None:
        self._running: asyncio.Task[bool] | None = None
        super().__init__(seed=seed, objects=objects)
        self.faulty = FaultyTransport(self.clock, self.client.transport, self.rng.fork("faults"), faults or Faults())
        self.run(self._start, builds)

    async def _start(self, builds: tuple[Build, ...]) -> None:
        client, rng = Client(self.faulty), self.rng.fork("controllers")
        self.informers = InformerSet(self.clock, client, rng)
        recorder = EventRecorder(self.clock, client, "controllers", rng=rng.fork("events"))
        components = [build(self.clock, client, self.informers, recorder, rng) for build in builds]
        self.app = App(self.clock)
        self.app.add(recorder)
        self.app.add(self.informers.runner())
        for component in components:
            self.app.add(component)
        self._running = asyncio.create_task(self.app.run())
        await self.clock.sleep(1)

    def calm(self) -> None:
        self.faulty.faults = Faults()

    def close(self) -> None:
        try:
            if self._running is not None:
                self.calm()
                self.run(self._stop, self._running)
        finally:
            super().close()

    async def _stop(self, running: asyncio.Task[bool]) -> None:
        self.app.stop()
        await running
        assert all(status.restarts == 0 for status in self.app.status()), self.app.status()

    # What a user does, without faults

    def create(self, resource: Resource, obj: Mapping[str, Any], namespace: str | None = None) -> JsonObject:
        return self.run(self.client.create(resource, obj, namespace))

    def get(self, resource: Resource, name: str, namespace: str | None = "default") -> JsonObject:
        return self.run(self.client.get(resource, name, namespace if resource.namespaced else None))

    def exists(self, resource: Resource, name: str, namespace: str | None = "default") -> bool:
        try:
            self.get(resource, name, namespace)
        except NotFound:
            return False
        return True

    def names(self, resource: Resource, namespace: str | None = None) -> list[str]:
        listed = self.run(self.client.list(resource, namespace))
        return sorted(item["metadata"]["name"] for item in listed.items)

    def delete(self, resource: Resource, name: str, namespace: str | None = "default", **options: Any) -> JsonObject:
        return self.run(
            self.client.delete(resource, name, namespace if resource.namespaced else None, **options)
        )

    def patch(
        self, resource: Resource, name: str, patch: Mapping[str, Any], namespace: str | None = "default", **more: Any
    ) -> JsonObject:
        space = namespace if resource.namespaced else None
        return self.run(self.client.patch(resource, name, patch, namespace=space, **more))

    def events(self, reason: str = "") -> list[tuple[str, str, str]]:
        """Object, reason and message of each event."""
        listed = self.run(self.client.list(EVENTS))
        return [
            (item["involvedObject"]["name"], item["reason"], item["message"])
            for item in listed.items if reason in ("", item["reason"])
        ]  # fmt: skip
