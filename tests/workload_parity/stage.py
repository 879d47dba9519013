"""The stage of a scenario: what a user, a scheduler and kubelets do, in either kind of cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from holokube.base.clock import Clock
from holokube.client.client import Client, PatchType
from holokube.client.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.kube.timeformat import format_micro_time, format_time
from tests.workload_parity.normalize import Names, Snapshot

JsonObject = dict[str, Any]
Pod = Mapping[str, Any]

SCHEDULER = "parity"
"""No scheduler that may run answers to this name: the scenario binds its pods itself."""
SEEN_IN_NAMESPACE = (
    PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS,
    CONTROLLER_REVISIONS, SERVICES, ENDPOINTS, ENDPOINT_SLICES, POD_DISRUPTION_BUDGETS, PERSISTENT_VOLUME_CLAIMS,
    CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, RESOURCE_QUOTAS, EVENTS,
)  # fmt: skip
SEEN_IN_CLUSTER = (NODES, PERSISTENT_VOLUMES, NAMESPACES)
HEARTBEAT_S = 8.0
PATIENCE_S = 150.0
POLL_S = 0.2


class Stage:
    """One scenario on one cluster; ``settle`` waits until the cluster has nothing more to do."""

    def __init__(self, clock: Clock, client: Client, name: str, settle: Callable[[str], Awaitable[None]]) -> None:
        self.clock = clock
        self.client = client
        self.name = name
        self._settle = settle
        self._names = Names()
        self._addresses = 0
        self._beating: dict[str, asyncio.Task[None]] = {}
        self.steps: list[tuple[str, Snapshot]] = []

    async def open(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.name}})
        await self.until(SERVICE_ACCOUNTS, "default", lambda _found: True)

    async def close(self, *, clear: bool) -> None:
        """Stops heartbeats; ``clear`` also takes away what the scenario left, for a cluster that lives on."""
        for task in self._beating.values():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if not clear:
            return
        with contextlib.suppress(NotFound):
            await self.client.delete(NAMESPACES, self.name)
        for pod in (await self.client.list(PODS, self.name)).items:
            with contextlib.suppress(NotFound):
                await self.client.delete(PODS, pod["metadata"]["name"], self.name, grace_s=0)
        for node in self._beating:
            with contextlib.suppress(NotFound):
                await self.client.delete(NODES, node)

    async def step(self, title: str) -> None:
        """Lets the cluster come to rest, and writes down how it looks."""
        await self._settle(self.name)
        listed: dict[str, list[JsonObject]] = {}
        for resource in SEEN_IN_NAMESPACE:
            listed[resource.qualified_name] = (await self.client.list(resource, self.name)).items
        for resource in SEEN_IN_CLUSTER:
            found = (await self.client.list(resource)).items
            listed[resource.qualified_name] = [o for o in found if self._is_ours(o["metadata"]["name"])]
        cluster_events = (await self.client.list(EVENTS, "default")).items
        listed["events"] += [e for e in cluster_events if self._is_ours(e["involvedObject"]["name"])]
        self.steps.append((title, self._names.snapshot(listed)))

    def _is_ours(self, name: str) -> bool:
        return name == self.name or name.startswith(f"{self.name}.")

    async def settle(self) -> None:
        await self._settle(self.name)

    # What a user does

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        return await self.client.create(resource, obj, self.name if resource.namespaced else None)

    async def get(self, resource: Resource, name: str) -> JsonObject:
        return await self.client.get(resource, name, self.name if resource.namespaced else None)

    async def patch(
        self, resource: Resource, name: str, patch: Any, *, type: PatchType = PatchType.MERGE, subresource: str = ""
    ) -> JsonObject:
        space = self.name if resource.namespaced else None
        return await self.client.patch(
            resource, name, patch, namespace=space, type=type, subresource=subresource
        )

    async def image(self, resource: Resource, name: str, image: str) -> None:
        """`kubectl set image`."""
        template = {"spec": {"containers": [{"name": "c", "image": image}]}}
        await self.patch(resource, name, {"spec": {"template": template}}, type=PatchType.STRATEGIC)

    async def scale(self, resource: Resource, name: str, replicas: int) -> None:
        await self.patch(resource, name, {"spec": {"replicas": replicas}}, subresource="scale")

    async def delete(self, resource: Resource, name: str, **options: Any) -> None:
        await self.client.delete(resource, name, self.name if resource.namespaced else None, **options)

    async def until(self, resource: Resource, name: str, good: Callable[[JsonObject], bool]) -> None:
        """Waits for what the cluster does in its own time."""
        deadline_s = self.clock.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(NotFound):
                if good(await self.get(resource, name)):
                    return
            assert self.clock.monotonic() < deadline_s, f"{self.name}: waited in vain for {resource} {name}"
            await self.clock.sleep(POLL_S)

    async def until_gone(self, resource: Resource, name: str) -> None:
        deadline_s = self.clock.monotonic() + PATIENCE_S
        while True:
            try:
                await self.get(resource, name)
            except NotFound:
                return
            assert self.clock.monotonic() < deadline_s, f"{self.name}: {resource} {name} does not go"
            await self.clock.sleep(POLL_S)

    async def until_pods(self, good: Callable[[list[JsonObject]], bool]) -> None:
        deadline_s = self.clock.monotonic() + PATIENCE_S
        while not good(await self.pods()):
            assert self.clock.monotonic() < deadline_s, f"{self.name}: waited in vain for pods"
            await self.clock.sleep(POLL_S)

    async def until_event(self, reason: str, namespace: str = "", name: str = "") -> None:
        deadline_s = self.clock.monotonic() + PATIENCE_S
        selector = f"reason={reason}" + (f",involvedObject.name={name}" if name else "")
        while True:
            if (await self.client.list(EVENTS, namespace or self.name, field_selector=selector)).items:
                return
            assert self.clock.monotonic() < deadline_s, f"{self.name}: waited in vain for an event {reason}"
            await self.clock.sleep(POLL_S)

    # What a scheduler and kubelets do

    async def pods(self, owner: str = "", **labels: str) -> list[JsonObject]:
        """Pods by the start of their name and by labels, in an order that chance has no part in."""
        listed = (await self.client.list(PODS, self.name)).items
        return sorted(
            (
                pod for pod in listed
                if pod["metadata"]["name"].startswith(owner)
                and labels.items() <= (pod["metadata"].get("labels") or {}).items()
            ),
            key=_pod_order,
        )  # fmt: skip

    async def active(self, owner: str = "", **labels: str) -> list[JsonObject]:
        return [
            pod for pod in await self.pods(owner, **labels)
            if not pod["metadata"].get("deletionTimestamp")
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]  # fmt: skip

    async def start(self, pods: Sequence[Pod], *, node: str = "parity-1", ready: bool = True) -> None:
        """Binds pods that have no node, and has them run."""
        for pod in pods:
            meta = pod["metadata"]
            if not pod["spec"].get("nodeName"):
                await self.client.bind(self.name, meta["name"], node)
            now, self._addresses = format_time(self.clock.now()), self._addresses + 1
            address = f"10.1.{self._addresses // 250}.{self._addresses % 250 + 1}"
            word = "True" if ready else "False"
            conditions = [
                {"type": kind, "status": status, "lastTransitionTime": now} for kind, status in (
                    ("Initialized", "True"), ("Ready", word), ("ContainersReady", word), ("PodScheduled", "True")
                )
            ]  # fmt: skip
            status = {
                "phase": "Running", "startTime": now, "podIP": address, "podIPs": [{"ip": address}],
                "hostIP": "10.2.0.1", "hostIPs": [{"ip": "10.2.0.1"}], "conditions": conditions,
                "containerStatuses": self._containers(pod, {"running": {"startedAt": now}}, ready),
            }  # fmt: skip
            await self.patch(PODS, meta["name"], {"status": status}, subresource="status")

    async def end(self, pods: Sequence[Pod], phase: str = "Succeeded", exit_code: int = 0, **more: Any) -> None:
        """The containers of pods end, and with them the pods."""
        for pod in pods:
            meta = pod["metadata"]
            if not (await self.get(PODS, meta["name"]))["spec"].get("nodeName"):
                await self.client.bind(self.name, meta["name"], "parity-1")
            now = format_time(self.clock.now())
            state = {"terminated": {"exitCode": exit_code, "finishedAt": now, "startedAt": now, "reason": "Ended"}}
            conditions = [
                {"type": kind, "status": "False", "lastTransitionTime": now, "reason": "PodFailed"}
                for kind in ("Ready", "ContainersReady")
            ] + list(more.pop("conditions", ()))
            status = {
                "phase": phase, "conditions": conditions,
                "containerStatuses": self._containers(pod, state, ready=False), **more,
            }  # fmt: skip
            await self.patch(PODS, meta["name"], {"status": status}, subresource="status")

    def _containers(self, pod: Pod, state: JsonObject, ready: bool) -> list[JsonObject]:
        return [
            {
                "name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
                "restartCount": 0, "started": "running" in state, "state": state,
            }
            for container in pod["spec"]["containers"]
        ]  # fmt: skip

    async def finish(self) -> None:
        """Kubelets let the pods go that are being deleted."""
        for pod in await self.pods():
            meta = pod["metadata"]
            if meta.get("deletionTimestamp"):
                with contextlib.suppress(NotFound):
                    await self.client.delete(PODS, meta["name"], self.name, grace_s=0, uid=meta["uid"])

    async def launch(self, owner: str = "", *, node: str = "parity-1", rounds: int = 40) -> None:
        """Plays scheduler and kubelets, all pods at once, until nothing is left to start or to let go."""
        for _ in range(rounds):
            await self.finish()
            await self.start([p for p in await self.active(owner) if not _runs(p)], node=node)
            await self.settle()
            if all(_runs(pod) and not _leaves(pod) for pod in await self.pods(owner)):
                return
        raise AssertionError(f"{self.name}: pods do not come to rest")

    async def run_all(self, owner: str = "", *, node: str = "parity-1", turns: int = 80) -> None:
        """The same one pod at a time, so that it does not matter how many a controller sees in one look."""
        for _ in range(turns):
            if not await self.advance(owner, node=node):
                return
        raise AssertionError(f"{self.name}: pods do not come to rest")

    async def advance(self, owner: str = "", *, node: str = "parity-1") -> bool:
        """Lets one pod go, or else starts one; whether there was one."""
        pods = await self.pods(owner)
        leaving, waiting = [p for p in pods if _leaves(p)], [p for p in pods if not _runs(p)]
        if leaving:
            meta = leaving[0]["metadata"]
            await self.client.delete(PODS, meta["name"], self.name, grace_s=0, uid=meta["uid"])
        elif waiting:
            await self.start(waiting[:1], node=wanted_node(waiting[0]) or node)
        else:
            return False
        await self.settle()
        return True

    # Nodes

    async def node(self, name: str, *, taints: Sequence[JsonObject] = (), **labels: str) -> str:
        """A node that is up and stays so; its whole name."""
        whole = f"{self.name}.{name}"
        await up_node(self.client, self.clock, whole, labels)
        self._beating[whole] = asyncio.create_task(beat(self.clock, self.client, whole))
        await self.until(NODES, whole, lambda found: not found["spec"].get("taints"))
        await self.until_event("RegisteredNode", "default", whole)
        if taints:
            await self.patch(NODES, whole, {"spec": {"taints": list(taints)}})
        return whole

    async def silence(self, node: str) -> None:
        """The kubelet of a node is gone."""
        task = self._beating[node]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def revive(self, node: str) -> None:
        """The kubelet is back and says so."""
        await renew(self.clock, self.client, node)
        self._beating[node] = asyncio.create_task(beat(self.clock, self.client, node))
        await self.client.patch_status(NODES, node, {"status": {"conditions": [ready_condition(self.clock)]}})


def _runs(pod: Pod) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Running")


def _leaves(pod: Pod) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def wanted_node(pod: Pod) -> str:
    """The node that a DaemonSet's pod is for."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def _pod_order(pod: Pod) -> tuple[str, ...]:
    meta, spec = pod["metadata"], pod["spec"]
    index = (meta.get("annotations") or {}).get("batch.kubernetes.io/job-completion-index") or ""
    return spec["containers"][0]["image"], wanted_node(pod), spec.get("nodeName") or "", index, meta["name"]


async def up_node(client: Client, clock: Clock, name: str, labels: Mapping[str, str]) -> None:
    """Creates a node, its lease, and its word that it is ready."""
    await client.create(NODES, {"metadata": {"name": name, "labels": {**labels, "parity/node": name}}})
    await renew(clock, client, name)
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    status = {"conditions": [ready_condition(clock)], "capacity": capacity, "allocatable": capacity}
    await client.patch_status(NODES, name, {"status": status})


def ready_condition(clock: Clock) -> JsonObject:
    now = format_time(clock.now())
    return {
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    }  # fmt: skip


async def renew(clock: Clock, client: Client, name: str) -> None:
    spec = {
        "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format_micro_time(clock.now()),
    }  # fmt: skip
    try:
        await client.create(LEASES, {"metadata": {"name": name}, "spec": spec}, "kube-node-lease")
    except AlreadyExists:
        await client.patch(LEASES, name, {"spec": spec}, namespace="kube-node-lease")


async def beat(clock: Clock, client: Client, name: str) -> None:
    while True:
        await clock.sleep(HEARTBEAT_S)
        await renew(clock, client, name)
