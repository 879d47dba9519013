"""The last steps of a deletion: nodes of one group are collected and handed to the provider, or given back.

A group that scales between zero and its maximum goes as a whole: its nodes wait for each other, and if one cannot go,
all are given back. With ``--node-deletion-batcher-interval`` the nodes of a group that become ready within the interval
go in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.actuation.node_taints import NodeTaints
from holokube.cluster_autoscaler.actuation.ports import DeletionObserver, Recorder, StatusRecorder
from holokube.cluster_autoscaler.actuation.results import NodeDeleteOutcome, NodeDeleteResult
from holokube.cluster_autoscaler.actuation.tasks import Tasks
from holokube.cluster_autoscaler.actuation.tracker import NodeDeletionTracker
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.cloud.provider import CloudProvider
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING

_log = get_logger("holokube.cluster_autoscaler.actuation")


class Ready(NamedTuple):
    """A node that may be deleted now."""

    node: JsonObject
    drain: bool

    @property
    def name(self) -> str:
        name: str = self.node["metadata"]["name"]
        return name


class Deletions:
    """Nodes on their way to the provider."""

    def __init__(
        self,
        clock: Clock,
        provider: CloudProvider,
        taints: NodeTaints,
        tracker: NodeDeletionTracker,
        recorder: Recorder,
        status_event: StatusRecorder,
        observer: DeletionObserver,
        tasks: Tasks,
        *,
        batch_interval_s: float,
    ) -> None:
        self._clock = clock
        self._provider = provider
        self._taints = taints
        self._tracker = tracker
        self._recorder = recorder
        self._status_event = status_event
        self._observer = observer
        self._tasks = tasks
        self._batch_interval_s = batch_interval_s
        self._waiting: dict[str, list[Ready]] = {}
        self._failed_groups: set[str] = set()
        self._batches: dict[str, list[Ready]] = {}

    def begin(self) -> None:
        """A new scale-down starts: what failed before does not count against its groups."""
        self._failed_groups.clear()
        self._observer.deletions_pending(sum(len(nodes) for nodes in self._waiting.values()))

    def forget(self) -> None:
        """Nothing that waits will be deleted any more."""
        self._waiting.clear()
        self._batches.clear()

    async def add(self, ready: Ready, group_id: str, *, whole_group_of: int = 0) -> None:
        """A node may go; with ``whole_group_of`` only when that many of its group may."""
        if not whole_group_of:
            self._dispatch([ready], group_id)
            return
        if group_id in self._failed_groups:
            await self.fail(ready, group_id, _others_failed())
            return
        waiting = self._waiting.setdefault(group_id, [])
        waiting.append(ready)
        if len(waiting) >= whole_group_of:
            del self._waiting[group_id]
            self._dispatch(waiting, group_id)

    async def abort(self, ready: Ready, group_id: str, result: NodeDeleteResult) -> None:
        """A node cannot go; nodes that wait for it are given back as well."""
        self._failed_groups.add(group_id)
        others = self._waiting.pop(group_id, [])
        await self.fail(ready, group_id, result)
        for other in others:
            await self.fail(other, group_id, _others_failed())

    async def fail(self, ready: Ready, group_id: str, result: NodeDeleteResult) -> None:
        """Give one node back and say why."""
        what = "failed to drain and delete node" if ready.drain else "failed to delete empty node"
        _log.warning("A node could not be deleted", node=ready.name, group=group_id, error=str(result.error))
        self._recorder.event(ready.node, WARNING, "ScaleDownFailed", f"{what}: {result.error}")
        try:
            await self._taints.clean_to_be_deleted(ready.node)
        except HolokubeError as error:
            # The next start of the autoscaler cleans stale taints; until then the node stays unused.
            _log.warning("A node keeps its deletion taint", node=ready.name, error=str(error))
        self._tracker.end(group_id, ready.name, result)

    def _dispatch(self, nodes: list[Ready], group_id: str) -> None:
        if self._batch_interval_s <= 0:
            self._hand_over(nodes, group_id)
            return
        is_first = group_id not in self._batches
        self._batches.setdefault(group_id, []).extend(nodes)
        if is_first:
            self._tasks.spawn(self._flush_later(group_id), f"batch of {group_id}")

    async def _flush_later(self, group_id: str) -> None:
        await self._clock.sleep(self._batch_interval_s)
        self._hand_over(self._batches.pop(group_id), group_id)

    def _hand_over(self, nodes: list[Ready], group_id: str) -> None:
        self._tasks.spawn(self._delete(nodes, group_id), f"delete nodes of {group_id}", final=True)

    async def _delete(self, nodes: list[Ready], group_id: str) -> None:
        try:
            await self._delete_at_provider([ready.node for ready in nodes])
        except HolokubeError as error:
            result = NodeDeleteResult(NodeDeleteOutcome.FAILED_TO_DELETE, error)
            for ready in nodes:
                await self.fail(ready, group_id, result)
            return
        for ready in nodes:
            self._deleted(ready, group_id)

    async def _delete_at_provider(self, nodes: Sequence[JsonObject]) -> None:
        name = nodes[0]["metadata"]["name"]
        group = await self._provider.node_group_for_node(nodes[0])
        if group is None:
            raise AutoscalerError(f"picked node that doesn't belong to a node group: {name}")
        try:
            await group.delete_nodes(nodes)
        except Exception as error:
            self._observer.deletion_failed(group.id, ErrorKind.CLOUD_PROVIDER, self._clock.time())
            raise AutoscalerError(
                f"failed to delete nodes from group {group.id}: {error}", kind=ErrorKind.CLOUD_PROVIDER) from error

    def _deleted(self, ready: Ready, group_id: str) -> None:
        self._recorder.event(ready.node, NORMAL, "ScaleDown", "nodes removed by cluster autoscaler")
        self._observer.node_deleted(group_id, ready.node, drain=ready.drain, now_s=self._clock.time())
        if ready.drain:
            self._status_event(NORMAL, "ScaleDown", f"Scale-down: node {ready.name} removed with drain")
        else:
            self._status_event(NORMAL, "ScaleDownEmpty", f"Scale-down: empty node {ready.name} removed")
        self._tracker.end(group_id, ready.name, NodeDeleteResult())


def _others_failed() -> NodeDeleteResult:
    return NodeDeleteResult(NodeDeleteOutcome.FAILED_TO_DELETE, AutoscalerError(
        "couldn't scale down other nodes in this node group", kind=ErrorKind.TRANSIENT))
