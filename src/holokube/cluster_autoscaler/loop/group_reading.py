"""What a turn asks the provider before it decides anything: groups, their machines, and whose nodes are whose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, NodeGroup, ReadsNodes
from holokube.cluster_autoscaler.groups import GroupView, read_group
from holokube.cluster_autoscaler.loop.instances import InstanceCache
from holokube.cluster_autoscaler.node_facts import NodeReadings, changed_places
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.taints import is_to_be_deleted
from holokube.kube.types import JsonObject

_log = get_logger("holokube.cluster_autoscaler.loop")


class Groups(NamedTuple):
    """All groups, as the provider lists them."""

    views: list[GroupView]
    owners: dict[str, NodeGroup]


async def read_groups(provider: CloudProvider, instances: InstanceCache, options: AutoscalerOptions) -> Groups:
    """Ask for everything about all groups. Fails if the machines of a group cannot be had."""
    owners = {group.id: group for group in provider.node_groups()}
    machines = await instances.get(owners.values())
    defaults = options.group_defaults()
    views = [await read_group(provider, group, defaults, machines[group.id]) for group in owners.values()]
    return Groups(views, owners)


async def groups_of_nodes(provider: CloudProvider, nodes: Iterable[JsonObject]) -> dict[str, str]:
    """The id of the group of each node that has one. A node about which the provider fails is left alone."""
    found: dict[str, str] = {}
    for node in nodes:
        try:
            group = await provider.node_group_for_node(node)
        except HolokubeError as error:
            _log.warning("The group of a node cannot be found", node=name_of(node), error=str(error))
            continue
        if group is not None:
            found[name_of(node)] = group.id
    return found


class NodeOwners:
    """The groups of the nodes of the cluster: the same answer as long as it is, and nobody is asked without need."""

    def __init__(self, provider: CloudProvider, readings: NodeReadings) -> None:
        self._provider = provider
        # Asking a protocol takes long, and the answer is always the same.
        self._reader = provider if isinstance(provider, ReadsNodes) else None
        self._readings = readings
        self._nodes: Sequence[JsonObject] = ()
        self._known: Mapping[str, str] = {}

    async def of(self, nodes: Sequence[JsonObject]) -> Mapping[str, str]:
        """The id of the group of each node that has one."""
        found: Mapping[str, str] | None = None
        if self._reader is not None:
            if nodes is self._nodes:
                return self._known
            if self._are_as_before(self._reader, nodes):
                self._nodes = nodes
                return self._known
            found = self._read(self._reader, nodes)
        self._nodes = () if found is None else nodes
        if found is None:
            found = await groups_of_nodes(self._provider, nodes)
        if found != self._known:
            self._known = found
        return self._known

    async def without_machine(self, nodes: Sequence[JsonObject]) -> frozenset[str]:
        """What ``nodes_without_machine`` answers."""
        if self._reader is not None:
            return self._reader.without_machine(nodes)
        return await nodes_without_machine(self._provider, nodes)

    def _are_as_before(self, provider: ReadsNodes, nodes: Sequence[JsonObject]) -> bool:
        """Whether the nodes are the same, and those of them that have changed are of the groups they were of."""
        places = changed_places(self._nodes, nodes) if self._nodes else None
        if places is None:
            return False
        found = self._read(provider, [nodes[place] for place in places])
        if found is None:
            return False
        return all(
            found.get(name) == self._known.get(name) for name in (name_of(nodes[place]) for place in places))

    def _read(self, provider: ReadsNodes, nodes: Sequence[JsonObject]) -> dict[str, str] | None:
        """The groups by the objects alone; None if there is one that stands for something else."""
        found: dict[str, str] = {}
        for facts in self._readings.of_all(nodes):
            if facts.is_invented:
                return None
            if facts.group_id is None:
                facts.group_id = provider.group_id_of(facts.node) or ""
            if facts.group_id:
                found[facts.name] = facts.group_id
        return found


async def nodes_without_machine(provider: CloudProvider, nodes: Sequence[JsonObject]) -> frozenset[str]:
    """Names of nodes whose machine is gone. A provider that cannot tell is taken to have begun what we asked for."""
    if isinstance(provider, ReadsNodes):
        return provider.without_machine(nodes)
    gone = set()
    for node in nodes:
        try:
            is_there = await provider.has_instance(node)
        except HolokubeError as error:
            if not isinstance(error, NotImplementedByProvider):
                _log.warning("The machine of a node cannot be looked for", node=name_of(node), error=str(error))
            is_there = not is_to_be_deleted(node)
        if not is_there:
            gone.add(name_of(node))
    return frozenset(gone)


def targets_of(views: Iterable[GroupView]) -> Mapping[str, int]:
    """The sizes that groups are asked for; fails if a group does not tell."""
    targets = {}
    for view in views:
        if view.target_size is None:
            raise CloudError(f"the size of node group {view.id} cannot be had",
                             hint="Look at the log of the cloud provider; the next turn tries again.")
        targets[view.id] = view.target_size
    return targets
