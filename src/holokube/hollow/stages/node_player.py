"""Carries out what Stages want of nodes: one write at a time per node, tried again when it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.client.client import PatchType
from holokube.client.resources import NODES
from holokube.client.transport import Call
from holokube.hollow.draws import Draw
from holokube.hollow.event_sink import EventSink
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.pod_state import NEVER_S, EmitEvent, PatchStatus
from holokube.hollow.stages.lives import StagedNodeLife
from holokube.hollow.stages.playing import DeleteObject, StageRun, failed
from holokube.hollow.versions import is_newer
from holokube.hollow.wheel import WheelDriver
from holokube.hollow.writes import Carrier, Urgency, Withheld
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject

RETRY_BASE_S = 0.2
RETRY_MAX_S = 30.0

Write = PatchStatus | DeleteObject


class NodePlayer:
    """Stands in for the reports of a node keeper; the records are the keeper's."""

    def __init__(
        self,
        clock: Clock,
        carrier: Carrier,
        wheel: WheelDriver[Callable[[], None]],
        events: EventSink,
        life: StagedNodeLife,
        draw: Draw,
        may_write: Callable[[NodeRecord], bool],
        *,
        kubelet_port: int,
        is_known: Callable[[NodeRecord], bool],
        on_answer: Callable[[NodeRecord, JsonObject], None],
    ) -> None:
        """``is_known`` tells whether a record is still in use; ``on_answer`` takes over a newer state of a node."""
        self._clock = clock
        self._carrier = carrier
        self._wheel = wheel
        self._events = events
        self._life = life
        self._draw = draw
        self._may_write = may_write
        self._kubelet_port = kubelet_port
        self._is_known = is_known
        self._on_answer = on_answer
        self._runs: dict[str, StageRun] = {}
        self.patches = 0
        self.errors = 0

    def look(self, record: NodeRecord) -> None:
        """Does what is due for a node, and sets the timer for what is not."""
        if record.busy:
            record.dirty = True
            return
        self._wheel.cancel(record.timer)
        record.timer = None
        if not self._may_write(record):
            return
        now_s = self._clock.time()
        result = self._life.step(
            record.node, self._run(record), now_s, self._draw, addresses=record.host_ips, port=self._kubelet_port
        )
        if result.next_due_s != NEVER_S:
            record.timer = self._wheel.after(result.next_due_s - now_s, partial(self.look, record))
        writes: list[Write] = []
        for command in result.commands:
            if isinstance(command, EmitEvent):
                self._events.emit(
                    _as_event_object(record.node), record.name, command.type, command.reason, command.message
                )
            else:
                writes.append(command)
        if writes:
            record.busy = True
            self._send(record, writes)

    def forget(self, record: NodeRecord) -> None:
        """A node is gone."""
        self._runs.pop(record.uid, None)

    def _run(self, record: NodeRecord) -> StageRun:
        run = self._runs.get(record.uid)
        if run is None:
            run = self._runs[record.uid] = StageRun()
        return run

    def _send(self, record: NodeRecord, writes: Sequence[Write]) -> None:
        """The first of the writes; the others follow when it is answered."""
        write = writes[0]
        if isinstance(write, PatchStatus):
            self.patches += 1
            media_type = PatchType[write.type.upper()].value
            call = Call("patch", NODES, "", record.name, write.subresource, {}, write.patch, media_type)
        else:
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": write.uid}}
            call = Call("delete", NODES, "", record.name, body=body)
        self._carrier.send(
            Urgency.NODE, call, partial(self._answered, record, writes), partial(self._may_write, record)
        )

    def _answered(
        self, record: NodeRecord, writes: Sequence[Write], answer: JsonObject, error: HolokubeError | None
    ) -> None:
        if not self._is_known(record):
            record.busy = False
            return
        if error is not None:
            self._refused(record, error)
            return
        record.failures = 0
        if writes[1:]:
            self._send(record, writes[1:])
            return
        record.busy = record.dirty = False
        if isinstance(writes[0], PatchStatus) and is_newer(answer, record.node):
            self._on_answer(record, answer)
        else:
            self.look(record)

    def _refused(self, record: NodeRecord, error: HolokubeError) -> None:
        record.busy = record.dirty = False
        if isinstance(error, NotFound):
            # The node is gone; the watch will tell.
            return
        failed(self._run(record))
        if not isinstance(error, Withheld):
            self.errors += 1
            record.failures += 1
            delay_s = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(record.failures - 1, 10))
            self._wheel.cancel(record.timer)
            record.timer = self._wheel.after(delay_s, partial(self.look, record))


def _as_event_object(node: JsonObject) -> JsonObject:
    name = node["metadata"]["name"]
    return {"kind": "Node", "name": name, "uid": name, "apiVersion": "v1"}
