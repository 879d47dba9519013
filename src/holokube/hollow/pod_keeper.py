"""Brings the pods of a fleet through their lives: calls the state machine, carries out what it decides.

Each pod has at most one write under way. Watch events that come in meanwhile are kept until the answer is here,
and those older than the answer are ignored: that is why one transition never costs two patches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.client.cache import object_key
from holokube.client.client import PatchType
from holokube.client.resources import PODS
from holokube.client.transport import Call
from holokube.hollow import pod_life
from holokube.hollow.admission import choose_victims, is_critical
from holokube.hollow.draws import Draw
from holokube.hollow.event_sink import EventSink
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.pod_state import NEVER_S, Command, DeletePod, EmitEvent, PatchStatus, PodLife, PodRun
from holokube.hollow.pod_status import TERMINAL
from holokube.hollow.profile import PodProfile
from holokube.hollow.versions import is_newer, is_newer_version
from holokube.hollow.wheel import Timer, WheelDriver
from holokube.hollow.writes import Carrier, Urgency, Withheld
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject

RETRY_BASE_S = 1.0
RETRY_MAX_S = 60.0

Write = PatchStatus | DeletePod
_MEDIA_TYPES = {kind.name.lower(): kind.value for kind in PatchType}
_POD: Final = Urgency.POD
_OWN_FIELDS: Final = ("deletionTimestamp", "annotations", "labels", "finalizers")
"""What others say in a pod's metadata that matters to its life."""


class PodRecord(msgspec.Struct, eq=False):
    """One pod of a node of ours."""

    key: str
    pod: JsonObject
    run: PodRun
    node: NodeRecord
    timer: Timer[Callable[[], None]] | None = None
    busy: bool = False
    seen: int = 0
    """Changes that came in while a write was under way."""
    base: JsonObject | None = None
    """The state from which the write under way was decided."""
    failures: int = 0

    def known(self) -> JsonObject:
        """The Pod object, as far as it is known."""
        return self.pod


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
        carrier: Carrier,
        wheel: WheelDriver[Callable[[], None]],
        events: EventSink,
        profile: PodProfile,
        draw: Draw,
        may_write: Callable[[NodeRecord], bool],
        *,
        life: PodLife = pod_life,
    ) -> None:
        """``life`` decides: the built-in machine, or Stages."""
        self._clock = clock
        self._carrier = carrier
        self._wheel = wheel
        self._events = events
        self._profile = profile
        self._draw = draw
        self._may_write = may_write
        self._life = life
        self._records: dict[str, PodRecord] = {}
        self.stats = PodStats()

    def __len__(self) -> int:
        return len(self._records)

    def see(self, pod: JsonObject, node: NodeRecord) -> None:
        """A pod of one of our nodes is new or has changed."""
        key = object_key(pod)
        record = self._records.get(key)
        if record is not None:
            known = record.pod
            if known is pod:
                # The echo of our own write, from a server of this process: its answer was the very object.
                return
            if record.run.uid != pod["metadata"]["uid"]:
                self._forget(record)
                record = None
            else:
                version = pod["metadata"].get("resourceVersion")
                known_version = known["metadata"].get("resourceVersion")
                if version == known_version:
                    # The echo of our own write, which was acted upon when the answer came. The informer keeps this
                    # object anyway, so that the answer needs no memory.
                    record.pod = pod
                    return
                if is_newer_version(version or "", known_version or ""):
                    record.pod = pod
        if record is None:
            record = self._meet(key, pod, node)
        status = record.pod.get("status")
        if status and status.get("phase") in TERMINAL:
            self._release(record)
        self._step(record)

    def _meet(self, key: str, pod: JsonObject, node: NodeRecord) -> PodRecord:
        run = self._life.begin(pod, self._profile, node, self._clock.time(), self._draw)
        record = self._records[key] = PodRecord(key, pod, run, node)
        node.meet(key)
        if run.containers is not None:
            node.count(key, pod)
            node.claim_addresses(run.addresses)
        return record

    def gone(self, pod: JsonObject) -> None:
        """A pod object is gone."""
        record = self._records.get(object_key(pod))
        if record is not None and record.run.uid == pod["metadata"]["uid"]:
            self._forget(record)

    def look_again(self, node: NodeRecord) -> None:
        """Steps all pods of a node, after its writes were held back."""
        for key in node.pods:
            self._step(self._records[key])

    def drop_node(self, node: NodeRecord) -> None:
        """Somebody else speaks for the node now."""
        for key in node.pods:
            self._forget(self._records[key])

    def bury_node(self, node: NodeRecord) -> None:
        """The node is gone, and its record with it: what its pods had of it need not be given back one by one."""
        for key in node.pods:
            record = self._records.pop(key)
            self._wheel.cancel(record.timer)
            record.timer = None
        node.load = node.may_write = None

    def reboot(self, node: NodeRecord) -> None:
        """All containers of a node have ended with it."""
        for key in node.pods:
            record = self._records[key]
            self._life.reboot(record.pod, record.run, self._clock.time(), self._draw)

    def _forget(self, record: PodRecord) -> None:
        self._wheel.cancel(record.timer)
        record.timer = None
        if self._records.get(record.key) is record:
            del self._records[record.key]
        record.node.part(record.key)
        if not record.pod["spec"].get("hostNetwork"):
            record.node.release_addresses(record.run.addresses)

    @staticmethod
    def _release(record: PodRecord) -> None:
        """A kubelet frees the resources of a pod that has ended; its address stays until the object goes."""
        record.node.uncount(record.key)

    def _step(self, record: PodRecord) -> None:
        if record.busy:
            record.seen += 1
            return
        if record.timer is not None:
            self._wheel.cancel(record.timer)
            record.timer = None
        node, run = record.node, record.run
        if not self._may_write(node):
            return
        was_new = run.containers is None
        now_s = self._clock.time()
        if was_new and self._profile.admission and is_critical(record.pod):
            self._make_room(record, now_s)
        result = self._life.step(record.pod, run, now_s, self._draw)
        if was_new and run.containers is not None:
            node.count(record.key, record.pod)
        commands, due_s = result.commands, result.next_due_s
        writes: Sequence[Write] = self._emit(record, commands) if commands else ()
        if due_s != NEVER_S:
            record.timer = self._wheel.after(due_s - now_s, partial(self._step, record))
        if writes:
            record.busy = True
            record.seen, record.base = 0, record.pod
            self._send(record, writes)

    def _emit(self, record: PodRecord, commands: Sequence[Command]) -> Sequence[Write]:
        """Sends the events among the commands; what is left are writes."""
        if len(commands) == 1 and not isinstance(command := commands[0], EmitEvent):
            return (command,)
        writes: list[Write] = []
        for command in commands:
            if isinstance(command, EmitEvent):
                self._events.emit(
                    record.pod, record.node.name, command.type, command.reason, command.message,
                    field_path=command.field_path,
                )  # fmt: skip
            else:
                writes.append(command)
        return writes

    def _make_room(self, record: PodRecord, now_s: float) -> None:
        """A critical pod that does not fit takes the place of others."""
        node = record.node
        lacking = node.lacking(record.pod)
        if not lacking:
            return
        others = [self._records[key].pod for key in node.admitted if key != record.key]
        for victim in choose_victims(record.pod, others, lacking) or ():
            loser = self._records[object_key(victim)]
            commands = pod_life.preempt(loser.pod, loser.run, now_s, self._draw)
            node.uncount(loser.key)
            self._emit(loser, commands)
            self._step(loser)

    def _send(self, record: PodRecord, writes: Sequence[Write]) -> None:
        """The first of the writes; the others follow when it is answered."""
        write = writes[0]
        meta = record.pod["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        patches = False
        if isinstance(write, PatchStatus):
            patches = True
            self.stats.patches += 1
            call = Call("patch", PODS, namespace, name, write.subresource, {}, write.patch, _MEDIA_TYPES[write.type])
        else:
            self.stats.deletes += 1
            call = Call("delete", PODS, namespace, name, body=_delete_options(write.uid))
        node = record.node
        allowed = node.may_write
        if allowed is None:
            # The same for all pods of a node.
            allowed = node.may_write = partial(self._may_write, node)
        self._carrier.send(
            _POD, call, partial(self._answered, record, patches, writes[1:]), allowed, record.known if patches else None
        )

    def _answered(
        self, record: PodRecord, patched: bool, rest: Sequence[Write], answer: JsonObject, error: HolokubeError | None
    ) -> None:
        if error is not None:
            self._refused(record, error)
            return
        again = record.seen > 0
        if patched and self._records.get(record.key) is record:
            again = self._take_answer(record, answer) or self._life.looks_after_writes
        if rest:
            self._send(record, rest)
            return
        record.busy, record.base = False, None
        record.failures = 0
        if again and self._records.get(record.key) is record:
            self._step(record)

    def _take_answer(self, record: PodRecord, answer: JsonObject) -> bool:
        """Takes over what the server made of a patch; True if there is more in it than we know."""
        expected = 0
        if is_newer(answer, record.pod):
            record.pod = answer
            if (answer.get("status") or {}).get("phase") in TERMINAL:
                self._release(record)
        elif answer["metadata"].get("resourceVersion") == record.pod["metadata"].get("resourceVersion"):
            # The watch was faster. If it told of nothing but this write, there is nothing left to do.
            expected = 1
        base, record.base = record.base, None
        return record.seen > expected or base is None or not _differ_in_status_only(record.pod, base)

    def _refused(self, record: PodRecord, error: HolokubeError) -> None:
        record.busy, record.base = False, None
        gone = isinstance(error, NotFound)
        withheld = isinstance(error, Withheld)
        # A conflict means another pod of the same name, which the watch tells too, or a server too busy to
        # apply a patch; tried again, the first ends with the record.
        self.stats.refused += gone or isinstance(error, Conflict)
        if not gone:
            # What was never written is not somebody else's change: the retry here is the only brake.
            self._life.failed(record.run)
        if gone or withheld:
            # The pod is gone, as the watch says too; or its node is not ours any more.
            return
        self.stats.errors += 1
        record.failures += 1
        if self._records.get(record.key) is record:
            delay_s = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(record.failures - 1, 10))
            self._wheel.cancel(record.timer)
            record.timer = self._wheel.after(delay_s, partial(self._step, record))


def _differ_in_status_only(a: JsonObject, b: JsonObject) -> bool:
    if a["spec"] is not b["spec"] and a["spec"] != b["spec"]:
        return False
    one, other = a["metadata"].get, b["metadata"].get
    for field in _OWN_FIELDS:
        mine, theirs = one(field), other(field)
        # Nearly always the very same: to compare a dict with itself takes a look at all that is in it.
        if mine is not theirs and mine != theirs:
            return False
    return True


def _delete_options(uid: str) -> JsonObject:
    """At once, and only if it is still that pod."""
    return {
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": uid},
    }  # fmt: skip
