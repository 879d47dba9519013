"""What is put right before anything is decided: machines that never came or failed, and sizes that are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.actuation.ports import StatusRecorder
from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import NodeGroup
from holokube.cluster_autoscaler.cluster_state.readiness import Unregistered, fake_node
from holokube.cluster_autoscaler.cluster_state.registry import ClusterStateRegistry, Revert
from holokube.cluster_autoscaler.groups import group_options
from holokube.cluster_autoscaler.loop.instances import InstanceCache
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING

_log = get_logger("holokube.cluster_autoscaler.loop")


class MachineCare:
    """Talks to the groups about machines that are not as they should be."""

    def __init__(self, registry: ClusterStateRegistry, instances: InstanceCache, options: AutoscalerOptions,
                 status_event: StatusRecorder, metrics: AutoscalerMetrics) -> None:
        self._registry = registry
        self._instances = instances
        self._options = options
        self._status_event = status_event
        self._metrics = metrics

    async def revert(self, reverts: Sequence[Revert], groups: Mapping[str, NodeGroup]) -> None:
        """Take back what did not come in time."""
        for revert in reverts:
            group = groups.get(revert.group_id)
            if group is None:
                continue
            try:
                await group.decrease_target_size(revert.delta)
            except HolokubeError as error:
                self._status_event(
                    WARNING, "FailedToRevertScaleUp",
                    f"Failed to decrease target size for group {revert.group_id} after scale-up timeout: {error}")

    async def remove_long_unregistered(self, groups: Mapping[str, NodeGroup], now_s: float) -> list[str]:
        """Delete machines that should have become nodes long ago; the ids of those that were."""
        old: dict[str, list[Unregistered]] = {}
        for machine in self._registry.unregistered:
            group_id = self._registry.group_of_unregistered(machine.id)
            if group_id is None or group_id not in groups:
                continue
            if machine.since_s + self._registry.group_options(group_id).max_node_provision_time_s < now_s:
                old.setdefault(group_id, []).append(machine)
        removed: list[str] = []
        for group_id, machines in old.items():
            try:
                removed += await self._remove_unregistered(groups[group_id], machines)
            except HolokubeError as error:
                _log.warning("Machines without a node could not be removed", group=group_id, error=str(error))
                # As upstream: the groups that are left wait for the next turn.
                break
        return removed

    async def _remove_unregistered(self, group: NodeGroup, machines: list[Unregistered]) -> list[str]:
        forced = self._options.force_delete_unregistered_nodes
        if not forced:
            try:
                possible = await group.target_size() - group.min_size
            except CloudError as error:
                _log.warning("The size of a group cannot be had", group=group.id, error=error.message)
                return []
            if possible <= 0:
                _log.warning("Machines without a node stay: the group is at its minimum", group=group.id,
                             machines=len(machines))
                return []
            machines = machines[:possible]
        try:
            nodes = await self._all_or_none(group, [machine.node for machine in machines])
        except CloudError as error:
            _log.warning("Machines without a node stay", group=group.id, error=error.message)
            return []
        if not nodes:
            return []
        try:
            await _delete(group, nodes, forced=forced)
        except HolokubeError as error:
            for node in nodes:
                self._status_event(WARNING, "DeleteUnregisteredFailed",
                                   f"Failed to remove node {node['metadata']['name']}: {error}")
            raise
        finally:
            self._instances.forget(group.id)
        names = [str(node["metadata"]["name"]) for node in nodes]
        for name in names:
            self._status_event(NORMAL, "DeleteUnregistered", f"Removed unregistered node {name}")
        self._metrics.unregistered_removed(len(names))
        return names

    async def delete_failed(self, groups: Mapping[str, NodeGroup]) -> list[str]:
        """Delete machines that could not be made; the ids of those that were."""
        deleted: list[str] = []
        for group_id, failed in self._registry.created_with_errors().items():
            group = groups.get(group_id)
            if group is None:
                _log.warning("Failed machines belong to a group that is gone", group=group_id)
                continue
            try:
                nodes = await self._all_or_none(group, failed)
                if nodes:
                    await _delete(group, nodes, forced=self._options.force_delete_failed_nodes)
            except HolokubeError as error:
                _log.warning("Failed machines could not be removed", group=group_id, error=str(error))
                continue
            if nodes:
                deleted += [str(node["metadata"]["name"]) for node in nodes]
                self._instances.forget(group_id)
        return deleted

    async def _all_or_none(self, group: NodeGroup, nodes: list[JsonObject]) -> list[JsonObject]:
        """Of a group that is either empty or full, all machines go or none."""
        options = await group_options(group, self._options.group_defaults())
        if not options.zero_or_max_node_scaling:
            return nodes
        instances = await group.nodes()
        if len(instances) == len(nodes) or not options.allow_non_atomic_scale_up_to_max:
            return [fake_node(instance.id, "") for instance in instances]
        return []

    async def fix_sizes(self, groups: Mapping[str, NodeGroup], now_s: float) -> dict[str, int]:
        """Lower targets that have been too high for too long; by how much, by group.

        Raises what the provider says: the turn cannot go on with sizes that are known to be wrong.
        """
        fixed: dict[str, int] = {}
        for group_id, group in groups.items():
            wrong = self._registry.incorrect_size(group_id)
            if wrong is None:
                continue
            wait_s = self._registry.group_options(group_id).max_node_provision_time_s
            delta = wrong.current - wrong.expected
            if wrong.since_s + wait_s < now_s and delta < 0:
                _log.warning("The target of a group is lowered: fewer machines came than were asked for",
                             group=group_id, expected=wrong.expected, current=wrong.current)
                await group.decrease_target_size(delta)
                fixed[group_id] = delta
        return fixed


async def _delete(group: NodeGroup, nodes: Sequence[JsonObject], *, forced: bool) -> None:
    if forced:
        try:
            await group.force_delete_nodes(nodes)
        except NotImplementedByProvider:
            pass
        else:
            return
    await group.delete_nodes(nodes)
