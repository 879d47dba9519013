"""The real kube-scheduler as an oracle: what it says about the pods of a world.

It is configured with an HTTP extender, which it asks about the nodes that passed all of its own filters: that
is its verdict. For the filters the extender then refuses them all, so that nothing is ever bound and every pod
is judged by the same cluster. Preemption is off; no other controller runs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from aiohttp import web

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    RUNTIME_CLASSES,
    SERVICES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    built_in_for,
)
from holokube.testing.controlplane import Binaries, ControlPlane
from tests.builders import JsonObject
from tests.parity.clusters import World
from tests.parity.draws import NAMESPACES as NAMESPACE_NAMES
from tests.parity.random_pods import RUNTIME_CLASS

REFUSED = "refused by the recorder"
_ADMISSION_OFF = (
    # Nodes would be tainted until somebody says that they are ready, volumes kept by finalizers, pods given
    # tolerations that the generator did not draw.
    "TaintNodesByCondition,StorageObjectInUseProtection,DefaultTolerationSeconds,ServiceAccount"
)
_SCORED = re.compile(
    r'"Plugin scored node for pod" pod="[^"/]*/(?P<pod>[^"]*)" plugin="(?P<plugin>[^"]*)"'
    r' node="(?P<node>[^"]*)" score=(?P<score>-?\d+)'
)
LOG_SCORES = "--vmodule=schedule_one=10"
# A batch takes the second best node of the pod before, and scores nothing.
NO_BATCHES = "--feature-gates=OpportunisticBatching=false"
_SETTLE_S = 0.25
_PATIENCE_S = 30.0
_QUIET_S = 0.6


@dataclass(frozen=True)
class Verdict:
    """What the scheduler says about one pod."""

    feasible: list[str]
    """The names of the nodes that passed all filters, sorted."""
    reason: str
    message: str


@dataclass(frozen=True)
class Placement:
    """What the scheduler did with one pod."""

    feasible: list[str]
    node: str
    """Empty if it stayed pending."""
    scores: dict[str, list[int]]
    """By plugin: the weighted score of each feasible node. Empty if there was no choice."""


class ScoreLog:
    """The scores that the scheduler writes to its log at verbosity 10."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._scores: dict[str, dict[str, dict[str, int]]] = {}

    def of(self, pod: str, nodes: list[str]) -> dict[str, list[int]]:
        """The scores of a pod that was just placed, by plugin and then as ``nodes``."""
        with self._path.open("rb") as log:
            log.seek(self._read)
            content = log.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        for match in _SCORED.finditer(whole.decode(errors="replace")):
            by_plugin = self._scores.setdefault(match["pod"], {})
            by_plugin.setdefault(match["plugin"], {})[match["node"]] = int(match["score"])
        found = self._scores.pop(pod)
        return {plugin: [by_node[node] for node in nodes] for plugin, by_node in sorted(found.items())}


class Oracle:
    """A running control plane with a scheduler that tells what it thinks."""

    def __init__(self, plane: ControlPlane, client: Client, *, refuses: bool, settle_s: float) -> None:
        self.plane, self.client = plane, client
        self._refuses, self._settle_s = refuses, settle_s
        self.feasible: dict[str, list[str]] = {}
        """By pod name: what the last scheduling attempt found."""
        self._scores = ScoreLog(plane.log_file("kube-scheduler"))

    async def _filter(self, request: web.Request) -> web.Response:
        asked = await request.json()
        names = sorted(asked["NodeNames"])
        self.feasible[asked["Pod"]["metadata"]["name"]] = names
        if self._refuses:
            return web.json_response({"NodeNames": [], "FailedNodes": dict.fromkeys(names, REFUSED)})
        return web.json_response({"NodeNames": names})

    async def prepare(self) -> None:
        """What all worlds share."""
        for name in NAMESPACE_NAMES:
            await asyncio.to_thread(self.plane.create_namespace, name)
        await self.client.create(RUNTIME_CLASSES, RUNTIME_CLASS)

    async def build(self, world: World) -> None:
        """Make everything but the pending pods; returns when the scheduler has most likely seen it.

        Nothing tells what a scheduler has in its cache (its metrics lag by a second), so this waits a while.
        """
        for namespace in world.namespaces:
            name = namespace["metadata"]["name"]
            current = await self.client.get(NAMESPACES, name)
            labels = namespace["metadata"]["labels"]
            await self.client.update(NAMESPACES, {**current, "metadata": {**current["metadata"], "labels": labels}})
        await self._create([*world.storage, *world.owners])
        await self._create(world.nodes)
        await self._create(world.bound)
        await asyncio.sleep(self._settle_s)

    async def _create(self, objects: Iterable[JsonObject]) -> None:
        await asyncio.gather(*(self.create(obj) for obj in objects))

    async def create(self, obj: JsonObject) -> JsonObject:
        """Create an object with its status, and delete it if it says so."""
        resource = built_in_for(obj)
        assert resource is not None, obj["kind"]
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        made = await self.client.create(resource, _without_deletion(obj))
        if "status" in obj and obj["kind"] != "Node":
            made = await self.client.patch_status(resource, name, {"status": obj["status"]}, namespace=namespace)
        if "deletionTimestamp" in metadata or metadata.get("finalizers"):
            # Without a kubelet a pod with a node stays for ever in its grace period.
            made = await self.client.delete(resource, name, namespace)
        return made

    async def clear(self) -> None:
        """Remove everything that worlds consist of, pending pods first."""
        spaces = NAMESPACE_NAMES
        await self._clear_pods("spec.nodeName=")
        for claim in (await self.client.list_all(PERSISTENT_VOLUME_CLAIMS)).items:
            if claim["metadata"].get("finalizers"):
                name, space = claim["metadata"]["name"], claim["metadata"]["namespace"]
                patch = {"metadata": {"finalizers": None}}
                await self.client.patch(PERSISTENT_VOLUME_CLAIMS, name, patch, namespace=space)
        await self._clear_pods("")
        namespaced = (PERSISTENT_VOLUME_CLAIMS, CSI_STORAGE_CAPACITIES, REPLICA_SETS, SERVICES)
        unbounded = (NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, VOLUME_ATTACHMENTS)
        await asyncio.gather(
            *(self.client.delete_collection(resource, space) for resource in namespaced for space in spaces),
            *(self.client.delete_collection(resource) for resource in unbounded),
        )

    async def _clear_pods(self, selector: str) -> None:
        await asyncio.gather(*(
            self.client.delete_collection(PODS, space, field_selector=selector, grace_s=0)
            for space in NAMESPACE_NAMES
        ))  # fmt: skip

    async def judge(self, world: World) -> list[Verdict]:
        """The verdict about each pending pod of a world; the world is removed again."""
        self.feasible.clear()
        await self.build(world)
        await self._create(world.pending)
        names = [pod["metadata"]["name"] for pod in world.pending]
        conditions = await self.await_conditions(set(names))
        verdicts = [
            Verdict(self.feasible.get(name, []), conditions[name]["reason"], conditions[name].get("message", ""))
            for name in names
        ]
        await self.clear()
        return verdicts

    async def place(self, world: World) -> list[Placement]:
        """Let the scheduler place the pending pods one after the other; the world is removed again."""
        self.feasible.clear()
        await self.build(world)
        placements = []
        for pod in world.pending:
            await self.create(pod)
            placed = await self.await_pod(pod)
            name = pod["metadata"]["name"]
            feasible = self.feasible.get(name, [])
            scores = await asyncio.to_thread(self._scores.of, name, feasible) if len(feasible) > 1 else {}
            placements.append(Placement(feasible, placed["spec"].get("nodeName", ""), scores))
        await self.clear()
        return placements

    async def fill(self, world: World) -> list[str]:
        """Create the pending pods in their order, and say which of them have no node when nothing moves any more."""
        await self.build(world)
        for pod in world.pending:
            await self.create(pod)
        quiet_since, last = 0.0, None
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_PATIENCE_S):
            while last is None or loop.time() < quiet_since + _QUIET_S:
                pods = (await self.client.list_all(PODS)).items
                state = {
                    pod["metadata"]["name"]: (pod["spec"].get("nodeName"), bool(pod["status"].get("conditions")))
                    for pod in pods
                }
                is_decided = all(node or has_conditions for node, has_conditions in state.values())
                if state != last or not is_decided:
                    quiet_since, last = loop.time(), state
                await asyncio.sleep(0.1)
        await self.clear()
        return [name for name, (node, _) in last.items() if not node]

    async def await_conditions(self, names: set[str]) -> dict[str, JsonObject]:
        """The PodScheduled condition of each pod, once all have one."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                found = {}
                for pod in (await self.client.list_all(PODS)).items:
                    for condition in pod["status"].get("conditions", ()):
                        if condition["type"] == "PodScheduled":
                            found[pod["metadata"]["name"]] = condition
                if names <= found.keys():
                    return {name: found[name] for name in names}
                await asyncio.sleep(0.05)

    async def await_pod(self, pod: JsonObject) -> JsonObject:
        """A pod once it has a node or the scheduler has said why not."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                current = await self.client.get(PODS, name, namespace)
                if current["spec"].get("nodeName") or current["status"].get("conditions"):
                    return current
                await asyncio.sleep(0.01)


def _without_deletion(obj: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "deletionTimestamp"}
    return {**obj, "metadata": metadata}


@asynccontextmanager
async def running_oracle(
    binaries: Binaries,
    workdir: Path,
    *,
    refuses: bool = True,
    extended: bool = True,
    settle_s: float = _SETTLE_S,
    scheduler_args: Iterable[str] = (),
) -> AsyncIterator[Oracle]:
    """Start etcd, kube-apiserver and kube-scheduler with the extender; stop them in the end.

    Without the extender (``extended=False``) the scheduler runs exactly as it does by default.
    """
    config = workdir / "scheduler.yaml"
    plane = ControlPlane(
        binaries, workdir, ("scheduler",),
        apiserver_args=[f"--disable-admission-plugins={_ADMISSION_OFF}"],
        scheduler_args=[*([f"--config={config}"] if extended else []), *scheduler_args],
    )  # fmt: skip
    oracles: list[Oracle] = []

    async def answer(request: web.Request) -> web.Response:
        return await oracles[0]._filter(request)

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/filter", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        text = yaml.safe_dump(scheduler_configuration(plane.kubeconfig, f"http://127.0.0.1:{port}"))
        await asyncio.to_thread(config.write_text, text)
        await asyncio.to_thread(plane.start)
        try:
            access = load_access(str(plane.kubeconfig))
            async with Client(HttpTransport(WallClock(), access, max_connections=16)) as client:
                oracle = Oracle(plane, client, refuses=refuses, settle_s=settle_s)
                oracles.append(oracle)
                await oracle.prepare()
                yield oracle
        finally:
            await asyncio.to_thread(plane.stop)
    finally:
        await runner.cleanup()


def scheduler_configuration(kubeconfig: Path, extender_url: str) -> JsonObject:
    """The default profile without preemption, and with an extender that sees the feasible nodes."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 100,
        "profiles": [{
            "schedulerName": "default-scheduler",
            "plugins": {"postFilter": {"disabled": [{"name": "*"}]}},
        }],
        "extenders": [{
            "urlPrefix": extender_url, "filterVerb": "filter", "nodeCacheCapable": True, "weight": 1,
            "enableHTTPS": False, "httpTimeout": "10s",
        }],
    }  # fmt: skip


__all__ = ["LOG_SCORES", "NO_BATCHES", "REFUSED", "Oracle", "Placement", "Verdict", "running_oracle"]
