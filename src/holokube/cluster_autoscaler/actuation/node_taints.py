"""Writes the autoscaler's taints to nodes, and takes them off again.

A node is updated as a whole, so that a change of somebody else in the meantime is a conflict and never lost. After a
conflict the node is read again and the change made anew, for at most five seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.actuation.ports import Recorder
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.taints import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    deletion_candidate,
    has_taint,
    taint_time_s,
    to_be_deleted,
    with_taint,
    without_taints,
)
from holokube.kube.errors import Conflict
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING

RETRY_FOR_S = 5.0
RETRY_EVERY_S = 0.75

_log = get_logger("holokube.cluster_autoscaler.actuation")


class NodeTaints:
    """The taints of nodes on a cluster."""

    def __init__(self, clock: Clock, client: Client, *, cordon: bool) -> None:
        """``cordon``: a node that is to be deleted is also marked unschedulable."""
        self._clock = clock
        self._client = client
        self._cordon = cordon

    async def mark_to_be_deleted(self, node: JsonObject) -> JsonObject:
        """Keep new pods away from a node that is about to be deleted."""
        taint = to_be_deleted(self._clock.time())
        return await self._change(node, lambda fresh: with_taint(fresh, taint, cordon=self._cordon))

    async def clean_to_be_deleted(self, node: JsonObject) -> JsonObject:
        """Give a node back."""
        return await self._change(
            node, lambda fresh: without_taints(fresh, (TO_BE_DELETED,), uncordon=self._cordon))

    async def mark_candidate(self, node: JsonObject) -> JsonObject:
        """Ask the scheduler to prefer other nodes."""
        taint = deletion_candidate(self._clock.time())
        return await self._change(node, lambda fresh: with_taint(fresh, taint))

    async def clean_candidate(self, node: JsonObject) -> JsonObject:
        """Take that back."""
        return await self._change(node, lambda fresh: without_taints(fresh, (DELETION_CANDIDATE,)))

    async def _change(self, node: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
        """Apply a change, which returns the same object when there is nothing to do, to the newest version."""
        deadline_s = self._clock.monotonic() + RETRY_FOR_S
        fresh, is_newest = node, False
        while True:
            changed = change(fresh)
            if changed is fresh:
                if is_newest:
                    return fresh
                # What we hold may be old: only the server's own copy can say that there is nothing to do.
                fresh, is_newest = await self._client.get(NODES, name_of(node)), True
                continue
            try:
                return await self._client.update(NODES, changed)
            except Conflict:
                if self._clock.monotonic() >= deadline_s:
                    raise
            await self._clock.sleep(RETRY_EVERY_S)
            fresh, is_newest = await self._client.get(NODES, name_of(node)), True


async def clean_stale_to_be_deleted(taints: NodeTaints, nodes: Iterable[JsonObject], recorder: Recorder) -> None:
    """Give back the nodes that an autoscaler which died had marked; call it with the provider's nodes only."""
    for node in nodes:
        if has_taint(node, TO_BE_DELETED):
            await _clean_stale(taints.clean_to_be_deleted, node, TO_BE_DELETED, recorder)


async def clean_stale_candidates(
    taints: NodeTaints, nodes: Iterable[JsonObject], recorder: Recorder, *, ttl_s: float, now_s: float
) -> None:
    """Remove candidate marks, except those younger than ``ttl_s`` if there is such a limit."""
    for node in nodes:
        if has_taint(node, DELETION_CANDIDATE) and not _is_young(node, ttl_s, now_s):
            await _clean_stale(taints.clean_candidate, node, DELETION_CANDIDATE, recorder)


def _is_young(node: JsonObject, ttl_s: float, now_s: float) -> bool:
    try:
        marked_s = taint_time_s(node, DELETION_CANDIDATE)
    except ValueError:
        return False
    return marked_s is not None and now_s - marked_s < ttl_s


async def _clean_stale(
    clean: Callable[[JsonObject], Awaitable[JsonObject]], node: JsonObject, key: str, recorder: Recorder
) -> None:
    name = name_of(node)
    try:
        await clean(node)
    except HolokubeError as error:
        _log.warning("A stale taint could not be removed", node=name, taint=key, error=str(error))
        recorder.event(node, WARNING, "ClusterAutoscalerCleanup", f"failed to clean {key} on node {name}: {error}")
        return
    recorder.event(node, NORMAL, "ClusterAutoscalerCleanup", f"removed {key} taint from node {name}")
