"""The loop with kubemark groups: pods in one cluster, the machines of its nodes in another."""

from __future__ import annotations

import asyncio

from holokube.client.resources import DEPLOYMENTS
from holokube.cluster_autoscaler.loop.autoscaler import Autoscaler
from holokube.cluster_autoscaler.loop.event_correlation import event_recorder
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.runtime.app import App
from holokube.runtime.informers import InformerSet
from tests.cluster_autoscaler.cloud.kubemark.worlds import World, in_world
from tests.cluster_autoscaler.loop.lab import workload

OPTIONS = AutoscalerOptions(scale_down_delay_after_add_s=30.0, scale_down_unneeded_time_s=60.0)


def test_nodes_come_from_the_external_cluster_and_go_back_to_it() -> None:
    async def body(world: World) -> None:
        client, turns = world.clusters.kubemark_client, list[TurnReport]()
        informers = InformerSet(world.clock, client, world.rng.fork("informers"))
        recorder = event_recorder(world.clock, client, OPTIONS, world.rng.fork("events"))
        app = App(world.clock)
        app.add(recorder)
        autoscaler = Autoscaler(
            world.clock, client, informers, recorder, world.rng.fork("loop"), world.provider, OPTIONS,
            on_turn=turns.append)
        app.add(informers.runner())
        app.add(autoscaler, essential=True)
        running = asyncio.create_task(app.run())
        await client.create(DEPLOYMENTS, workload("web", 12, cpu="900m"), "default")
        await world.clock.sleep(60)
        nodes = len(await world.ready())
        assert nodes and len(await world.controllers()) == nodes
        ready = (await client.get(DEPLOYMENTS, "web", "default"))["status"].get("readyReplicas")
        assert ready == 12
        await client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}}, namespace="default")
        await world.clock.sleep(400)
        assert not await world.nodes() and not await world.controllers()
        assert turns[-1].targets == {"a": 0} and not [turn for turn in turns if turn.error is not None]
        app.stop()
        await running

    in_world("0:10:a")(body)
