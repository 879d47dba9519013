"""Removes nodes of kwok groups from a cluster: all of them, and nothing else.

Pods on them are left to the pod garbage collector, as with any node that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from holokube.base.errors import HolokubeError
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kwok.marks import group_of
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject

PARALLEL = 32


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
    left = iter(nodes)
    failures: list[HolokubeError] = []
    done = 0
    stopped = False

    async def work() -> None:
        nonlocal done
        for node in left:
            meta = node["metadata"]
            try:
                # A node of that name that was made since is not the one that was looked at.
                with suppress(NotFound, Conflict):
                    await client.delete(NODES, meta["name"], uid=meta["uid"])
            except HolokubeError as error:
                failures.append(error)
                continue
            done += 1
            progress(done, len(nodes))
            if stopped:
                return

    workers = [asyncio.create_task(work(), name=f"node remover {i}") for i in range(min(PARALLEL, len(nodes)))]
    if workers:
        try:
            await asyncio.wait(workers)
        except asyncio.CancelledError:
            stopped = True
            await asyncio.wait(workers)
            raise
        for worker in workers:
            worker.result()
    if failures:
        error = failures[0]
        error.message = f"{done} of {len(nodes)} nodes removed: {error.message}"
        raise error
    return done
