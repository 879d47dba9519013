"""Our autoscaler at work on a real kube-apiserver, over HTTP, where nobody measures anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import DEPLOYMENTS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, NAMESPACES
from holokube.kube.types import JsonObject
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.controlplane import ControlPlane
from holokube.workloads import hpa_controller
from tests.builders import deployment

NAMESPACE = "autoscaling"


def autoscaler(name: str, **target: str) -> JsonObject:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, **target}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"scaleTargetRef": reference, "maxReplicas": 3, "metrics": [{"type": "Resource", "resource": cpu}]},
    }


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(30):
        while not (found := await look()):  # noqa: ASYNC110 - nothing tells when a server is done
            await asyncio.sleep(0.05)
    return found


def test_sizes_conditions_and_events_come_about_on_a_real_server(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        for name, replicas in (("many", 5), ("fine", 2)):
            await client.create(DEPLOYMENTS, deployment(name, NAMESPACE, replicas=replicas, app=name))
            await client.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler(name))
        await client.create(HORIZONTAL_POD_AUTOSCALERS, autoscaler("lost"))

        async def condition(name: str, kind: str) -> JsonObject | None:
            found = await client.get(HORIZONTAL_POD_AUTOSCALERS, name, NAMESPACE)
            listed = (found.get("status") or {}).get("conditions") or ()
            return next((c for c in listed if c["type"] == kind), None)

        async def small() -> bool:
            return bool((await client.get(DEPLOYMENTS, "many", NAMESPACE))["spec"]["replicas"] == 3)

        async def events() -> set[str]:
            found = {e["reason"] for e in (await client.list(EVENTS, NAMESPACE)).items}
            return found if {"SuccessfulRescale", "FailedGetScale", "FailedComputeMetricsReplicas"} <= found else set()

        await eventually(small)
        active = await eventually(lambda: condition("fine", "ScalingActive"))
        assert (active["status"], active["reason"]) == ("False", "FailedGetResourceMetric")
        assert active["message"].endswith(
            "the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
        able = await eventually(lambda: condition("lost", "AbleToScale"))
        assert able["message"].endswith('current scale: deployments.apps "lost" not found')
        await eventually(events)

    async def main() -> None:
        clock = WallClock()
        access = load_access(str(real_apiserver.kubeconfig))
        async with Client(HttpTransport(clock, access)) as client:
            informers = InformerSet(clock, client, Rng(1))
            recorder = EventRecorder(clock, client, "horizontal-pod-autoscaler", rng=Rng(2))
            controller = hpa_controller.build(clock, client, informers, recorder, Rng(3), sync_s=0.2)
            app = App(clock)
            for component in (recorder, informers.runner(), controller):
                app.add(component)
            running = asyncio.create_task(app.run())
            try:
                await test(client)
            finally:
                app.stop()
                await running

    asyncio.run(main())
