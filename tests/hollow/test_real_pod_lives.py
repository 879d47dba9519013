"""What the pod machines decide, sent to the real kube-apiserver: it takes every patch, and shows what was meant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from holokube.base.clock import WallClock
from holokube.client.client import Client, PatchType
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS
from holokube.hollow import pod_life
from holokube.hollow.pod_state import Command, DeletePod, PatchStatus, PodLife, PodRun
from holokube.hollow.profile import FAST, PodProfile
from holokube.hollow.stages.lives import StageBook, StagedPodLife
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.testing.controlplane import ControlPlane
from tests.builders import pod
from tests.hollow.stages.samples import DELETE, START, stage, stages
from tests.hollow.worlds import DRAW, FakeHost, fake_node

NOW_S = 1_790_000_000.0


def on(plane: ControlPlane, test: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Client(HttpTransport(WallClock(), load_access(str(plane.kubeconfig)))) as client:
            async with asyncio.timeout(60):
                await test(client)

    asyncio.run(main())


class Pod:
    """A pod on the server, and the machine that leads its life; time is a number."""

    def __init__(self, client: Client, life: PodLife, profile: PodProfile = FAST) -> None:
        self._client = client
        self._life = life
        self._profile = profile
        self._run: PodRun | None = None
        self.now_s = NOW_S
        self.obj: JsonObject = {}

    async def create(self, namespace: str, **spec: Any) -> None:
        await self._client.create(NAMESPACES, {"metadata": {"name": namespace}})
        await self._client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace)
        node = {**fake_node(namespace), "status": {"capacity": {"cpu": "8", "pods": "10"},
                                                   "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}}
        node["metadata"]["labels"] = {"kubernetes.io/os": "linux"}
        await self._client.create(NODES, node)
        given = pod("p", namespace, node=namespace, automountServiceAccountToken=False, **spec)
        self.obj = await self._client.create(PODS, given)
        self._run = self._life.begin(self.obj, self._profile, FakeHost(), self.now_s, DRAW)

    async def step(self, after_s: float = 0.0) -> JsonObject:
        assert self._run is not None
        self.now_s += after_s
        await self.read()
        await self._carry_out(self._life.step(self.obj, self._run, self.now_s, DRAW).commands)
        return self.obj

    async def read(self) -> None:
        self.obj = await self._client.get(PODS, "p", self.obj["metadata"]["namespace"])

    async def _carry_out(self, commands: Iterable[Command]) -> None:
        space = self.obj["metadata"]["namespace"]
        for command in commands:
            if isinstance(command, PatchStatus):
                self.obj = await self._client.patch(
                    PODS, "p", command.patch, namespace=space, subresource=command.subresource,
                    type=PatchType[command.type.upper()],
                )  # fmt: skip
            elif isinstance(command, DeletePod):
                await self._client.delete(PODS, "p", space, grace_s=0, uid=command.uid)

    def condition(self, kind: str) -> JsonObject | None:
        return next((c for c in self.obj["status"]["conditions"] if c["type"] == kind), None)


def test_a_resize_shows_and_its_conditions_go_again(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        given = Pod(client, pod_life, msgspec.structs.replace(FAST, resize=5.0))
        await given.create("resize", containers=[
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}])  # fmt: skip
        await given.step()
        change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
        await client.patch(PODS, "p", change, namespace="resize", subresource="resize", type=PatchType.STRATEGIC)
        await given.step()
        (entry,) = given.obj["status"]["containerStatuses"]
        assert (entry["resources"]["requests"]["cpu"], entry["allocatedResources"]["cpu"]) == ("1", "2")
        assert given.condition("PodResizeInProgress") is not None
        await given.step(5)
        await given.read()
        (entry,) = given.obj["status"]["containerStatuses"]
        assert entry["resources"]["requests"]["cpu"] == "2"
        assert given.condition("PodResizeInProgress") is None
        assert given.obj["status"]["observedGeneration"] == given.obj["metadata"]["generation"] == 2

    on(real_apiserver, test)


FINALIZE = stage(
    "finalize",
    "selector: {matchExpressions: [{key: '.metadata.annotations.x', operator: DoesNotExist}]}\nweight: 1000000\n"
    "next: {finalizers: {add: [{value: example.com/f}]}, patches: [{root: metadata, type: merge, "
    "template: 'annotations: {x: {{ .metadata.name }}}'}]}",
)
UNFINALIZE = stage(
    "unfinalize",
    "selector: {matchExpressions: [{key: .metadata.deletionTimestamp, operator: Exists}, "
    "{key: '.metadata.finalizers.[]', operator: Exists}]}\nweight: 1000000\nnext: {finalizers: {empty: true}}",
)


def test_stages_lead_a_pod_from_its_start_to_its_end(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        given = Pod(client, StagedPodLife(StageBook(stages(START, DELETE, FINALIZE, UNFINALIZE)), start_s=NOW_S))
        await given.create("staged")
        await given.step()
        assert given.obj["metadata"]["finalizers"] == ["example.com/f"]
        assert given.obj["metadata"]["annotations"]["x"] == "p"
        await given.step()
        assert given.obj["status"]["phase"] == "Pending"
        await given.step(5)
        status = given.obj["status"]
        assert (status["phase"], status["podIP"]) == ("Running", "10.1.0.1")
        assert status["containerStatuses"][0]["state"]["running"]["startedAt"] == "2026-09-21T14:13:25Z"
        await client.delete(PODS, "p", "staged")
        await given.step()
        assert "finalizers" not in given.obj["metadata"]
        await given.step()
        try:
            await given.read()
        except NotFound:
            return
        raise AssertionError("the pod is still there")

    on(real_apiserver, test)


def test_a_preempted_pod_shows_why(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        given = Pod(client, pod_life)
        await given.create("preempted")
        await given.step()
        assert given._run is not None
        pod_life.preempt(given.obj, given._run, given.now_s, DRAW)
        await given.step()
        assert (given.obj["status"]["phase"], given.obj["status"]["reason"]) == ("Failed", "Preempting")
        target = given.condition("DisruptionTarget")
        assert target is not None and target["reason"] == "TerminationByKubelet"

    on(real_apiserver, test)
