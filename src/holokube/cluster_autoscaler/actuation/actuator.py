"""The actuator: taints the nodes to be removed at once, then checks, drains and deletes them between the turns.

Every step can fail, and every failure gives the node back: its taint and cordon are removed, the reason is told as an
event of the node, and the result is kept for the next turn. ``stop`` does the same for whatever is in flight: an
autoscaler that ends leaves no node half-way. Only what was already handed to the provider is let finish.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.cluster_autoscaler.actuation.delay import wait_while_delayed
from holokube.cluster_autoscaler.actuation.deletion import Deletions, Ready
from holokube.cluster_autoscaler.actuation.eviction import Evictor, pods_to_evict
from holokube.cluster_autoscaler.actuation.node_taints import NodeTaints
from holokube.cluster_autoscaler.actuation.ports import DeletionObserver, Recorder, StatusRecorder
from holokube.cluster_autoscaler.actuation.recheck import Recheck
from holokube.cluster_autoscaler.actuation.results import (
    DeletionStart,
    NodeDeleteOutcome,
    NodeDeleteResult,
    ScaledDownNode,
    ScaleDownResult,
)
from holokube.cluster_autoscaler.actuation.tasks import Tasks
from holokube.cluster_autoscaler.actuation.tracker import NodeDeletionTracker
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.cluster_autoscaler.objects import name_of
from holokube.cluster_autoscaler.observation import Observation
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.budgets import GroupBatch
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING

TAINTED_AT_ONCE = 5

_log = get_logger("holokube.cluster_autoscaler.actuation")


class Actuator:
    """Removes nodes."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        provider: CloudProvider,
        options: AutoscalerOptions,
        recorder: Recorder,
        status_event: StatusRecorder,
        tracker: NodeDeletionTracker,
        observe: Callable[[], Observation],
        observer: DeletionObserver,
    ) -> None:
        """``observe`` tells what the cluster holds when it is called, not when the turn began."""
        self.tracker = tracker
        self.taints = NodeTaints(clock, client, cordon=options.cordon_node_before_terminating)
        self._clock = clock
        self._client = client
        self._options = options
        self._recorder = recorder
        self._status_event = status_event
        self._observe = observe
        self._tasks = Tasks()
        self._in_flight: dict[str, Ready] = {}
        self._evictor = Evictor(
            clock, client, options, recorder, tracker, lambda succeeded: observer.pod_evicted(succeeded=succeeded))
        self._deletions = Deletions(
            clock, provider, self.taints, tracker, recorder, status_event, observer, self._tasks,
            batch_interval_s=options.node_deletion_batcher_interval_s)

    async def start_deletion(
        self,
        empty: Sequence[GroupBatch],
        drain: Sequence[GroupBatch],
        pods_on: Callable[[str], Sequence[JsonObject]],
        describe: Callable[[str], str] = lambda _: "",
    ) -> DeletionStart:
        """Taint the nodes and start their removal; returns when all are tainted.

        ``pods_on`` tells what is on a node as the planner saw it, ``describe`` its utilisation for the event.
        """
        self._deletions.begin()
        self._in_flight = {
            name: ready for name, ready in self._in_flight.items() if self.tracker.is_in_flight(name)}
        started: list[ScaledDownNode] = []
        # Nodes to be drained are tainted before any drain starts, or pods of one would be recreated on another.
        for batches, is_drain in ((empty, False), (drain, True)):
            if not any(batch.nodes for batch in batches):
                continue
            try:
                await self._taint_all([removal.node for batch in batches for removal in batch.nodes])
            except AutoscalerError as error:
                return DeletionStart(ScaleDownResult.ERROR, tuple(started), error)
            started += self._start(batches, is_drain, pods_on, describe)
        if not started:
            return DeletionStart(ScaleDownResult.NO_NODE_DELETED)
        return DeletionStart(ScaleDownResult.NODE_DELETE_STARTED, tuple(started))

    async def idle(self) -> None:
        """Wait until every deletion in flight has ended."""
        await self._tasks.idle()

    async def stop(self) -> None:
        """Give back the nodes that were not handed to the provider yet, and wait for those that were."""
        await self._tasks.stop()
        self._deletions.forget()
        for name in [*self.tracker.in_flight()[0], *self.tracker.in_flight()[1]]:
            ready, group_id = self._in_flight.get(name), self.tracker.group_of(name)
            if ready is None or group_id is None:
                continue
            await self._deletions.fail(ready, group_id, NodeDeleteResult(
                NodeDeleteOutcome.INTERNAL,
                AutoscalerError("the autoscaler was stopped before the node was deleted", kind=ErrorKind.TRANSIENT)))
        self._in_flight.clear()

    # Tainting

    async def _taint_all(self, nodes: Sequence[JsonObject]) -> None:
        """Taint all nodes or none."""
        gate = asyncio.Semaphore(TAINTED_AT_ONCE)
        tainted: list[JsonObject] = []
        failed: list[tuple[JsonObject, HolokubeError]] = []

        async def taint(node: JsonObject) -> None:
            async with gate:
                try:
                    await self.taints.mark_to_be_deleted(node)
                except HolokubeError as error:
                    failed.append((node, error))
                    self._tell_not_marked(node, error)
                    return
            tainted.append(node)
            self._recorder.event(node, NORMAL, "ScaleDown", "marked the node as toBeDeleted/unschedulable")

        try:
            async with asyncio.TaskGroup() as group:
                for node in nodes:
                    group.create_task(taint(node))
        except asyncio.CancelledError:
            # A write that was cancelled may have reached the server, so every node is looked at.
            await self._untaint(nodes)
            raise
        if failed:
            for node, error in failed:
                self._tell_not_marked(node, error)
            await self._untaint(tainted)
            raise AutoscalerError(
                f"couldn't taint {len(failed)} nodes with ToBeDeleted: {failed[0][1]}", kind=ErrorKind.API_CALL)

    def _tell_not_marked(self, node: JsonObject, error: HolokubeError) -> None:
        self._recorder.event(
            node, WARNING, "ScaleDownFailed", f"failed to mark the node as toBeDeleted/unschedulable: {error}")

    async def _untaint(self, nodes: Sequence[JsonObject]) -> None:
        for node in nodes:
            try:
                await self.taints.clean_to_be_deleted(node)
            except HolokubeError as error:
                _log.warning("A node keeps its deletion taint", node=name_of(node), error=str(error))

    # Removing

    def _start(
        self,
        batches: Sequence[GroupBatch],
        drain: bool,
        pods_on: Callable[[str], Sequence[JsonObject]],
        describe: Callable[[str], str],
    ) -> list[ScaledDownNode]:
        started: list[ScaledDownNode] = []
        for batch in batches:
            for removal in batch.nodes:
                node, name = removal.node, removal.name
                _, evicted = pods_to_evict(pods_on(name), daemon_sets_by_default=False) if drain else ([], [])
                started.append(ScaledDownNode(node, batch.group.id, tuple(evicted), drain))
                if drain:
                    names = ",".join(name_of(pod) for pod in evicted)
                    self._status_event(NORMAL, "ScaleDown", (
                        f"Scale-down: removing node {name}, utilization: {describe(name)}, "
                        f"pods to reschedule: {names}"))
                else:
                    self._status_event(NORMAL, "ScaleDownEmpty", f'Scale-down: removing empty node "{name}"')
                self.tracker.start(batch.group.id, name, drain=drain)
                self._in_flight[name] = Ready(node, drain)
        for batch in batches:
            if batch.nodes:
                self._tasks.spawn(self._remove(batch, drain), f"remove nodes of {batch.group.id}")
        return started

    async def _remove(self, batch: GroupBatch, drain: bool) -> None:
        if self._options.node_delete_delay_after_taint_s > 0:
            # The scheduler may still be placing pods by what it knew before the taint.
            await self._clock.sleep(self._options.node_delete_delay_after_taint_s)
        try:
            recheck = Recheck(
                self._observe(), self._options, [removal.name for removal in batch.nodes], drain=drain)
            problems = [recheck.problem(removal.node) for removal in batch.nodes]
        except Exception as error:
            _log.exception("Unexpected error while nodes were looked at again", group=batch.group.id)
            for removal in batch.nodes:
                await self._abort(Ready(removal.node, drain), batch, f"unexpected error: {error!r}")
            return
        for removal, problem in zip(batch.nodes, problems, strict=True):
            ready = Ready(removal.node, drain)
            if problem:
                await self._abort(ready, batch, problem)
            else:
                self._tasks.spawn(
                    self._remove_one(ready, batch, recheck.pods_on(ready.name)), f"remove {ready.name}")

    async def _abort(self, ready: Ready, batch: GroupBatch, problem: str) -> None:
        result = NodeDeleteResult(NodeDeleteOutcome.INTERNAL, AutoscalerError(problem))
        await self._deletions.abort(ready, batch.group.id, result)

    async def _remove_one(self, ready: Ready, batch: GroupBatch, pods: Sequence[JsonObject]) -> None:
        try:
            result = await self._prepare(ready, pods)
        except Exception as error:
            # Whatever it was, the node must not stay tainted for it.
            _log.exception("Unexpected error while a node was prepared for its deletion", node=ready.name)
            result = NodeDeleteResult(NodeDeleteOutcome.INTERNAL, AutoscalerError(f"unexpected error: {error!r}"))
        if result.error is not None:
            await self._deletions.abort(ready, batch.group.id, result)
            return
        await self._deletions.add(ready, batch.group.id, whole_group_of=batch.batch_size)

    async def _prepare(self, ready: Ready, pods: Sequence[JsonObject]) -> NodeDeleteResult:
        if ready.drain:
            drained = await self._evictor.drain(ready.name, pods)
            if drained.error is not None:
                return NodeDeleteResult(NodeDeleteOutcome.FAILED_TO_EVICT_PODS, drained.error, drained.results)
        else:
            # Best effort: the node goes whatever becomes of its DaemonSet pods.
            drained = await self._evictor.evict_daemons(ready.name, pods)
        try:
            await wait_while_delayed(
                self._clock, self._client, ready.node, self._options.node_deletion_delay_timeout_s)
        except HolokubeError as error:
            return NodeDeleteResult(NodeDeleteOutcome.FAILED_TO_DELETE, error)
        return NodeDeleteResult(evictions=drained.results)
