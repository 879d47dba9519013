"""Turns of the real cluster-autoscaler as far as its provider can tell, written down from upstream's core.

The calls come in its order and about as often; what it decides, the test says.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.cloud.conformance import fake_node
from tests.cluster_autoscaler.cloud.grpc.upstream import Autoscaler

CREATING = 2


@dataclass
class Turn:
    """What one turn found out."""

    targets: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str | None] = field(default_factory=dict)
    """By name: the group of each node of the cluster."""
    unregistered: dict[str, str | None] = field(default_factory=dict)
    """By id: the group of each instance without a node."""
    failed: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By id: code and class of each instance that could not be created."""
    templates: dict[str, bytes | None] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


class Script:
    """The core, with its cache of instances."""

    def __init__(self, client: Autoscaler, cluster: Client) -> None:
        self._client = client
        self._cluster = cluster
        self._instances: dict[str, list[Any]] = {}

    def forget_instances(self, group: str) -> None:
        """As the core does while a group scales up, after it removed instances, and every two minutes."""
        self._instances.pop(group, None)

    async def run_once(self, *, increase: Mapping[str, int] | None = None, remove: Sequence[str] = ()) -> Turn:
        """One turn; ``remove`` names nodes that are no longer needed, each deleted by a call of its own at a time."""
        real, turn = self._client, Turn()
        before = dict(real.calls)
        nodes: list[JsonObject] = (await self._cluster.list_all(NODES)).items
        await real.gpu_label()
        await real.gpu_types()
        await real.refresh()
        groups = [group.id for group in await real.node_groups()]
        for node in nodes:
            turn.owners[node["metadata"]["name"]] = await real.node_group_for_node(node)
        for group in groups:
            turn.templates[group] = await real.template(group)
        await self._update_registry(turn, groups, nodes)
        await self._delete_failed(turn)
        for _ in range(2):  # wrong sizes to be mended, then nodes that are on their way
            for group in groups:
                turn.targets[group] = await real.target_size(group)
        await self._scale_up(turn, groups, increase or {})
        await self._scale_down(turn, nodes, remove)
        turn.calls = dict(real.calls - Counter(before))
        return turn

    async def _update_registry(self, turn: Turn, groups: Sequence[str], nodes: Sequence[JsonObject]) -> None:
        real = self._client
        for group in groups:
            turn.targets[group] = await real.target_size(group)
        for group in groups:
            if group not in self._instances:
                self._instances[group] = await real.nodes(group)
        registered = {node["spec"].get("providerID", "") for node in nodes}
        for node in nodes:
            owner = await real.node_group_for_node(node)
            if owner is not None:
                await real.options(owner)
        for instance in [each for found in self._instances.values() for each in found]:
            if instance.status.instanceState == CREATING and instance.status.errorInfo.errorCode:
                error = instance.status.errorInfo
                turn.failed[instance.id] = (error.errorCode, error.instanceErrorClass)
            elif instance.id not in registered:
                turn.unregistered[instance.id] = await real.node_group_for_node(fake_node(instance.id))

    async def _delete_failed(self, turn: Turn) -> None:
        by_group: dict[str, list[JsonObject]] = {}
        for id_ in turn.failed:
            node = fake_node(id_, "create-error")
            owner = await self._client.node_group_for_node(node)
            if owner is not None:
                by_group.setdefault(owner, []).append(node)
        for group, failed in by_group.items():
            await self._client.delete_nodes(group, *failed)
            self.forget_instances(group)

    async def delete_unregistered(self, turn: Turn) -> None:
        """What becomes of instances that do not register in 15 minutes."""
        for id_, owner in turn.unregistered.items():
            if owner is not None:
                await self._client.delete_nodes(owner, fake_node(id_))
                self.forget_instances(owner)

    async def _scale_up(self, turn: Turn, groups: Sequence[str], increase: Mapping[str, int]) -> None:
        if not increase:
            return
        for group in groups:
            await self._client.target_size(group)
            await self._client.options(group)
        for group, delta in increase.items():
            await self._client.increase_size(group, delta)
            self.forget_instances(group)
            turn.targets[group] = await self._client.target_size(group)

    async def _scale_down(self, turn: Turn, nodes: Sequence[JsonObject], remove: Sequence[str]) -> None:
        for owner in turn.owners.values():
            if owner is not None:
                await self._client.options(owner)
        doomed = [node for node in nodes if node["metadata"]["name"] in remove]
        owners = [turn.owners[node["metadata"]["name"]] for node in doomed]
        deletions = [
            self._client.delete_nodes(owner, node) for owner, node in zip(owners, doomed, strict=True) if owner
        ]
        await asyncio.gather(*deletions)
