"""A cluster inside the test: the API server's registry, a client bound to it, and a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.apiserver.restore import RestoreReport, restore
from holokube.apiserver.types import TypeCatalog
from holokube.base.clock import Clock, VirtualClock, WallClock
from holokube.base.errors import UsageError
from holokube.base.loop import VirtualTimeLoop
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.store.store import Store

if TYPE_CHECKING:
    from holokube.cluster.living import LivingCluster, LivingOptions

T = TypeVar("T")

ClockName = Literal["virtual", "wall"]
CLOCKS: tuple[ClockName, ...] = ("virtual", "wall")


@cache
def shared_catalog() -> TypeCatalog:
    """The built-in types never change, so all clusters of a process read and compile them once."""
    return TypeCatalog()


class Cluster:
    """A fresh cluster with nothing but what every cluster has, and ``objects``.

    All coroutines given to ``run`` share one event loop: what they leave running, informers and controllers
    say, goes on during the next ``run``. On the virtual clock no test ever waits: time jumps to the next
    timer as soon as nothing is left to do.
    """

    def __init__(
        self,
        clock: ClockName = "virtual",
        *,
        seed: int | str = 0,
        objects: Iterable[Mapping[str, Any]] = (),
        nodes: int | None = None,
        options: LivingOptions | None = None,
    ) -> None:
        """With a number of ``nodes``, 0 say, scheduler, controllers and hollow kubelets run as well.

        That many nodes are Ready when the constructor returns. ``options`` say more about what runs.
        """
        if clock not in CLOCKS:
            raise UsageError(f"there is no clock {clock!r}", hint='Use "virtual" or "wall".')
        self.seed = seed
        self.rng = Rng(seed)
        self.clock: Clock
        loop_factory: Callable[[], asyncio.AbstractEventLoop]
        if clock == "virtual":
            virtual = VirtualClock()
            self.clock = virtual

            def loop_factory() -> asyncio.AbstractEventLoop:
                return VirtualTimeLoop(virtual)
        else:
            self.clock = WallClock()
            loop_factory = asyncio.new_event_loop
        self.store = Store()
        self.registry = Registry(self.clock, self.rng.fork("apiserver"), self.store, catalog=shared_catalog())
        self.client = Client(InProcessTransport(self.registry))
        self._runner = asyncio.Runner(loop_factory=loop_factory)
        self.living: LivingCluster | None = None
        try:
            self.run(bootstrap(self.registry))
            self.load(objects)
            if nodes is not None or options is not None:
                self.run(self._start_living, nodes or 0, options)
        except BaseException:
            self.close()
            raise

    def run(self, main: Awaitable[T] | Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run a coroutine, or an async function with its arguments, to its end; returns what it returns."""
        awaitable = main if isinstance(main, Awaitable) else main(*args)
        return self._runner.run(_await(awaitable))

    def pass_time(self, seconds: float) -> None:
        """Let everything that runs in the background run on for so many seconds."""
        self.run(self.clock.sleep(seconds))

    def load(self, objects: Iterable[Mapping[str, Any]]) -> RestoreReport:
        """Put objects in as they are, status and all; see ``holokube.apiserver.restore``."""
        listed = list(objects)
        report = self.run(restore(self.registry, listed))
        refuse_losses(report)
        return report

    def close(self) -> None:
        """Cancel what still runs, and forget everything."""
        try:
            self.run(self._shut_down())
        finally:
            self._runner.close()

    async def _start_living(self, nodes: int, options: LivingOptions | None) -> None:
        # Not imported by those who want an API server only.
        from holokube.cluster.living import LivingCluster

        self.living = LivingCluster.in_process(self.clock, self.registry, self.rng.fork("cluster"), options)
        await self.living.start()
        await self.living.scale_nodes(nodes)

    async def _shut_down(self) -> None:
        if self.living is not None:
            await self.living.stop()
        await self.client.close()
        await self.registry.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def refuse_losses(report: RestoreReport) -> None:
    """A test that starts with less than it asked for would fail later, and tell less."""
    if report.left_out:
        raise UsageError(
            f"{len(report.left_out)} objects cannot be loaded: {'; '.join(map(str, report.left_out[:5]))}",
            hint="Give complete and valid objects, with apiVersion, kind and metadata.name.",
        )


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable
