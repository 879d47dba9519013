"""`kubectl rollout` on the embedded server with our controllers: what it prints and what comes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holokube.base.clock import WallClock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.runtime.app import App
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.kubectl import Kubectl
from holokube.workloads import (
    daemon_set_controller,
    deployment_controller,
    replica_set_controller,
    stateful_set_controller,
)
from tests.builders import node
from tests.clients.conftest import Embedded, running
from tests.workload_parity.scenarios.objects import workload
from tests.workloads.fake_kubelet import FakeKubelet

BUILDS = (
    ("replicaset-controller", replica_set_controller.build), ("deployment-controller", deployment_controller.build),
    ("statefulset-controller", stateful_set_controller.build), ("daemonset-controller", daemon_set_controller.build),
)  # fmt: skip
ROLLED = {
    "deployment": 'deployment "web" successfully rolled out\n',
    "statefulset": "partitioned roll out complete: 2 new pods have been updated...\n",
    "daemonset": 'daemon set "web" successfully rolled out\n',
}


async def start(embedded: Embedded) -> tuple[App, asyncio.Task[bool]]:
    """Controllers and a kubelet, in the server's own loop."""
    clock, rng = WallClock(), Rng(0)
    client = Client(InProcessTransport(embedded.server.registry))
    app, informers = App(clock), InformerSet(clock, client, rng)
    recorders = [EventRecorder(clock, client, name, rng=rng.fork(name)) for name, _ in BUILDS]
    controllers = [
        build(clock, client, informers, recorder, rng)
        for (_, build), recorder in zip(BUILDS, recorders, strict=True)
    ]
    kubelet = FakeKubelet(clock, client, start_s=0.01, stop_s=0.01)
    for component in (*recorders, informers.runner(), *controllers, kubelet):
        app.add(component)
    return app, asyncio.create_task(app.run())


async def stop(app: App, task: asyncio.Task[bool]) -> None:
    app.stop()
    assert await task


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory, kubectl_program: Path) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("rollout")
    with running(folder) as embedded:
        app, task = embedded.do(start(embedded))
        try:
            kubectl = Kubectl(kubectl_program, embedded.kubeconfig(), folder)
            kubectl("create", "--filename=-", stdin=json.dumps(node("only")))
            kubectl("patch", "node", "only", "--patch", '{"spec":{"taints":null}}')
            yield kubectl
        finally:
            embedded.do(stop(app, task))


def manifest(kind: str) -> str:
    more = {"statefulset": {"replicas": 2, "serviceName": "web"}, "deployment": {"replicas": 2}}.get(kind, {})
    made = workload("web", app=kind, pod_spec={"schedulerName": "default-scheduler"}, **more)
    names = {"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet"}
    return json.dumps({"apiVersion": "apps/v1", "kind": names[kind], **made})


@pytest.mark.parametrize("kind", ["deployment", "statefulset", "daemonset"])
def test_a_rollout_is_watched_listed_and_undone(kubectl: Kubectl, kind: str) -> None:
    target = f"{kind}/web"
    kubectl("create", "--filename=-", stdin=manifest(kind))
    assert kubectl("rollout", "status", target, "--timeout=30s").endswith(ROLLED[kind])
    kubectl("set", "image", target, "c=registry.example/app:2")
    kubectl("annotate", target, "kubernetes.io/change-cause=a better image")
    assert kubectl("rollout", "status", target, "--timeout=30s").endswith(ROLLED[kind])
    history = kubectl("rollout", "history", target).splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["1", "2"]
    assert "registry.example/app:1" in kubectl("rollout", "history", target, "--revision=1")
    assert kubectl("rollout", "undo", target) == f"{target.replace('/', '.apps/')} rolled back\n"
    assert kubectl("rollout", "status", target, "--timeout=30s").endswith(ROLLED[kind])
    pods = kubectl.json("get", "pods", f"--selector=app={kind}")["items"]
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"registry.example/app:1"}
    history = kubectl("rollout", "history", target).splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["2", "3"]


def test_a_restart_replaces_pods_and_a_pause_holds_it(kubectl: Kubectl) -> None:
    target = "deployment/again"
    made = json.loads(manifest("deployment"))
    made["metadata"]["name"] = "again"
    made["spec"]["selector"] = {"matchLabels": {"app": "again"}}
    made["spec"]["template"]["metadata"]["labels"] = {"app": "again"}
    kubectl("create", "--filename=-", stdin=json.dumps(made))
    kubectl("rollout", "status", target, "--timeout=30s")
    before = set(kubectl("get", "pods", "--selector=app=again", "--output=name").split())
    kubectl("rollout", "pause", target)
    kubectl("set", "image", target, "c=registry.example/app:2")
    assert set(kubectl("get", "pods", "--selector=app=again", "--output=name").split()) == before
    kubectl("rollout", "resume", target)
    kubectl("rollout", "restart", target)
    assert "successfully rolled out" in kubectl("rollout", "status", target, "--timeout=30s")
    kubectl("wait", "--for=delete", *sorted(before), "--timeout=30s")
    described = kubectl("describe", target)
    assert "Available      True    MinimumReplicasAvailable" in described
    assert "Progressing    True    NewReplicaSetAvailable" in described
    assert "deployment-controller  Scaled up replica set again-" in described
