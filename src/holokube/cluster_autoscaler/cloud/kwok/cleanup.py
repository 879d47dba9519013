"""Removes nodes of kwok groups from a cluster: all of them, and nothing else.

Pods on them are left to the pod garbage collector, as with any node that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kwok.marks import group_of
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.many_writes import Job, do_all


async def find_nodes(client: Client, groups: Collection[str] | None = None) -> list[JsonObject]:
    """The nodes that kwok providers made; of some groups, or of all."""
    listed = (await client.list_all(NODES)).items
    return [node for node in listed if (group := group_of(node)) and (groups is None or group in groups)]


async def remove_nodes(
    client: Client, nodes: Sequence[JsonObject], progress: Callable[[int, int], None] = lambda _done, _total: None
) -> int:
    """Deletes these nodes; returns how many. One that fails does not keep the others; then the first error is raised.

    An interrupt ends it after the requests under way.
    """
    return await do_all(
        [_removal(client, node["metadata"]) for node in nodes], progress, "{done} of {all} nodes removed", go_on=True
    )


def _removal(client: Client, meta: JsonObject) -> Job:
    async def remove() -> None:
        # A node of that name that was made since is not the one that was looked at.
        with suppress(NotFound, Conflict):
            await client.delete(NODES, meta["name"], uid=meta["uid"])

    return remove
