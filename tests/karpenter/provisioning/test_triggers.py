"""What triggers the provisioner: compared with a look at each pod by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS
from holokube.karpenter.api.labels import DISRUPTED_TAINT
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.disruption.pods import is_provisionable
from holokube.karpenter.provisioning.batcher import Batcher
from holokube.karpenter.provisioning.triggers import LOOK_AGAIN_S, NodeTrigger, PodTrigger
from holokube.karpenter.state.pod_times import PodTimes
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.runtime.stop import StopSignal
from holokube.testing import Cluster
from tests.builders import node, pod

UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


class Listening(Batcher):
    """Notes when it was triggered, and by whom."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, idle_s=1.0, max_s=10.0)
        self._now = clock
        self.heard: set[tuple[float, str]] = set()

    def trigger_all(self, elements: Collection[str]) -> None:
        self.heard.update((round(self._now.monotonic(), 3), element) for element in elements)


class OneByOne(ControllerComponent):
    """A look at every pod that changed, and at every one that waits each ten seconds after that."""

    name = "one-by-one"

    def __init__(self, clock: Clock, informers: InformerSet, batcher: Batcher) -> None:
        self._pods = informers.get(PODS)
        self._batcher = batcher
        self._controller = Controller(
            clock, self.name, self.reconcile, sources=[InformerSource(self._pods, enqueue_self)]
        )

    async def reconcile(self, key: str) -> Result | None:
        found = self._pods.lister.by_key(key)
        if found is None or not is_provisionable(found):
            return None
        self._batcher.trigger(found["metadata"]["uid"])
        return Result(requeue_after_s=LOOK_AGAIN_S)


async def change(client: Client, what: str, name: str) -> None:
    known = {one["metadata"]["name"]: one for one in (await client.list_all(PODS)).items}
    if what == "create" and name not in known:
        await client.create(PODS, pod(name))
    elif name in known:
        bound = bool(known[name]["spec"].get("nodeName"))
        if what == "refuse" and not bound:
            await client.patch(PODS, name, {"status": UNSCHEDULABLE}, namespace="default", subresource="status")
        elif what == "label":
            await client.patch(PODS, name, {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        elif what == "bind" and not bound:
            await client.bind("default", name, "n")
        elif what == "delete":
            await client.delete(PODS, name, "default", grace_s=0)


changes = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "refuse", "refuse", "refuse", "label", "bind", "delete"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([0.0, 0.0, 1.0, 5.0, 10.0, 17.5]),
    ),
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(changes)
def test_pods_that_wait_trigger_when_they_would_if_each_was_looked_at_by_itself(
    steps: list[tuple[str, str, float]],
) -> None:
    async def main(cluster: Cluster) -> tuple[Listening, Listening]:
        client, clock, stop = cluster.client, cluster.clock, StopSignal()
        informers = InformerSet(clock, client, Rng(0))
        expected, found = Listening(clock), Listening(clock)
        parts: list[Any] = [OneByOne(clock, informers, expected), PodTrigger(clock, informers, found, PodTimes())]
        tasks = [asyncio.create_task(part.run(stop)) for part in (informers.runner(), *parts)]
        for what, name, after_s in steps:
            await clock.sleep(after_s)
            await change(client, what, name)
        await clock.sleep(25.0)
        stop.set()
        await asyncio.gather(*tasks)
        return expected, found

    with Cluster() as cluster:
        cluster.run(cluster.client.create(NODES, node("n")))
        expected, found = cluster.run(main(cluster))
    assert found.heard == expected.heard


def test_a_restarted_trigger_looks_at_all_pods_that_wait() -> None:
    async def main(cluster: Cluster) -> int:
        clock, informers = cluster.clock, InformerSet(cluster.clock, cluster.client, Rng(0))
        batcher, ends = Listening(clock), StopSignal()
        trigger = PodTrigger(clock, informers, batcher, PodTimes())
        running = asyncio.create_task(informers.runner().run(ends))
        await change(cluster.client, "create", "a")
        await change(cluster.client, "refuse", "a")
        for _ in range(2):
            stop = StopSignal()
            turn = asyncio.create_task(trigger.run(stop))
            await clock.sleep(15.0)
            stop.set()
            await turn
        ends.set()
        await running
        return len(batcher.heard)

    with Cluster() as cluster:
        # At the beginning of each run, and ten seconds later.
        assert cluster.run(main(cluster)) == 4


def test_nodes_trigger_while_they_are_emptied() -> None:
    async def main(cluster: Cluster) -> set[float]:
        client, clock, stop = cluster.client, cluster.clock, StopSignal()
        informers = InformerSet(clock, client, Rng(0))
        batcher = Listening(clock)
        trigger = NodeTrigger(clock, informers, batcher)
        tasks = [asyncio.create_task(part.run(stop)) for part in (informers.runner(), trigger)]
        await client.create(NODES, node("n"))
        await clock.sleep(5.0)
        tainted_s = clock.monotonic()
        await client.patch(NODES, "n", {"spec": {"taints": [DISRUPTED_TAINT.to_json()]}})
        await clock.sleep(15.0)
        await client.patch(NODES, "n", {"spec": {"taints": None}})
        await clock.sleep(15.0)
        stop.set()
        await asyncio.gather(*tasks)
        return {round(at_s - tainted_s, 3) for at_s, _ in batcher.heard}

    with Cluster() as cluster:
        assert cluster.run(main(cluster)) == {0.0, 10.0}
