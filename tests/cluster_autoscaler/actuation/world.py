"""A small cluster with node groups, an actuator, and ears for everything it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from holokube.client.resources import NODES, PODS
from holokube.cluster_autoscaler.actuation.actuator import Actuator
from holokube.cluster_autoscaler.actuation.tracker import NodeDeletionTracker
from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, NodeInfo, ResourceLimiter
from holokube.cluster_autoscaler.groups import GroupView
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.plan.provider import GroupSpec, PlanProvider
from holokube.cluster_autoscaler.scale_down.budgets import GroupBatch
from holokube.cluster_autoscaler.scale_down.report import NodeToRemove
from holokube.kube.types import JsonObject
from holokube.testing import Cluster

OPTIONS = AutoscalerOptions()


def node(name: str, **metadata: Any) -> JsonObject:
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata},
        "spec": {"providerID": f"plan://g/{name}"}, "status": {**status, "allocatable": status["capacity"]},
    }


def pod(name: str, node_name: str, *, owner: str = "ReplicaSet", grace_s: int = 30, **metadata: Any) -> JsonObject:
    references = [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": "a"},
            **({"ownerReferences": references} if owner else {}), **metadata,
        },
        "spec": {
            "nodeName": node_name, "containers": [{"name": "c", "image": "i"}],
            "terminationGracePeriodSeconds": grace_s,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


class World:
    """What the tests look at."""

    def __init__(self, cluster: Cluster, options: AutoscalerOptions, group: GroupOptions | None, min_size: int) -> None:
        self.cluster = cluster
        self.clock = cluster.clock
        self.client = cluster.client
        self.options = options
        self.events: list[tuple[str, str, str, str]] = []
        self.status: list[tuple[str, str]] = []
        self.observed: list[tuple[Any, ...]] = []
        self.pods: list[JsonObject] = []
        self.pdbs: list[JsonObject] = []
        self.controllers: dict[tuple[str, str, str], JsonObject] = {("ReplicaSet", "default", "o"): {}}
        self.tracker = NodeDeletionTracker(self.clock)
        self._group_options = group
        self._min_size = min_size
        self.provider: PlanProvider
        self.actuator: Actuator

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str, /) -> None:
        self.events.append((obj["metadata"]["name"], type, reason, message))

    def reasons(self, name: str) -> list[str]:
        """The reasons of the events of one object."""
        return [reason for about, _, reason, _ in self.events if about == name]

    def node_deleted(self, group_id: str, node: JsonObject, *, drain: bool, now_s: float) -> None:
        self.observed.append(("deleted", group_id, node["metadata"]["name"], drain))

    def deletion_failed(self, group_id: str, kind: ErrorKind, now_s: float) -> None:
        self.observed.append(("failed", group_id, kind))

    def pod_evicted(self, *, succeeded: bool) -> None:
        self.observed.append(("evicted", succeeded))

    def deletions_pending(self, count: int) -> None:
        self.observed.append(("pending", count))

    async def build(self) -> None:
        nodes = (await self.client.list(NODES)).items
        self.pods = (await self.client.list(PODS)).items
        spec = GroupSpec("g", self._min_size, 100, NodeInfo(node("t")), options=self._group_options)
        self.provider = PlanProvider(self.clock, self.client, [spec], {"g": nodes}, limiter=ResourceLimiter())
        self.actuator = Actuator(
            self.clock, self.client, self.provider, self.options, self, self.note, self.tracker, self.observe, self)

    def note(self, type: str, reason: str, message: str, /) -> None:
        self.status.append((reason, message))

    def observe(self) -> Observation:
        return Observation(
            self.clock.time(), pods=tuple(self.pods), pdbs=tuple(self.pdbs), controllers=self.controllers)

    def pods_on(self, name: str) -> list[JsonObject]:
        return [found for found in self.pods if found["spec"].get("nodeName") == name]

    async def batch(self, *names: str, whole: int = 0) -> GroupBatch:
        """Nodes that go together."""
        view = GroupView("g", self._min_size, 100, len(names), self._group_options or GroupOptions())
        removals = [NodeToRemove(await self.client.get(NODES, name), tuple(self.pods_on(name))) for name in names]
        return GroupBatch(view, removals, whole)

    async def taints(self) -> dict[str, list[str]]:
        """The keys of the taints of every node; cordoned ones have ``cordoned`` too."""
        found = {}
        for item in (await self.client.list(NODES)).items:
            keys = [taint["key"] for taint in item["spec"].get("taints") or ()]
            keys = [key for key in keys if key != "node.kubernetes.io/unschedulable"]
            found[item["metadata"]["name"]] = keys + ["cordoned"] * bool(item["spec"].get("unschedulable"))
        return found

    async def kubelet(self) -> None:
        """Pods that are asked to go are gone within a second."""
        while True:
            await self.clock.sleep(1)
            for found in (await self.client.list(PODS)).items:
                if found["metadata"].get("deletionTimestamp"):
                    await self.client.delete(PODS, found["metadata"]["name"], "default", grace_s=0)


@contextmanager
def world(
    *objects: JsonObject, group: GroupOptions | None = None, min_size: int = 0, **options: Any
) -> Iterator[World]:
    """A cluster with these nodes and pods, all nodes in group ``g``."""
    with Cluster(objects=objects) as cluster:
        found = World(cluster, replace(OPTIONS, **options), group, min_size)
        cluster.run(found.build())
        yield found
