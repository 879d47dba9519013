"""A group of hollow nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.cloud.kubemark.external_cluster import ExternalCluster
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import (
    cancellable,
    controller_of,
    group_of,
    instance_of,
    is_leaving,
    is_live,
    machine_of,
    replicas_of,
)
from holokube.cluster_autoscaler.cloud.kubemark.kubemark_cluster import KubemarkCluster
from holokube.cluster_autoscaler.cloud.kubemark.node_spec import NodeSpec
from holokube.cluster_autoscaler.cloud.kubemark.templates import HollowTemplate
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, Instance, NodeInfo
from holokube.kube.types import JsonObject


class KubemarkGroup:
    """One singleton ReplicationController for each node.

    Where upstream differs: it refuses a deletion only when the group is at its minimum already, here a batch is refused
    as a whole if it would go below; there an increase that fails keeps the target raised; there the machines of a
    decrease are chosen without regard to whether they run; forced deletion, all-or-nothing increases and templates are
    not offered there.
    """

    def __init__(
        self,
        spec: NodeSpec,
        external: ExternalCluster,
        kubemark: KubemarkCluster,
        template: Callable[[], HollowTemplate],
    ) -> None:
        self._spec = spec
        self._external = external
        self._kubemark = kubemark
        self._template = template
        self._creating = 0
        # Whoever changes the size decides on one that nobody else is about to change.
        self._lock = asyncio.Lock()
        self._log = get_logger("holokube.cluster_autoscaler.kubemark").bind(group=spec.name)

    @property
    def id(self) -> str:
        return self._spec.name

    @property
    def min_size(self) -> int:
        return self._spec.min_size

    @property
    def max_size(self) -> int:
        return self._spec.max_size

    def debug(self) -> str:
        return f"{self.id} ({self.min_size}:{self.max_size})"

    async def target_size(self) -> int:
        return self._target()

    def _target(self) -> int:
        return self._creating + sum(replicas_of(rc) for rc in self._external.controllers(self.id))

    # More

    async def increase_size(self, delta: int) -> None:
        """Returns when the machines have their names, as a rule; after an error the target tells how far it came."""
        await self._increase(delta, atomic=False)

    async def atomic_increase_size(self, delta: int) -> None:
        """What was made before an error is taken back."""
        await self._increase(delta, atomic=True)

    async def ensure_minimum(self) -> int:
        """Creates what is missing to the minimum; returns how many."""
        async with self._lock:
            missing = max(0, self.min_size - self._target())
            made = await self._create(missing, atomic=False) if missing else []
        await self._external.wait_for_pods(made)
        return missing

    async def _increase(self, delta: int, *, atomic: bool) -> None:
        if delta <= 0:
            raise CloudError(f"group {self.id}: size increase must be positive, not {delta}")
        async with self._lock:
            wanted = self._target() + delta
            if wanted > self.max_size:
                raise CloudError(
                    f"group {self.id}: size increase too large, desired: {wanted} max: {self.max_size}",
                    hint="Raise the maximum of --nodes if more are wanted.",
                )
            made = await self._create(delta, atomic=atomic)
        await self._external.wait_for_pods(made)

    async def _create(self, count: int, *, atomic: bool) -> list[JsonObject]:
        template = self._template()
        made: list[JsonObject] = []
        failures: list[CloudError] = []
        open_requests = count

        async def create() -> None:
            nonlocal open_requests
            try:
                if not failures:
                    made.append(await self._external.create(template, self.id))
            except CloudError as error:
                failures.append(error)
            self._creating -= 1
            open_requests -= 1

        self._creating += count
        try:
            await asyncio.gather(*(create() for _ in range(count)))
        finally:
            # Whoever gives up waiting has also given up what was not asked for yet.
            self._creating -= open_requests
        if failures:
            error = failures[0]
            error.message = f"group {self.id}: made {len(made)} of {count}: {error.message}"
            if atomic:
                await self._delete_all(made)
            raise error
        return made

    # Fewer

    async def delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        await self._delete_nodes(nodes, force=False)

    async def force_delete_nodes(self, nodes: Sequence[JsonObject]) -> None:
        await self._delete_nodes(nodes, force=True)

    async def _delete_nodes(self, nodes: Sequence[JsonObject], *, force: bool) -> None:
        async with self._lock:
            doomed = {}
            for node in nodes:
                controller = self._controller_for(node)
                if controller is not None:
                    doomed[controller["metadata"]["uid"]] = controller
            size = self._target()
            if doomed and not force and size - len(doomed) < self.min_size:
                raise CloudError(
                    f"group {self.id}: min size reached, nodes will not be deleted: "
                    f"{size} less {len(doomed)} is below {self.min_size}"
                )
            await self._delete_all([*doomed.values()])
        self._kubemark.removed([machine_of(node) for node in nodes])

    def _controller_for(self, node: JsonObject) -> JsonObject | None:
        """What has to be deleted with a node; None if its machine is gone or going already."""
        machine, name = machine_of(node), node["metadata"]["name"]
        pod = self._external.pod(machine) if machine else None
        group = group_of(node) if pod is None else group_of(pod)
        if not machine or (group and group != self.id):
            raise CloudError(
                f"group {self.id}: node {name} is not of this group, nothing was deleted",
                hint=f"It is of group {group}." if group else "Its provider id is not one of kubemark.",
            )
        if pod is None:
            self._log.warning("a node to delete has no machine", node=name)
            return None
        controller = self._external.controller(controller_of(pod))
        if controller is None:
            if is_leaving(pod):
                return None
            raise CloudError(f"group {self.id}: pod {machine} has no ReplicationController that could be deleted")
        if not is_live(pod) and any(is_live(other) for other in self._external.pods_of(controller_of(pod))):
            # Another machine has taken its place already, and nobody asked for the end of that one.
            return None
        if replicas_of(controller) != 1:
            raise CloudError(
                f"group {self.id}: ReplicationController {controller['metadata']['name']} of node {name} has "
                f"{replicas_of(controller)} replicas, so that one node cannot be deleted alone",
                hint="Give each hollow node a ReplicationController of its own.",
            )
        return controller

    async def _delete_all(self, controllers: Collection[JsonObject]) -> None:
        answers = await asyncio.gather(*map(self._external.delete, controllers), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def decrease_target_size(self, delta: int) -> None:
        """Takes ReplicationControllers back of which no node has come, those without a pod first."""
        if delta >= 0:
            raise CloudError(f"group {self.id}: size decrease must be negative, not {delta}")
        async with self._lock:
            registered = await self._kubemark.node_names()
            controllers = self._external.controllers(self.id)
            pods = {rc["metadata"]["name"]: self._external.pods_of(rc["metadata"]["name"]) for rc in controllers}
            # The cache may lag behind: a node that came this moment must not be killed.
            doomed: list[JsonObject] = []
            for controller in cancellable(controllers, pods, registered):
                if len(doomed) == -delta:
                    break
                if not await self._kubemark.has_any(pod["metadata"]["name"] for pod in pods[_name(controller)]):
                    doomed.append(controller)
            if len(doomed) < -delta:
                size = self._target()
                raise CloudError(
                    f"group {self.id}: attempt to delete existing nodes, targetSize: {size} delta: {delta} "
                    f"existingNodes: {size - len(doomed)}"
                )
            await self._delete_all(doomed)
            self._kubemark.removed([pod["metadata"]["name"] for rc in doomed for pod in pods[_name(rc)]])

    # What there is

    async def nodes(self) -> list[Instance]:
        registered = await self._kubemark.node_names()
        found = (instance_of(pod, registered) for pod in self._external.pods(self.id))
        return [instance for instance in found if instance is not None]

    async def template_node_info(self) -> NodeInfo:
        return self._template().node_info(self.id)

    async def exists(self) -> bool:
        return True

    async def options(self, defaults: GroupOptions) -> GroupOptions | None:  # noqa: ARG002 - part of the interface
        return None


def _name(controller: JsonObject) -> str:
    return str(controller["metadata"]["name"])
