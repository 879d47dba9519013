"""What a turn asks the provider before it decides anything: groups, their machines, and whose nodes are whose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, NodeGroup
from holokube.cluster_autoscaler.groups import GroupView, read_group
from holokube.cluster_autoscaler.loop.instances import InstanceCache
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


async def nodes_without_machine(provider: CloudProvider, nodes: Iterable[JsonObject]) -> frozenset[str]:
    """Names of nodes whose machine is gone. A provider that cannot tell is taken to have begun what we asked for."""
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
