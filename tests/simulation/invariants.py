"""What must never be seen in a cluster, whatever goes wrong, and what must be true when all is calm again.

The checkers watch the store's own history through a transport without faults, so that they miss nothing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from holokube.client.client import Client
from holokube.client.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from holokube.kube.conditions import is_true
from holokube.kube.resources import ResourceVector, add, parse_resources, pod_requests
from holokube.kube.types import JsonObject

FINISHED = ("Succeeded", "Failed")
WATCHED: tuple[Resource, ...] = (NODES, PODS, POD_DISRUPTION_BUDGETS)
DELETABLE: tuple[Resource, ...] = (
    PODS, NODES, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS,
    SERVICES, POD_DISRUPTION_BUDGETS,
)  # fmt: skip


class Invariants:
    """Collects ``broken`` rules, each with the revision at which it broke."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.broken: list[str] = []
        self.pods: dict[str, JsonObject] = {}
        self.nodes: dict[str, JsonObject] = {}
        self.budgets: dict[str, JsonObject] = {}
        self.events_seen = 0
        self._node_of_uid: dict[str, str] = {}
        self._phase_of_uid: dict[str, str] = {}
        self._bound: dict[str, set[str]] = defaultdict(set)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for resource in WATCHED:
            self._tasks.append(asyncio.create_task(self._watch(resource)))
        await asyncio.sleep(0)

    async def stop(self) -> None:
        for task in self._tasks:
            assert not task.done(), f"a watch ended before the test: {task.exception()}"
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _watch(self, resource: Resource) -> None:
        last = 0
        async for event in self._client.watch(resource, bookmarks=False):
            assert event.type in ("ADDED", "MODIFIED", "DELETED"), event
            self.events_seen += 1
            revision = int(event.object["metadata"]["resourceVersion"])
            # A deleted object carries the revision of its deletion, so that no two events share one.
            if revision <= last and last > self._start:
                self._break(revision, f"{resource}: revision {revision} after {last}")
            last = max(last, revision)
            if resource is PODS:
                self._on_pod(event.type, event.object, revision)
            elif resource is NODES:
                self._keep(self.nodes, event.type, event.object)
                self._check_room(event.object["metadata"]["name"], revision)
            else:
                self._keep(self.budgets, event.type, event.object)

    _start = 0

    def begin(self, revision: int) -> None:
        """What was there before came in no order."""
        self._start = revision

    def _break(self, revision: int, text: str) -> None:
        self.broken.append(f"at {revision}: {text}")

    @staticmethod
    def _keep(objects: dict[str, JsonObject], event: str, obj: JsonObject) -> None:
        meta = obj["metadata"]
        key = f"{meta.get('namespace', '')}/{meta['name']}".lstrip("/")
        if event == "DELETED":
            objects.pop(key, None)
        else:
            objects[key] = obj

    def _on_pod(self, event: str, pod: JsonObject, revision: int) -> None:
        self._keep(self.pods, event, pod)
        meta, uid = pod["metadata"], pod["metadata"]["uid"]
        key, node = f"{meta['namespace']}/{meta['name']}", pod["spec"].get("nodeName", "")
        before = self._node_of_uid.get(uid, "")
        if before and node != before:
            self._break(revision, f"pod {key} moved from {before} to {node or 'nowhere'}")
        phase, phase_before = pod["status"].get("phase", ""), self._phase_of_uid.get(uid, "")
        if phase_before in FINISHED and phase != phase_before and not self._is_given_up(pod):
            self._break(revision, f"pod {key} went from {phase_before} to {phase}")
        if phase == "Running" and not node:
            self._break(revision, f"pod {key} is Running without a node")
        self._phase_of_uid[uid] = phase
        if not node:
            return
        self._node_of_uid[uid] = node
        if event == "DELETED" or phase in FINISHED:
            self._bound[node].discard(key)
        else:
            self._bound[node].add(key)
            self._check_room(node, revision)

    def _is_given_up(self, pod: JsonObject) -> bool:
        """Whether it was declared failed since its node is gone. The pod garbage collector goes by its cache, as
        upstream's does, and a watch that has fallen silent does not tell it that the pod had ended before."""
        conditions = pod["status"].get("conditions") or ()
        by_collector = any(condition.get("reason") == "DeletionByPodGC" for condition in conditions)
        return pod["status"]["phase"] == "Failed" and by_collector and pod["spec"].get("nodeName") not in self.nodes

    def _check_room(self, name: str, revision: int) -> None:
        """No node has more on it than it offers."""
        node = self.nodes.get(name)
        if node is None:
            return
        offered = parse_resources(node["status"].get("allocatable"))
        taken = used_on(self.pods[key] for key in self._bound[name] if key in self.pods)
        for resource, milli in taken.items():
            if milli > offered.get(resource, 0):
                self._break(revision, f"node {name} offers {offered.get(resource, 0)}m {resource}, has {milli}m on it")

    # When all is calm

    async def check_calm(self) -> None:
        """After faults are over and time has passed: everything asked for is there, nothing is left over."""
        for resource in DELETABLE:
            for obj in (await self._client.list(resource)).items:
                if obj["metadata"].get("deletionTimestamp"):
                    self.broken.append(f"{resource} {obj['metadata']['name']} is still being deleted")
        await self._check_owners()
        for pod in (await self._client.list(PODS)).items:
            node = pod["spec"].get("nodeName", "")
            if node and node not in self.nodes and pod["status"].get("phase") not in FINISHED:
                self.broken.append(f"pod {pod['metadata']['name']} is on {node}, which is gone")

    async def _check_owners(self) -> None:
        for resource in (DEPLOYMENTS, STATEFUL_SETS):
            for obj in (await self._client.list(resource)).items:
                wanted = obj["spec"].get("replicas", 1)
                ready = obj["status"].get("readyReplicas", 0)
                if (obj["status"].get("replicas", 0), ready) != (wanted, wanted):
                    self.broken.append(f"{resource} {obj['metadata']['name']}: {wanted} wanted, {obj['status']}")
        for obj in (await self._client.list(DAEMON_SETS)).items:
            status = obj["status"]
            if not status.get("numberReady", 0) == status["desiredNumberScheduled"] == len(self.nodes):
                self.broken.append(f"DaemonSet {obj['metadata']['name']} on {len(self.nodes)} nodes: {status}")
        for obj in (await self._client.list(JOBS)).items:
            done = is_true(obj, "Complete")
            if not done or obj["status"].get("succeeded", 0) != obj["spec"]["completions"]:
                self.broken.append(f"Job {obj['metadata']['name']}: {obj['status']}")


class HealthFloor:
    """The number of ready pods of an app, which may not fall below a floor once it has been above it."""

    def __init__(self, client: Client, app: str, floor: int) -> None:
        self._client, self._app, self._floor = client, app, floor
        self._ready: set[str] = set()
        self._reached = False
        self.lowest: int | None = None
        self.broken: list[str] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)

    async def _watch(self) -> None:
        async for event in self._client.watch(PODS, label_selector=f"app={self._app}", bookmarks=False):
            pod = event.object
            gone = event.type == "DELETED" or pod["metadata"].get("deletionTimestamp")
            if not gone and is_true(pod, "Ready"):
                self._ready.add(pod["metadata"]["uid"])
            else:
                self._ready.discard(pod["metadata"]["uid"])
            count = len(self._ready)
            self._reached = self._reached or count > self._floor
            if self._reached:
                self.lowest = count if self.lowest is None else min(self.lowest, count)
                if count < self._floor:
                    self.broken.append(f"{count} of {self._app} are ready at {pod['metadata']['resourceVersion']}")

    async def stop(self) -> None:
        assert self._task is not None
        assert not self._task.done(), "the watch ended before the test"
        self._task.cancel()
        await asyncio.wait({self._task})


def used_on(pods: Iterable[JsonObject]) -> ResourceVector:
    """What pods take, counted without the packing engine: a sum, and one slot each."""
    total: ResourceVector = {}
    for pod in pods:
        total = add(total, {**pod_requests(pod), "pods": 1000})
    return total
