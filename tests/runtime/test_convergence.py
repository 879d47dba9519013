"""A whole controller, on real informers, against a server that loses, delays and refuses: it converges."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.informer import Informer
from holokube.client.resources import CONFIG_MAPS, PODS
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.runtime.app import App
from holokube.runtime.ratelimit import DEFAULT_MAX_DELAY_S
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerRunner, InformerSource, enqueue_owner, enqueue_self, split_key
from holokube.runtime.stop import StopSignal
from tests.runtime.fakes import FakeTransport

STORM = Faults(
    conflict=0.08, internal_error=0.08, too_many_requests=0.04, timeout_before=0.04, timeout_after=0.04,
    watch_drop=0.03, watch_stale=0.02, event_delay=0.1, list_too_old=0.02, answer_timeout_s=10,
    watch_lifetime_mean_s=60,
)  # fmt: skip


class Replicator:
    """Keeps as many pods for each ConfigMap as its data asks for, and writes down what it has seen."""

    def __init__(self, clock: VirtualClock, client: Client, parents: Informer, children: Informer) -> None:
        self.clock = clock
        self.client = client
        self.parents = parents.lister
        self.children = children.lister
        self.busy: set[str] = set()
        self.overlaps: list[tuple[float, str]] = []
        self.most_busy = 0
        self.runs = 0

    async def reconcile(self, key: str) -> Result | None:
        if key in self.busy:
            # Raised here it would be caught as a failed reconcile and tried again.
            self.overlaps.append((self.clock.monotonic(), key))
        self.busy.add(key)
        self.most_busy = max(self.most_busy, len(self.busy))
        self.runs += 1
        try:
            return await self.converge(key)
        finally:
            self.busy.discard(key)

    async def converge(self, key: str) -> Result | None:
        namespace, name = split_key(key)
        parent = self.parents.by_key(key)
        replicas = int(parent["data"]["replicas"]) if parent is not None else 0
        wanted = {f"{name}-{n}" for n in range(replicas)}
        present = {child["metadata"]["name"] for child in self.children.by_index("owner", key)}
        for child in sorted(wanted - present):
            assert parent is not None
            owner = {
                "apiVersion": "v1", "kind": "ConfigMap", "name": name, "controller": True,
                "uid": parent["metadata"]["uid"],
            }  # fmt: skip
            pod = {"metadata": {"name": child, "ownerReferences": [owner]}}
            try:
                await self.client.create(PODS, pod, namespace)
            except AlreadyExists:
                continue  # The cache is behind.
        for child in sorted(present - wanted):
            try:
                await self.client.delete(PODS, child, namespace)
            except NotFound:
                continue
        if parent is not None and parent["data"].get("observed") != parent["data"]["replicas"]:
            data = {**parent["data"], "observed": parent["data"]["replicas"]}
            await self.client.update(CONFIG_MAPS, {**parent, "data": data}, namespace)
        # A pod that is created and deleted between two lists never shows in the cache, so nothing would tell
        # us of it: what was done is looked at again, like upstream's expectations that run out.
        return Result(requeue_after_s=30) if wanted != present else None


async def live(clock: VirtualClock, seed: int) -> tuple[FakeTransport, Replicator, FaultyTransport]:
    rng = Rng(seed)
    latency = rng.fork("latency")
    server = FakeTransport(clock, lambda: latency.expovariate(20))
    faulty = FaultyTransport(clock, server, rng.fork("faults"), STORM)
    client, user = Client(faulty), Client(server)
    parents = Informer(clock, client, CONFIG_MAPS, rng=rng.fork("parents"))
    owners = enqueue_owner("ConfigMap")
    children = Informer(clock, client, PODS, rng=rng.fork("children"), indexers={"owner": owners})
    replicator = Replicator(clock, client, parents, children)
    app = App(clock)
    app.add(InformerRunner("caches", [parents, children]))
    sources = [InformerSource(parents, enqueue_self), InformerSource(children, owners)]
    app.add(Controller(clock, "replicator", replicator.reconcile, sources=sources, workers=4))
    app.add(Saboteur(rng.fork("saboteur")))
    running = asyncio.create_task(app.run())
    await disturb(clock, rng.fork("user"), user, server)
    faulty.faults = Faults()
    # The longest wait left is one lost answer, one time-out of a delayed event and the backoff of a key: one that has
    # failed seventeen times in a row waits for eleven minutes.
    await clock.sleep(300 + DEFAULT_MAX_DELAY_S)
    app.stop()
    assert await running is True
    await server.close()
    return server, replicator, faulty


class Saboteur:
    """A component that crashes now and then: nobody else may notice."""

    name = "saboteur"

    def __init__(self, rng: Rng) -> None:
        self.rng = rng

    async def run(self, stop: StopSignal) -> None:
        if not await stop.sleep(self.rng.uniform(1, 50)):
            raise RuntimeError("sabotage")


async def disturb(clock: VirtualClock, rng: Rng, user: Client, server: FakeTransport) -> None:
    """Ten minutes of a user who creates, scales and deletes parents, and deletes children behind our back."""
    while clock.monotonic() < 600:
        await clock.sleep(rng.expovariate(1 / 5))
        name = f"set{rng.randrange(4)}"
        parent = server.objects.get(("configmaps", "shop", name))
        choice = rng.random()
        try:
            if parent is None:
                data = {"replicas": str(rng.randrange(6))}
                await user.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, "shop")
            elif choice < 0.5:
                replicas = str(rng.randrange(6))
                current = await user.get(CONFIG_MAPS, name, "shop")
                fresh = {**current["metadata"], "resourceVersion": ""}
                data = {**current["data"], "replicas": replicas}
                await user.update(CONFIG_MAPS, {**current, "metadata": fresh, "data": data}, "shop")
            elif choice < 0.6:
                await user.delete(CONFIG_MAPS, name, "shop")
            else:
                await user.delete(PODS, f"{name}-{rng.randrange(6)}", "shop")
        except (NotFound, AlreadyExists):
            continue


def state(server: FakeTransport) -> dict[str, Any]:
    parents = {k[2]: o["data"] for k, o in server.objects.items() if k[0] == "configmaps"}
    pods = sorted(k[2] for k in server.objects if k[0] == "pods")
    return {"parents": parents, "pods": pods}


@pytest.mark.parametrize("seed", range(25))
def test_every_parent_gets_its_children_whatever_goes_wrong(seed: int) -> None:
    server, replicator, faulty = run_virtual(lambda clock: live(clock, seed))
    final = state(server)
    parents = final["parents"].items()
    wanted = [f"{name}-{n}" for name, data in parents for n in range(int(data["replicas"]))]
    assert final["pods"] == sorted(wanted)
    assert all(data["observed"] == data["replicas"] for data in final["parents"].values())
    assert replicator.overlaps == []
    assert replicator.most_busy >= 2, "no two workers were ever busy, so nothing was shown"
    assert faulty.injected.total() > 50


def test_the_same_seed_gives_the_same_history() -> None:
    first, second = (run_virtual(lambda clock: live(clock, 7))[0] for _ in range(2))
    assert [(at, str(call)) for at, call in first.calls] == [(at, str(call)) for at, call in second.calls]
    assert first.history == second.history
