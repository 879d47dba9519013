"""Brings the pods of a fleet through their lives: calls the state machine, carries out what it decides.

Each pod has at most one write under way. Watch events that come in meanwhile are kept until the answer is here,
and those older than the answer are ignored: that is why one transition never costs two patches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holokube.base.clock import Clock
from holokube.base.errors import TransportError
from holokube.client.cache import object_key
from holokube.client.client import Client, PatchType
from holokube.client.resources import PODS
from holokube.hollow import pod_life
from holokube.hollow.draws import Draw
from holokube.hollow.event_sink import EventSink
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.pod_state import NEVER_S, DeletePod, EmitEvent, PatchStatus, PodRun
from holokube.hollow.pod_status import TERMINAL
from holokube.hollow.profile import PodProfile
from holokube.hollow.versions import is_newer
from holokube.hollow.wheel import Timer, WheelDriver
from holokube.hollow.writes import Urgency, WritePool
from holokube.kube.errors import ApiError, Conflict, NotFound
from holokube.kube.types import JsonObject

RETRY_BASE_S = 1.0
RETRY_MAX_S = 60.0

Write = PatchStatus | DeletePod


@dataclass(slots=True)
class PodRecord:
    """One pod of a node of ours."""

    key: str
    pod: JsonObject
    run: PodRun
    node: NodeRecord
    timer: Timer[Callable[[], None]] | None = None
    busy: bool = False
    dirty: bool = False
    failures: int = 0


@dataclass(slots=True)
class PodStats:
    """Counters since the start."""

    patches: int = 0
    deletes: int = 0
    refused: int = 0
    errors: int = 0


class PodKeeper:
    """All pods on nodes that this process speaks for."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        pool: WritePool,
        wheel: WheelDriver[Callable[[], None]],
        events: EventSink,
        profile: PodProfile,
        draw: Draw,
        may_write: Callable[[NodeRecord], bool],
    ) -> None:
        self._clock = clock
        self._client = client
        self._pool = pool
        self._wheel = wheel
        self._events = events
        self._profile = profile
        self._draw = draw
        self._may_write = may_write
        self._records: dict[str, PodRecord] = {}
        self.stats = PodStats()

    def __len__(self) -> int:
        return len(self._records)

    def see(self, pod: JsonObject, node: NodeRecord) -> None:
        """A pod of one of our nodes is new or has changed."""
        key = object_key(pod)
        record = self._records.get(key)
        if record is not None and record.run.uid != pod["metadata"]["uid"]:
            self._forget(record)
            record = None
        if record is None:
            run = pod_life.begin(pod, self._profile, node, self._clock.time(), self._draw)
            record = PodRecord(key, pod, run, node)
            self._records[key] = record
            node.pods[key] = None
            if run.containers is not None:
                node.count(key, pod)
                node.claim_addresses(run.addresses)
        elif is_newer(pod, record.pod):
            record.pod = pod
        self._release_if_ended(record)
        self._step(record)

    def gone(self, pod: JsonObject) -> None:
        """A pod object is gone."""
        record = self._records.get(object_key(pod))
        if record is not None and record.run.uid == pod["metadata"]["uid"]:
            self._forget(record)

    def look_again(self, node: NodeRecord) -> None:
        """Steps all pods of a node, after its writes were held back."""
        for key in [*node.pods]:
            self._step(self._records[key])

    def drop_node(self, node: NodeRecord) -> None:
        """Somebody else speaks for the node now, or it is gone."""
        for key in [*node.pods]:
            self._forget(self._records[key])

    def reboot(self, node: NodeRecord) -> None:
        """All containers of a node have ended with it."""
        for key in [*node.pods]:
            record = self._records[key]
            pod_life.reboot(record.pod, record.run, self._clock.time(), self._draw)

    def _forget(self, record: PodRecord) -> None:
        self._wheel.cancel(record.timer)
        record.timer = None
        if self._records.get(record.key) is record:
            del self._records[record.key]
        record.node.pods.pop(record.key, None)
        record.node.uncount(record.key)
        if not record.pod["spec"].get("hostNetwork"):
            record.node.release_addresses(record.run.addresses)

    def _release_if_ended(self, record: PodRecord) -> None:
        # A kubelet frees the resources of a pod that has ended; its address stays until the object goes.
        if (record.pod.get("status") or {}).get("phase") in TERMINAL:
            record.node.uncount(record.key)

    def _step(self, record: PodRecord) -> None:
        if record.busy:
            record.dirty = True
            return
        self._wheel.cancel(record.timer)
        record.timer = None
        if not self._may_write(record.node):
            return
        was_new = record.run.containers is None
        now_s = self._clock.time()
        result = pod_life.step(record.pod, record.run, now_s, self._draw)
        if was_new and record.run.containers is not None:
            record.node.count(record.key, record.pod)
        writes: list[Write] = []
        for command in result.commands:
            if isinstance(command, EmitEvent):
                self._events.emit(
                    record.pod, record.node.name, command.type, command.reason, command.message,
                    field_path=command.field_path,
                )  # fmt: skip
            else:
                writes.append(command)
        if result.next_due_s != NEVER_S:
            record.timer = self._wheel.after(result.next_due_s - now_s, lambda: self._step(record))
        if writes:
            record.busy = True
            self._pool.submit(Urgency.POD, lambda: self._carry_out(record, writes))

    async def _carry_out(self, record: PodRecord, writes: Sequence[Write]) -> None:
        retry_after_s = NEVER_S
        try:
            if self._may_write(record.node):
                for write in writes:
                    await self._send(record, write)
            else:
                record.run.delete_sent = False
            record.failures = 0
        except NotFound:
            # The pod is gone; the watch says so too.
            self.stats.refused += 1
        except (ApiError, TransportError) as error:
            # A conflict means another pod of the same name, which the watch tells too, or a server too busy to
            # apply a patch; tried again, the first ends with the record.
            self.stats.refused += isinstance(error, Conflict)
            self.stats.errors += 1
            record.run.delete_sent = False
            # What was never written is not somebody else's change: the retry here is the only brake.
            record.run.drifts, record.run.drift_until_s = 0, 0.0
            record.failures += 1
            retry_after_s = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(record.failures - 1, 10))
        finally:
            record.busy = False
        if self._records.get(record.key) is not record:
            return
        if retry_after_s != NEVER_S:
            record.dirty = False
            self._wheel.cancel(record.timer)
            record.timer = self._wheel.after(retry_after_s, lambda: self._step(record))
        elif record.dirty:
            record.dirty = False
            self._step(record)

    async def _send(self, record: PodRecord, write: Write) -> None:
        meta = record.pod["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        if isinstance(write, PatchStatus):
            self.stats.patches += 1
            answer = await self._client.patch_status(
                PODS, name, write.patch, namespace=namespace, type=PatchType.STRATEGIC
            )
            if is_newer(answer, record.pod):
                record.pod = answer
                self._release_if_ended(record)
        else:
            self.stats.deletes += 1
            await self._client.delete(PODS, name, namespace, grace_s=0, uid=write.uid)
