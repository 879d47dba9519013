"""A whole cluster on virtual time: real components, seeded users and seeded misfortune."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import msgspec

from holokube.apiserver.admission.base import Caller
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.inprocess import InProcessTransport
from holokube.cluster.living import LivingCluster, LivingOptions
from holokube.hollow.profile import named_profile
from holokube.testing.cluster import Cluster
from tests.simulation.invariants import Invariants

STORM = Faults(
    conflict=0.05, internal_error=0.03, too_many_requests=0.02, timeout_before=0.01, timeout_after=0.01,
    watch_drop=0.01, watch_stale=0.005, event_delay=0.03, answer_timeout_s=5, event_delay_max_s=2,
    watch_lifetime_mean_s=120,
)  # fmt: skip


# Small enough that pods have to wait for room.
CAPACITY = {"cpu": "6", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "16"}


class SimulatedCluster:
    """Components meet ``faults``; the client, and the checkers, do not."""

    def __init__(self, seed: int, *, nodes: int, faults: Faults | None = None, profile: str = "kubelet") -> None:
        self.cluster = Cluster(seed=seed)
        self.client, self.clock, self.rng = self.cluster.client, self.cluster.clock, self.cluster.rng.fork("users")
        self._storm = faults or Faults()
        self._now = Faults()
        self.has_storage = True
        self._transports: list[FaultyTransport] = []
        self.cluster.registry.admission.assumes_default_service_account = False
        base = named_profile("kubelet" if profile == "kubelet" else "fast")
        nodes_profile = msgspec.structs.replace(base.nodes, capacity=CAPACITY)
        options = LivingOptions(profile=msgspec.structs.replace(base, nodes=nodes_profile))
        self.living = LivingCluster(self.clock, self._connect, self.cluster.rng.fork("cluster"), options)
        self.invariants = Invariants(self.client)
        self.cluster.run(self._start(nodes))

    def _connect(self, name: str) -> Client:
        inner = InProcessTransport(self.cluster.registry, Caller(user_agent=name))
        faulty = FaultyTransport(self.clock, inner, self.cluster.rng.fork(f"faults/{name}"), self._now)
        self._transports.append(faulty)
        return Client(faulty)

    async def _start(self, nodes: int) -> None:
        self.invariants.begin(self.cluster.store.revision)
        await self.invariants.start()
        await self.living.start()
        await self.living.scale_nodes(nodes)
        self.storm()

    def storm(self) -> None:
        self._set(self._storm)

    def calm(self) -> None:
        self._set(Faults())

    def _set(self, faults: Faults) -> None:
        self._now = faults
        for transport in self._transports:
            transport.faults = faults

    @property
    def injected(self) -> int:
        return sum(transport.injected.total() for transport in self._transports)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.calm()
        try:
            self.cluster.run(self._stop())
        finally:
            self.cluster.close()

    async def _stop(self) -> None:
        await self.living.stop()
        await asyncio.sleep(0)
        await self.invariants.stop()

    def pass_time(self, seconds: float) -> None:
        self.cluster.pass_time(seconds)
