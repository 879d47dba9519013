"""A cluster on virtual time in which Deployments run on hollow nodes and are scaled by what they use."""

from __future__ import annotations

from typing import Any

from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import DEPLOYMENTS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, PODS
from holokube.client.transport import Transport
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.stop import StopSignal
from holokube.workloads import deployment_controller, hpa_controller, replica_set_controller
from tests.builders import deployment
from tests.hollow.kubelet_api.worlds import KubeletWorld


class Binder:
    """The simplest scheduler: one node after the other."""

    def __init__(self, world: KubeletWorld, nodes: int) -> None:
        self.name = "binder"
        self._world = world
        self._nodes = nodes
        self._next = 0

    async def run(self, stop: StopSignal) -> None:
        while not stop.is_set():
            found = await self._world.client.list(PODS, field_selector="spec.nodeName=")
            for pod in found.items:
                try:
                    await self._world.client.bind("default", pod["metadata"]["name"], f"n{self._next % self._nodes}")
                except ApiError:
                    continue
                self._next += 1
            await stop.finishes_first(self._world.clock.sleep(1.0))


class AutoscaledWorld(KubeletWorld):
    """With the controllers of Deployments, ReplicaSets and autoscalers. ``transport`` is the autoscalers' own."""

    def __init__(self, nodes: int = 3, *, metrics: bool = True, transport: Transport | None = None) -> None:
        super().__init__(nodes, metrics=metrics)
        rng = Rng(3)
        recorder = EventRecorder(self.clock, self.client, "test", rng=rng.fork("events"))
        builds = (deployment_controller.build, replica_set_controller.build)
        controllers = [build(self.clock, self.client, self.informers, recorder, rng) for build in builds]
        client = Client(transport) if transport is not None else self.client
        autoscaler = hpa_controller.build(self.clock, client, self.informers, recorder, rng)
        self.add(recorder, *controllers, autoscaler, Binder(self, nodes))

    def deploy(self, usage: str, *, replicas: int = 1, request: str = "100m", name: str = "web") -> None:
        body = deployment(name, replicas=replicas, app=name)
        template = body["spec"]["template"]
        template["metadata"]["annotations"] = {"holokube.dev/usage-cpu": usage}
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": request, "memory": "64Mi"}}
        self.cluster.run(self.client.create(DEPLOYMENTS, body))

    def autoscale(self, *, target: JsonObject | None = None, name: str = "web", **spec: Any) -> None:
        reference = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
        body = {
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "scaleTargetRef": reference, "maxReplicas": 10,
                "metrics": [{"type": "Resource", "resource": cpu}], **spec,
            },
        }  # fmt: skip
        self.cluster.run(self.client.create(HORIZONTAL_POD_AUTOSCALERS, body))

    def autoscaler(self, name: str = "web") -> JsonObject:
        return self.cluster.run(self.client.get(HORIZONTAL_POD_AUTOSCALERS, name, "default"))

    def conditions(self, name: str = "web") -> dict[str, tuple[str, str]]:
        found = self.autoscaler(name).get("status", {}).get("conditions") or ()
        return {c["type"]: (c["status"], c["reason"]) for c in found}

    def size(self, name: str = "web") -> int:
        found: int = self.cluster.run(self.client.get(DEPLOYMENTS, name, "default"))["spec"]["replicas"]
        return found

    def events(self, reason: str) -> list[str]:
        found = self.cluster.run(self.client.list(EVENTS, "default")).items
        listed = sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [event["message"] for event in listed if event["reason"] == reason]
