"""Users and misfortune, drawn from a seed: what people and machines do to a cluster within an hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from holokube.client.client import PatchType
from holokube.client.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from holokube.hollow.node_life import FAULT, REBOOT, registration
from holokube.hollow.profile import NodeProfile
from holokube.kube.errors import ApiError, Forbidden, NotFound, TooManyRequests
from holokube.kube.types import JsonObject
from tests.simulation.world import CAPACITY, SimulatedCluster

IMAGE = "registry.example/app:"
FAULTS = ("not-ready", "silent", "slow", "memory-pressure", "disk-pressure")


class Actors:
    """Does one random thing at a time; ``done`` counts what."""

    def __init__(self, world: SimulatedCluster) -> None:
        self._world, self._client, self._rng = world, world.client, world.rng
        self._numbers = 0
        self.done: Counter[str] = Counter()
        self._actions: tuple[tuple[int, Callable[[], Awaitable[None]]], ...] = (
            (6, self.create_deployment), (2, self.create_stateful_set), (1, self.create_daemon_set),
            (3, self.create_job), (5, self.scale), (4, self.roll), (3, self.delete_owner), (4, self.delete_pod),
            (3, self.drain), (3, self.break_node), (2, self.reboot_node), (2, self.replace_node),
            (1, self.namespace_comes_and_goes),
        )  # fmt: skip

    async def act(self, actions: int, *, mean_pause_s: float) -> None:
        """So many things, with pauses in between."""
        total = sum(weight for weight, _ in self._actions)
        for _ in range(actions):
            draw = self._rng.randrange(total)
            for weight, action in self._actions:
                draw -= weight
                if draw < 0:
                    self.done[action.__name__] += 1
                    with suppress(NotFound):  # Somebody else was faster.
                        await action()
                    break
            await self._world.clock.sleep(self._rng.expovariate(1 / mean_pause_s))

    async def heal(self, *, new_nodes: int) -> None:
        """All nodes are well again, and there are enough of them for everything that waits."""
        for _ in range(new_nodes):
            await self._register()
        for node in (await self._client.list(NODES)).items:
            patch = {"metadata": {"annotations": {FAULT: None}}, "spec": {"unschedulable": None}}
            await self._client.patch(NODES, node["metadata"]["name"], patch, type=PatchType.MERGE)

    # Users

    def _name(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}-{self._numbers}"

    def _template(self, name: str, **spec: Any) -> JsonObject:
        cpu = self._rng.choice(("100m", "500m", "1", "2"))
        container = {"name": "c", "image": f"{IMAGE}1", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
        return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}

    async def create_deployment(self) -> None:
        name = self._name("web")
        spread = {
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": name}},
        }  # fmt: skip
        extra = {"topologySpreadConstraints": [spread]} if self._rng.random() < 0.3 else {}
        await self._create(DEPLOYMENTS, name, {
            "replicas": 1 + self._rng.randrange(8), "selector": {"matchLabels": {"app": name}},
            "template": self._template(name, **extra),
        })  # fmt: skip
        if self._rng.random() < 0.5:
            budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}
            await self._create(POD_DISRUPTION_BUDGETS, name, budget)
        if self._rng.random() < 0.3:
            await self._create(SERVICES, name, {"selector": {"app": name}, "ports": [{"port": 80}]})

    async def create_stateful_set(self) -> None:
        name = self._name("db")
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        await self._create(STATEFUL_SETS, name, {
            "replicas": 1 + self._rng.randrange(3), "selector": {"matchLabels": {"app": name}}, "serviceName": name,
            "template": self._template(name),
            "podManagementPolicy": self._rng.choice(("OrderedReady", "Parallel")),
            **({"volumeClaimTemplates": [claim]} if self._world.has_storage else {}),
        })  # fmt: skip

    async def create_daemon_set(self) -> None:
        name = self._name("agent")
        # Where a node is full, others make way for it.
        template = self._template(name, priorityClassName="system-node-critical")
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "50m"
        await self._create(DAEMON_SETS, name, {"selector": {"matchLabels": {"app": name}}, "template": template})

    async def create_job(self) -> None:
        name = self._name("batch")
        await self._create(JOBS, name, {
            "completions": 1 + self._rng.randrange(5), "parallelism": 1 + self._rng.randrange(3), "backoffLimit": 1000,
            "completionMode": self._rng.choice(("NonIndexed", "Indexed")),
            "template": self._template(name, restartPolicy="Never"),
        })  # fmt: skip

    async def _create(self, resource: Resource, name: str, spec: JsonObject) -> None:
        await self._client.create(resource, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    async def _any(self, resource: Resource) -> JsonObject | None:
        found = [o for o in (await self._client.list(resource)).items if not o["metadata"].get("deletionTimestamp")]
        return self._rng.choice(found) if found else None

    async def scale(self) -> None:
        resource = self._rng.choice((DEPLOYMENTS, DEPLOYMENTS, STATEFUL_SETS))
        if (obj := await self._any(resource)) is not None:
            patch = {"spec": {"replicas": self._rng.randrange(9)}}
            await self._client.patch(
                resource, obj["metadata"]["name"], patch, namespace="default", type=PatchType.MERGE
            )

    async def roll(self) -> None:
        resource = self._rng.choice((DEPLOYMENTS, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS))
        if (obj := await self._any(resource)) is not None:
            container = {"name": "c", "image": f"{IMAGE}{2 + self._rng.randrange(99)}"}
            patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
            await self._client.patch(
                resource, obj["metadata"]["name"], patch, namespace="default", type=PatchType.STRATEGIC
            )

    async def delete_owner(self) -> None:
        resource = self._rng.choice((DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS))
        if (obj := await self._any(resource)) is not None:
            how = self._rng.choice(("Background", "Foreground"))
            await self._client.delete(resource, obj["metadata"]["name"], "default", propagation=how)

    async def delete_pod(self) -> None:
        if (pod := await self._any(PODS)) is not None:
            await self._client.delete(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])

    async def namespace_comes_and_goes(self) -> None:
        name = self._name("team")
        await self._client.create(NAMESPACES, {"metadata": {"name": name}})
        await self._world.clock.sleep(10)
        template = self._template(name)
        await self._client.create(DEPLOYMENTS, {
            "metadata": {"name": "web", "namespace": name},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": template},
        })  # fmt: skip
        await self._world.clock.sleep(20)
        await self._client.delete(NAMESPACES, name)

    # Operators

    async def drain(self) -> None:
        if (node := await self._any(NODES)) is None:
            return
        name = node["metadata"]["name"]
        await self._cordon(name, on=True)
        await drain(self._world, name, give_up_after_s=120)
        await self._cordon(name, on=False)

    async def _cordon(self, name: str, *, on: bool) -> None:
        await self._client.patch(NODES, name, {"spec": {"unschedulable": on}}, type=PatchType.MERGE)

    async def replace_node(self) -> None:
        """As an autoscaler does: one goes with all that is on it, another one comes."""
        if (node := await self._any(NODES)) is not None:
            await self._client.delete(NODES, node["metadata"]["name"])
        await self._register()

    async def _register(self) -> None:
        await self._client.create(NODES, registration(self._name("hollow-new"), NodeProfile(capacity=CAPACITY)))

    # Misfortune

    async def break_node(self) -> None:
        if (node := await self._any(NODES)) is not None:
            await self._annotate(node, FAULT, self._rng.choice(FAULTS))
        if (node := await self._any(NODES)) is not None:
            await self._annotate(node, FAULT, None)

    async def reboot_node(self) -> None:
        if (node := await self._any(NODES)) is not None:
            await self._annotate(node, REBOOT, self._name("boot"))

    async def _annotate(self, node: JsonObject, key: str, value: str | None) -> None:
        patch = {"metadata": {"annotations": {key: value}}}
        await self._client.patch(NODES, node["metadata"]["name"], patch, type=PatchType.MERGE)


async def drain(world: SimulatedCluster, node: str, *, give_up_after_s: float) -> bool:
    """Evicts what is on a node, again and again while budgets refuse, as ``kubectl drain`` does."""
    deadline = world.clock.monotonic() + give_up_after_s
    while world.clock.monotonic() < deadline:
        left = 0
        for pod in (await world.client.list(PODS, field_selector=f"spec.nodeName={node}")).items:
            meta = pod["metadata"]
            owners = {owner["kind"] for owner in meta.get("ownerReferences") or ()}
            if "DaemonSet" in owners or pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            left += 1
            if not meta.get("deletionTimestamp"):
                try:
                    await world.client.evict(meta["namespace"], meta["name"])
                except (TooManyRequests, NotFound):
                    continue
                except Forbidden:
                    # Its namespace is going, and takes it along.
                    continue
                except ApiError as error:
                    # Two budgets for one pod is upstream's own 500; users of this cluster make none.
                    raise AssertionError(f"eviction of {meta['name']}: {error}") from error
        if not left:
            return True
        await world.clock.sleep(5)
    return False
