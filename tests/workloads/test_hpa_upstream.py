"""The real kube-controller-manager's autoscaler and ours, in the same situations: the same decisions, the same words.

Both read the same simulated usage from metrics.k8s.io of the embedded server. Ours decides first, and only in thought;
then the real one is let loose, and what it made of each situation is compared. And once more at its second look, when
both remember the first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from holokube.apiserver.http.auth import TokenSigner
from holokube.apiserver.restore import restore
from holokube.base.clock import WallClock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import DEPLOYMENTS, EVENTS, HORIZONTAL_POD_AUTOSCALERS, NODES, PODS
from holokube.hollow.kubelet_api.api import KubeletApi
from holokube.hollow.kubelet_api.embedded import attach
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.testing.binaries import find_or_build
from holokube.testing.processes import Processes
from holokube.workloads import hpa_decisions as decisions
from holokube.workloads.hpa_controller import Autoscalers
from tests.builders import deployment, node, pod
from tests.clients.conftest import Embedded, running
from tests.conftest import obtain

MANAGER = "kube-controller-manager"
SYNC_S = 6
HOUR_AGO = format_time(WallClock().time() - 3600)
A_MINUTE_AGO = format_time(WallClock().time() - 60)


def cpu(percent: int = 50) -> JsonObject:
    return {"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}  # fmt: skip


def average(resource: str, value: str) -> JsonObject:
    return {"type": "Resource", "resource": {
        "name": resource, "target": {"type": "AverageValue", "averageValue": value}}}  # fmt: skip


def container(percent: int, name: str = "c") -> JsonObject:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": name, "target": target}}


def of_pods() -> JsonObject:
    return {"type": "Pods", "pods": {
        "metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "1"}}}  # fmt: skip


def of_object(**target: str) -> JsonObject:
    return {"type": "Object", "object": {
        "metric": {"name": "qps"}, "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"},
        "target": target}}  # fmt: skip


def external(selector: JsonObject | None = None, **target: str) -> JsonObject:
    metric: JsonObject = {"name": "queue"}
    if selector:
        metric["selector"] = selector
    return {"type": "External", "external": {"metric": metric, "target": target}}


@dataclass
class Case:
    """A Deployment, its pods and its autoscaler."""

    name: str
    metrics: list[JsonObject] = field(default_factory=lambda: [cpu()])
    usage: tuple[str, ...] = ("100m", "100m")
    """CPU of each pod."""
    replicas: int | None = None
    """As many as there are pods, unless said otherwise."""
    request: str = "100m"
    unready: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    """Pods whose container does not run, so that nothing is measured of them."""
    failed: tuple[int, ...] = ()
    young: tuple[int, ...] = ()
    spec: JsonObject = field(default_factory=dict)
    target: JsonObject = field(default_factory=dict)

    def objects(self) -> list[JsonObject]:
        replicas = len(self.usage) if self.replicas is None else self.replicas
        made = deployment(self.name, replicas=replicas, app=self.name)
        made["status"] = {"replicas": replicas}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name, **self.target}
        scaler = {
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 20, "metrics": self.metrics, **self.spec,
            },
        }  # fmt: skip
        return [made, scaler, *(self._pod(number, usage) for number, usage in enumerate(self.usage))]

    def _pod(self, number: int, usage: str) -> JsonObject:
        made = pod(f"{self.name}-{number}", node="n1")
        made["metadata"].update(
            labels={"app": self.name}, creationTimestamp=HOUR_AGO,
            annotations={"holokube.dev/usage-cpu": usage, "holokube.dev/usage-memory": "100Mi"},
        )  # fmt: skip
        if self.request:
            made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": self.request, "memory": "64Mi"}}
        started = A_MINUTE_AGO if number in self.young else HOUR_AGO
        state = {"running": {"startedAt": started}}
        if number in self.waiting:
            state = {"waiting": {"reason": "CrashLoopBackOff"}}
        status = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}
        ready = {
            "type": "Ready", "status": "False" if number in self.unready else "True", "lastTransitionTime": started,
        }  # fmt: skip
        made["status"] = {
            "phase": "Failed" if number in self.failed else "Running", "startTime": started,
            "conditions": [ready], "containerStatuses": [status],
        }  # fmt: skip
        return made


PERCENT = {"type": "Percent", "value": 10, "periodSeconds": 60}
ONE_POD = {"type": "Pods", "value": 1, "periodSeconds": 60}
CASES = [
    Case("busy"),
    Case("very-busy", usage=("900m", "900m")),
    Case("steady", usage=("52m", "50m")),
    Case("idle", usage=("1m", "2m", "3m")),
    Case("idle-unstabilized", usage=("1m", "2m", "30m"),
         spec={"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}),
    Case("idle-slowly", usage=("1m",) * 12,
         spec={"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [PERCENT]}}}),
    Case("busy-slowly", usage=("300m",) * 3, spec={"behavior": {"scaleUp": {"policies": [ONE_POD]}}}),
    Case("busy-least", usage=("300m",) * 12,
         spec={"behavior": {"scaleUp": {"policies": [ONE_POD, PERCENT], "selectPolicy": "Min"}}}),
    Case("busy-never", usage=("300m",) * 3, spec={"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}}),
    Case("tolerant", usage=("80m", "80m"), spec={"behavior": {"scaleUp": {"tolerance": "0.7"}}}),
    Case("intolerant", usage=("51m", "52m", "53m"), spec={"behavior": {"scaleUp": {"tolerance": "0.01"}}}),
    Case("above-most", usage=("10m",), replicas=30),
    Case("below-least", spec={"minReplicas": 5}),
    Case("at-most", usage=("900m",) * 4, spec={"maxReplicas": 5}),
    Case("at-least", usage=("1m",) * 4,
         spec={"minReplicas": 3, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}),
    Case("switched-off", usage=(), replicas=0),
    Case("no-pods", usage=(), replicas=2),
    Case("some-waiting", usage=("200m",) * 4, waiting=(0, 1)),
    Case("some-waiting-idle", usage=("10m",) * 4, waiting=(0,),
         spec={"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}),
    Case("all-waiting", waiting=(0, 1)),
    Case("some-failed", usage=("200m",) * 4, failed=(0, 1), replicas=2),
    Case("some-young", usage=("200m",) * 3, young=(0,)),
    Case("young-unready", usage=("200m",) * 3, young=(0,), unready=(0,)),
    Case("old-unready", usage=("200m",) * 3, unready=(0,)),
    Case("no-requests", usage=("100m",), request=""),
    Case("memory", metrics=[average("memory", "60Mi")]),
    Case("cpu-average", metrics=[average("cpu", "40m")]),
    Case("one-container", metrics=[container(40)]),
    Case("no-such-container", usage=("100m",), metrics=[container(40, "x")]),
    Case("two-metrics", metrics=[cpu(90), average("memory", "20Mi")]),
    Case("one-fails-grow", metrics=[of_pods(), cpu(20)]),
    Case("one-fails-shrink", metrics=[of_pods(), cpu(500)]),
    Case("pods-metric", metrics=[of_pods()]),
    Case("object-value", metrics=[of_object(type="Value", value="1")]),
    Case("object-average", metrics=[of_object(type="AverageValue", averageValue="1")]),
    Case("external-value", metrics=[external(type="Value", value="1")]),
    Case("external-average", metrics=[external({"matchLabels": {"b": "2", "a": "1"}}, type="AverageValue",
                                               averageValue="1")]),
    Case("no-target", target={"name": "nobody"}),
    Case("no-kind", target={"kind": "Moon"}),
]  # fmt: skip


@dataclass
class Outcome:
    """What came of a situation."""

    replicas: int
    status: JsonObject
    events: set[tuple[str, str, str]]

    @property
    def rescaled(self) -> bool:
        return any(reason == "SuccessfulRescale" for _, reason, _ in self.events)


def comparable(status: JsonObject) -> JsonObject:
    """A status without its times."""
    conditions = sorted(
        ({k: v for k, v in c.items() if k != "lastTransitionTime"} for c in status.get("conditions") or ()),
        key=lambda c: str(c["type"]),
    )
    rest = {k: v for k, v in status.items() if k not in ("conditions", "lastScaleTime")}
    return {**{k: v for k, v in rest.items() if v}, "conditions": conditions}


async def in_thought(autoscalers: Autoscalers, client: Client, case: Case) -> Outcome:
    """What our autoscaler would do now."""
    hpa = await client.get(HORIZONTAL_POD_AUTOSCALERS, case.name, "default")
    replicas = (await client.get(DEPLOYMENTS, case.name, "default"))["spec"]["replicas"]
    try:
        _, scale = await autoscalers._get_scale(hpa["spec"]["scaleTargetRef"], "default")
    except HolokubeError as error:
        status = decisions.unable_to_get_scale(hpa, error.message, WallClock().now())
        return Outcome(replicas, comparable(status), {("Warning", "FailedGetScale", error.message)})
    key = f"default/{case.name}"
    plan = await autoscalers._plan(key, hpa, decisions.Target.of(scale))
    history = plan.history
    if plan.rescales and "behavior" in hpa["spec"]:
        history = history.rescaled(plan.current, plan.desired, WallClock().time())
    autoscalers._histories[key] = history
    status, events = decisions.finish(hpa, plan, WallClock().now())
    return Outcome(plan.desired if plan.rescales else plan.current, comparable(status), set(events))


async def upstream(client: Client, case: Case) -> Outcome:
    hpa = await client.get(HORIZONTAL_POD_AUTOSCALERS, case.name, "default")
    scaled = await client.get(DEPLOYMENTS, case.name, "default")
    events = {
        (event["type"], event["reason"], event["message"])
        for event in (await client.list(EVENTS, "default")).items
        if event["involvedObject"]["name"] == case.name
    }
    return Outcome(scaled["spec"]["replicas"], comparable(hpa.get("status") or {}), events)


Pairs = dict[str, tuple[Outcome, Outcome]]
"""Ours and the real one's, by case."""


@pytest.fixture(scope="module")
def looks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Pairs]]:
    """The first look and the second."""
    folder = tmp_path_factory.mktemp("autoscaling")
    binaries = obtain(request, lambda: find_or_build(build=True, programs=(MANAGER,)))
    host = node("n1")
    host["metadata"]["creationTimestamp"] = HOUR_AGO
    with running(folder) as server:
        client = Client(InProcessTransport(server.server.registry))
        informers = InformerSet(WallClock(), client, Rng(1))
        objects = [host, *(made for case in CASES for made in case.objects())]
        autoscalers, stop = server.do(prepare(server, client, informers, objects))
        ours = server.do(decide_all(autoscalers, client))
        processes = Processes(folder / "lock", folder)
        try:
            key = folder / "sa.key"
            key.write_bytes(TokenSigner().key_pem())
            processes.start(
                MANAGER,
                [
                    str(binaries[MANAGER]), f"--kubeconfig={server.kubeconfig()}", "--bind-address=127.0.0.1",
                    "--secure-port=0", "--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000",
                    "--controllers=horizontal-pod-autoscaler-controller",
                    f"--horizontal-pod-autoscaler-sync-period={SYNC_S}s",
                    f"--service-account-private-key-file={key}",
                ],
                folder / "manager.log",
            )  # fmt: skip
            theirs = server.do(all_decided(client, ours))
            again = server.do(decide_all(autoscalers, client))
            theirs_again = server.do(all_decided_again(client, ours))
            yield [
                {name: (ours[name], theirs[name]) for name in ours},
                {name: (again[name], theirs_again[name]) for name in ours},
            ]
        finally:
            processes.stop()
            server.do(stop())


async def prepare(
    server: Embedded, client: Client, informers: InformerSet, objects: list[JsonObject]
) -> tuple[Autoscalers, Callable[[], Coroutine[Any, Any, None]]]:
    registry = server.server.registry
    report = await restore(registry, objects)
    assert not report.left_out, report.left_out[:3]
    recorder = EventRecorder(WallClock(), client, "unused", rng=Rng(2))
    autoscalers = Autoscalers(WallClock(), client, informers, recorder)
    listed = [informers.get(resource) for resource in (NODES, PODS, HORIZONTAL_POD_AUTOSCALERS)]
    attach(registry, KubeletApi(KubeletView(WallClock(), listed[0], listed[1])))
    for informer in listed:
        informer.start()
        await informer.synced()

    async def stop() -> None:
        for informer in listed:
            await informer.stop()

    return autoscalers, stop


async def decide_all(autoscalers: Autoscalers, client: Client) -> dict[str, Outcome]:
    return {case.name: await in_thought(autoscalers, client, case) for case in CASES}


async def all_decided(client: Client, ours: dict[str, Outcome]) -> dict[str, Outcome]:
    """What the real one made of all cases at its first look; the second one is seconds away."""
    deadline_s = time.monotonic() + 25
    while time.monotonic() < deadline_s:
        theirs = {case.name: await upstream(client, case) for case in CASES}
        if all(found.status["conditions"] for found in theirs.values()):
            # Events come a moment later than the status; one that never comes is a difference to be told.
            deadline_s = min(deadline_s, time.monotonic() + SYNC_S / 2)
            if all(theirs[name].events >= ours[name].events for name in ours):
                return theirs
        await asyncio.sleep(0.05)
    assert all(found.status["conditions"] for found in theirs.values()), "not all autoscalers were looked at in time"
    return theirs


async def all_decided_again(client: Client, first: dict[str, Outcome]) -> dict[str, Outcome]:
    """What the real one made of all cases at its second look: it begins with the sizes that the first one set."""
    async with asyncio.timeout(25):
        while True:
            theirs = {case.name: await upstream(client, case) for case in CASES}
            scaled = [name for name, outcome in first.items() if outcome.rescaled]
            assert scaled
            if all(theirs[name].status.get("currentReplicas") == first[name].replicas for name in scaled):
                return theirs
            await asyncio.sleep(0.05)


@pytest.mark.real
@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_ours_decides_and_speaks_as_the_real_one(name: str, looks: list[Pairs]) -> None:
    ours, theirs = looks[0][name]
    assert ours.replicas == theirs.replicas
    assert ours.status == theirs.status
    assert ours.events == theirs.events


@pytest.mark.real
@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_ours_remembers_what_the_real_one_does(name: str, looks: list[Pairs]) -> None:
    ours, theirs = looks[1][name]
    assert ours.replicas == theirs.replicas
    assert ours.status == theirs.status
