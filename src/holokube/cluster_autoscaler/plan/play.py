"""Plays turns of the real autoscaler on the copy of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.loop.run_once import RunOnce
from holokube.cluster_autoscaler.loop.sources import Sources
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.plan.copy import ClusterCopy, cluster_copy
from holokube.cluster_autoscaler.plan.provider import PlanProvider
from holokube.cluster_autoscaler.pods.book import PodChange
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.stop import StopSignal

SETTLE_S = 0.001
"""On virtual time everything that can happen happens before the shortest of waits is over."""
GIB = 1 << 30


@dataclass(slots=True)
class Turn:
    """One turn and what it led to."""

    report: TurnReport
    calls: list[dict[str, Any]] = field(default_factory=list)
    """What the provider was asked for."""
    evicted: list[str] = field(default_factory=list)
    targets: dict[str, int] = field(default_factory=dict)


class _Silent:
    """A recorder for the copy: the report of the turn has all events, and nobody reads those of the API."""

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str, /) -> None:
        """Nothing is written."""

    def tell_each(self, told: Sequence[tuple[Mapping[str, Any], str]], type: str, reason: str, /) -> None:
        """Nothing is written."""


class _FileOrder(Sources):
    """Sources that list nodes and pods as the file does, and what came later behind them.

    Where upstream's answer depends on the order of a list, the order of the file is the one that can be seen.
    """

    def __init__(
        self, client: Client, informers: InformerSet, options: AutoscalerOptions, objects: Sequence[JsonObject]
    ) -> None:
        super().__init__(client, informers, options)
        self._places = {_identity(obj): place for place, obj in enumerate(objects)}

    def _place_of(self, obj: JsonObject) -> int:
        return self._places.get(_identity(obj), len(self._places))

    @property
    def place(self) -> Callable[[JsonObject], int] | None:
        return self._place_of


class _MapOrder(ClusterSnapshot):
    """A snapshot that lists nodes in any order, as upstream's does, which keeps them in a map."""

    def __init__(self, rng: Rng, *, size_daemons: bool) -> None:
        super().__init__(size_daemons=size_daemons)
        self._rng = rng

    def update(self, nodes: Sequence[JsonObject], pods: Mapping[str, PodChange | None]) -> None:
        shuffled = list(nodes)
        self._rng.shuffle(shuffled)
        super().update(tuple(shuffled), pods)


def _identity(obj: JsonObject) -> tuple[str, str, str]:
    meta = obj["metadata"]
    return obj["kind"], meta.get("namespace") or "", meta["name"]


class Player:
    """The autoscaler on its copy of the cluster."""

    def __init__(
        self, clock: VirtualClock, copy: ClusterCopy, provider: PlanProvider, sources: Sources,
        options: AutoscalerOptions, rng: Rng, node_order: Rng | None,
    ) -> None:
        self.clock = clock
        self.client = copy.client
        self.provider = provider
        self.sources = sources
        self.copy = copy
        self._once = RunOnce(clock, copy.client, sources, provider, options, recorder=_Silent(), rng=rng)
        if node_order is not None:
            self._once.snapshot = _MapOrder(node_order, size_daemons=options.size_daemons)

    async def begin(self) -> None:
        """What the autoscaler does when it starts: without its ConfigMap, nobody is told of the cluster as a whole."""
        await self._once.status.begin(self.clock.time())

    async def turn(self, *, after_s: float = 0.0) -> Turn:
        """Let time pass, play a turn, and wait until everything it began has ended."""
        await self.clock.sleep(max(after_s, SETTLE_S))
        calls, evicted = len(self.provider.books.calls), len(self.copy.evicted)
        report = await self._once.run()
        await self._once.actuator.idle()
        await self.clock.sleep(SETTLE_S)
        targets = {group.id: group.target for group in self.provider.groups.values()}
        return Turn(report, self.provider.books.calls[calls:], self.copy.evicted[evicted:], targets)


@asynccontextmanager
async def player(
    clock: VirtualClock,
    rng: Rng,
    objects: Sequence[JsonObject],
    options: AutoscalerOptions,
    make_provider: Callable[[VirtualClock, Client, Sequence[JsonObject]], PlanProvider],
    *,
    keeps_budgets: bool,
    recreates: bool,
    node_order: Rng | None = None,
) -> AsyncIterator[Player]:
    """The autoscaler on a copy that holds these objects; ``make_provider`` is given the nodes of the copy.

    Nodes are tried for pods in the order of the objects or, with a ``node_order``, in any.
    """
    async with cluster_copy(clock, rng, objects, keeps_budgets=keeps_budgets, recreates=recreates) as copy:
        informers = InformerSet(clock, copy.client, rng.fork("informers"))
        sources = _FileOrder(copy.client, informers, options, objects)
        stop = StopSignal()
        running = asyncio.create_task(informers.runner().run(stop))
        try:
            await sources.synced()
            provider = make_provider(clock, copy.client, sources.nodes.lister.list())
            playing = Player(clock, copy, provider, sources, options, rng.fork("autoscaler"), node_order)
            await playing.begin()
            yield playing
        finally:
            stop.set("the plan is made")
            await running

