"""The live page of ``holokube up``."""

from __future__ import annotations

import asyncio

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.registry import Registry
from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NODES, PODS
from holokube.cluster.living import LivingCluster
from holokube.dashboard.attach import attach
from holokube.dashboard.dashboard import Dashboard


class Page:
    """A dashboard on an embedded cluster; a server without components gets informers of its own."""

    def __init__(self, clock: Clock, registry: Registry, living: LivingCluster | None, *, title: str) -> None:
        self._clock = clock
        self._living = living
        self._title = "" if title == "none" else title
        self._client = Client(InProcessTransport(registry, Caller(user_agent="holokube-dashboard")))
        self._own: list[Informer] = []
        self._dashboard: Dashboard | None = None

    @property
    def url(self) -> str:
        """Where it is, once started."""
        return "" if self._dashboard is None else self._dashboard.url

    async def start(self, port: int) -> None:
        """Serve it on this port of the loopback address, 0 for a free one."""
        dashboard = Dashboard(self._clock, port=port)
        # The thread binds the port while this one goes on serving the cluster.
        await asyncio.to_thread(dashboard.start)
        self._dashboard = dashboard
        nodes, pods = await self._informers()
        journal = None if self._living is None else self._living.journal
        # Without a fleet nobody would notice that a node is broken.
        client = self._client if self._living is not None and self._living.fleet is not None else None
        dashboard.show(attach(self._clock, nodes, pods, journal=journal, client=client, title=self._title))

    async def _informers(self) -> tuple[Informer, Informer]:
        if self._living is not None:
            return self._living.informers.get(NODES), self._living.informers.get(PODS)
        rng = Rng("dashboard")
        self._own = [
            Informer(self._clock, self._client, resource, rng=rng.fork(str(resource))) for resource in (NODES, PODS)
        ]
        for informer in self._own:
            informer.start()
        for informer in self._own:
            await informer.synced()
        return self._own[0], self._own[1]

    async def stop(self) -> None:
        """End it before the cluster."""
        if self._dashboard is not None:
            await asyncio.to_thread(self._dashboard.stop)
        for informer in self._own:
            await informer.stop()
        await self._client.close()
