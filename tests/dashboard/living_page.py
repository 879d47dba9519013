"""A real cluster with its dashboard, on a thread of its own: what ``holokube up`` shows, without the program."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.base.clock import Clock, VirtualClock, WallClock
from holokube.base.loop import run_virtual
from holokube.base.pace import Pace
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NODES, PODS
from holokube.cluster.living import LivingCluster, LivingOptions
from holokube.dashboard.attach import attach
from holokube.dashboard.dashboard import Dashboard
from holokube.hollow.profile import named_profile
from holokube.store.store import Store
from holokube.testing.cluster import shared_catalog

T = TypeVar("T")


@dataclass
class LivingPage:
    """A cluster and its page."""

    url: str
    clock: Clock
    client: Client
    living: LivingCluster
    loop: asyncio.AbstractEventLoop
    dashboard: Dashboard

    def drop_streams(self) -> None:
        """Cut all pages off, as a restart of a proxy would."""
        loop = self.dashboard._loop
        assert loop is not None
        asyncio.run_coroutine_threadsafe(self.dashboard._server.close(), loop).result(60)

    def ask(self, use: Callable[[Client], Awaitable[T]]) -> T:
        """Call an async function with a client, on the cluster's thread."""

        async def work() -> T:
            return await use(self.client)

        return asyncio.run_coroutine_threadsafe(work(), self.loop).result(60)


@contextmanager
def living_page(
    nodes: int, options: LivingOptions | None = None, *, pace: Pace | None = None, title: str = "", port: int = 0
) -> Iterator[LivingPage]:
    """Run a cluster with so many nodes; on virtual time if a pace is given, which then holds once it is up."""
    clock: Clock = WallClock() if pace is None else VirtualClock()
    ready: Future[tuple[LivingPage, asyncio.Event]] = Future()

    async def main() -> None:
        try:
            await _live(clock, nodes, options or LivingOptions(profile=named_profile("fast")), pace, title, port, ready)
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    def run() -> None:
        if isinstance(clock, VirtualClock):
            run_virtual(main(), clock=clock)
        else:
            asyncio.run(main())

    thread = threading.Thread(target=run, name="living-page", daemon=True)
    thread.start()
    page, stop = ready.result(120)
    try:
        yield page
    finally:
        if pace is not None:
            pace.resume()
        page.loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        assert not thread.is_alive()


async def _live(
    clock: Clock, nodes: int, options: LivingOptions, pace: Pace | None, title: str, port: int,
    ready: Future[tuple[LivingPage, asyncio.Event]],
) -> None:
    store, rng, stop = Store(), Rng(0), asyncio.Event()
    registry = Registry(clock, rng.fork("apiserver"), store, catalog=shared_catalog())
    await bootstrap(registry)
    client = Client(InProcessTransport(registry))
    living = LivingCluster.in_process(clock, registry, rng.fork("cluster"), options)
    dashboard = Dashboard(WallClock(), port=port)
    loop = asyncio.get_running_loop()
    try:
        await living.start()
        await living.scale_nodes(nodes)
        if pace is not None:
            loop.set_pace(pace)  # type: ignore[attr-defined]  # with a pace it is a virtual loop
        dashboard.show(attach(
            clock, living.informers.get(NODES), living.informers.get(PODS), journal=living.journal, client=client,
            pace=pace, title=title,
        ))
        url = await asyncio.to_thread(dashboard.start)
        ready.set_result((LivingPage(url, clock, client, living, loop, dashboard), stop))
        await stop.wait()
    finally:
        await asyncio.to_thread(dashboard.stop)
        await living.stop()
        await client.close()
        await registry.close()
        store.close()
