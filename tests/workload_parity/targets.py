"""The two kinds of clusters: the embedded one on virtual time, and one behind a kubeconfig in real time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial

from holokube.base.clock import Clock, WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.informer import Informer
from holokube.client.kubeconfig import load_access
from holokube.client.resources import EVENTS, LEASES, NODES
from holokube.cluster.components import CONTROLLERS, Build
from holokube.kube.errors import NotFound
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.cluster import Cluster
from holokube.workloads import (
    endpoint_mirroring_controller,
    ephemeral_volume_controller,
    node_ttl_controller,
    service_account_controller,
)
from tests.workload_parity.scenario import Scenario
from tests.workload_parity.stage import (
    SEEN_IN_CLUSTER,
    SEEN_IN_NAMESPACE,
    JsonObject,
    Snapshot,
    Stage,
    beat,
    up_node,
)

QUIET_S = 1.6
"""The Job controller waits a second before it looks at pods again; nothing else waits longer by itself."""
QUIET_AT_MOST_S = 30.0
VIRTUAL_REST_S = 3.0
SHARED_NODES = ("parity-1", "parity-2", "parity-3")

Steps = list[tuple[str, Snapshot]]


MORE: tuple[tuple[str, Build], ...] = (
    ("ttl-controller", node_ttl_controller.build),
    ("endpoint-slice-mirroring-controller", endpoint_mirroring_controller.build),
    ("ephemeral_volume", ephemeral_volume_controller.build),
)
"""Controllers of the kube-controller-manager that a cluster may do without."""


def controllers() -> list[tuple[str, Build]]:
    """All controllers, each with the name that its events carry."""
    usual = {build for _, build in CONTROLLERS}
    root_ca = partial(service_account_controller.build_root_ca, root_ca="PEM")
    return [*CONTROLLERS, *(entry for entry in MORE if entry[1] not in usual), ("root-ca", root_ca)]


class Quiet:
    """Knows when something last changed in a namespace."""

    def __init__(self, clock: Clock, client: Client) -> None:
        self._clock = clock
        self._changed_s: dict[str, float] = {}
        resources = [r for r in (*SEEN_IN_NAMESPACE, *SEEN_IN_CLUSTER) if r != EVENTS]
        self.informers = [Informer(clock, client, resource) for resource in resources]
        for informer in self.informers:
            informer.add_handler(self._note)

    def _note(self, _type: object, old: JsonObject | None, new: JsonObject | None) -> None:
        meta = (new or old or {})["metadata"]
        self._changed_s[meta.get("namespace") or meta["name"]] = self._clock.monotonic()

    async def settle(self, namespace: str) -> None:
        start_s = self._clock.monotonic()
        while True:
            now_s = self._clock.monotonic()
            own = [
                at for name, at in self._changed_s.items() if name == namespace or name.startswith(f"{namespace}.")
            ]
            if now_s - max(start_s, *own, start_s) >= QUIET_S or now_s - start_s > QUIET_AT_MOST_S:
                return
            await self._clock.sleep(0.1)


@contextlib.asynccontextmanager
async def shared_nodes(clock: Clock, client: Client) -> AsyncIterator[None]:
    tasks = []
    for name in SHARED_NODES:
        await up_node(client, clock, name, {})
        tasks.append(asyncio.create_task(beat(clock, client, name)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for name in SHARED_NODES:
            with contextlib.suppress(NotFound):
                await client.delete(NODES, name)
                await client.delete(LEASES, name, "kube-node-lease")


async def play_real(
    kubeconfig: str, scenarios: Sequence[Scenario], *, at_once: int = 24
) -> tuple[dict[str, Steps], list[Exception]]:
    """Plays scenarios on a real control plane, several at a time; their steps by name, and what went wrong."""
    clock = WallClock()
    limit = asyncio.Semaphore(at_once)
    played: dict[str, Steps] = {}
    async with Client(HttpTransport(clock, load_access(kubeconfig))) as client:
        quiet = Quiet(clock, client)
        for informer in quiet.informers:
            informer.start()
        try:
            for informer in quiet.informers:
                await informer.synced()
            async with shared_nodes(clock, client):

                async def one(scenario: Scenario) -> None:
                    async with limit:
                        played[scenario.name] = await _play(
                            Stage(clock, client, scenario.name, quiet.settle), scenario, clear=True
                        )

                # All are played to their end, so that one that fails does not cost the others.
                ends = await asyncio.gather(*map(one, scenarios), return_exceptions=True)
                failures = [end for end in ends if isinstance(end, Exception)]
        finally:
            for informer in quiet.informers:
                await informer.stop()
    return played, failures


def play_embedded(scenario: Scenario) -> Steps:
    """Plays a scenario on the embedded registry with our controllers, on virtual time."""
    with Cluster(seed=scenario.name) as cluster:
        return cluster.run(_embedded, cluster, scenario)


async def _embedded(cluster: Cluster, scenario: Scenario) -> Steps:
    clock, client = cluster.clock, cluster.client

    async def settle(_namespace: str) -> None:
        await clock.sleep(VIRTUAL_REST_S)

    async with our_controllers(clock, client, cluster.rng), shared_nodes(clock, client):
        return await _play(Stage(clock, client, scenario.name, settle), scenario, clear=False)


@contextlib.asynccontextmanager
async def our_controllers(clock: Clock, client: Client, rng: Rng) -> AsyncIterator[None]:
    """Our controllers at work on a cluster."""
    app, informers = App(clock), InformerSet(clock, client, rng.fork("informers"))
    recorders, components = [], []
    for source, build in controllers():
        recorder = EventRecorder(clock, client, source, rng=rng.fork(f"events/{source}"))
        recorders.append(recorder)
        components.append(build(clock, client, informers, recorder, rng.fork(f"controllers/{source}")))
    for component in (*recorders, informers.runner(), *components):
        app.add(component)
    running = asyncio.create_task(app.run())
    try:
        yield
    finally:
        app.stop()
        assert await running, app.status()


async def _play(stage: Stage, scenario: Scenario, *, clear: bool) -> Steps:
    await stage.open()
    try:
        await scenario.play(stage)
    except BaseException as error:
        error.add_note(f"in scenario {scenario.name}, after {[title for title, _ in stage.steps]}")
        raise
    finally:
        await stage.close(clear=clear)
    return stage.steps
