"""The embedded API server on a thread of its own: HTTPS on loopback, for any client in any process."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from holokube.apiserver.restore import RestoreReport, restore
from holokube.apiserver.server import EmbeddedServer, Endpoint, write_kubeconfig
from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.testing.cluster import refuse_losses, shared_catalog

T = TypeVar("T")


class Server:
    """A running server. Its files live as long as it does."""

    def __init__(
        self, embedded: EmbeddedServer, endpoint: Endpoint, loop: asyncio.AbstractEventLoop, folder: Path
    ) -> None:
        self._embedded = embedded
        self._endpoint = endpoint
        self._loop = loop
        self._folder = folder

    @property
    def url(self) -> str:
        """``https://127.0.0.1:port``."""
        return self._endpoint.url

    @property
    def token(self) -> str:
        """A bearer token of the administrator."""
        return self._endpoint.token

    @cached_property
    def ca(self) -> Path:
        """A file with the certificate of the authority that signed the server's."""
        path = self._folder / "ca.crt"
        path.write_bytes(self._endpoint.ca_pem)
        return path

    @cached_property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of the administrator, everything inline."""
        path = self._folder / "kubeconfig"
        write_kubeconfig(path, self._endpoint.kubeconfig())
        return path

    def run(self, use: Callable[[Client], Awaitable[T]]) -> T:
        """Call an async function with a client inside the server, on the server's thread, and wait for it."""

        async def on_thread() -> T:
            async with Client(InProcessTransport(self._embedded.registry)) as client:
                return await use(client)

        return asyncio.run_coroutine_threadsafe(on_thread(), self._loop).result()

    def load(self, objects: Iterable[Mapping[str, Any]]) -> RestoreReport:
        """Put objects in as they are, status and all; see ``holokube.apiserver.restore``."""
        work = restore(self._embedded.registry, list(objects))
        report = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        refuse_losses(report)
        return report


@contextmanager
def serve(
    *,
    port: int = 0,
    seed: int | str = 0,
    objects: Iterable[Mapping[str, Any]] = (),
    data_dir: Path | None = None,
    nodes: int | None = None,
) -> Iterator[Server]:
    """Start a server, and stop it at the end: ``with serve() as server: ...``. Takes some 20 ms.

    With a number of ``nodes``, 0 say, scheduler, controllers and hollow kubelets run as well, and that many nodes
    are Ready.
    """
    with tempfile.TemporaryDirectory(prefix="holokube-") as folder:
        embedded = EmbeddedServer(
            WallClock(), Rng(seed), port=port, data_dir=data_dir, catalog=shared_catalog()
        )
        ready: Future[tuple[Endpoint, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        thread = threading.Thread(target=_run, args=(embedded, ready), name="holokube-server", daemon=True)
        thread.start()
        try:
            endpoint, loop, stop = ready.result()
            try:
                server = Server(embedded, endpoint, loop, Path(folder))
                server.load(objects)
                if nodes is None:
                    yield server
                else:
                    with _alive(embedded, loop, Rng(seed).fork("cluster"), nodes):
                        yield server
            finally:
                loop.call_soon_threadsafe(stop.set)
        finally:
            thread.join()


@contextmanager
def _alive(embedded: EmbeddedServer, loop: asyncio.AbstractEventLoop, rng: Rng, nodes: int) -> Iterator[None]:
    """Components on the server's thread."""
    # Not imported by those who want an API server only.
    from holokube.cluster.living import LivingCluster

    living: LivingCluster | None = None

    async def start() -> None:
        nonlocal living
        living = LivingCluster.in_process(WallClock(), embedded.registry, rng)
        await living.start()
        await living.scale_nodes(nodes)

    async def stop() -> None:
        if living is not None:
            await living.stop()

    try:
        asyncio.run_coroutine_threadsafe(start(), loop).result()
        yield
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()


def _run(
    embedded: EmbeddedServer, ready: Future[tuple[Endpoint, asyncio.AbstractEventLoop, asyncio.Event]]
) -> None:
    """The life of the thread. Whatever goes wrong while starting is raised in the thread that waits."""

    async def main() -> None:
        stop = asyncio.Event()
        try:
            endpoint = await embedded.start()
        except BaseException as error:
            await embedded.stop()
            ready.set_exception(error)
            return
        ready.set_result((endpoint, asyncio.get_running_loop(), stop))
        try:
            await stop.wait()
        finally:
            await embedded.stop()

    asyncio.run(main())
