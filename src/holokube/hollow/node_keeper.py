"""Keeps the status of the nodes of a fleet true: reports at adoption, on change, and every five minutes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.client.client import PatchType
from holokube.client.resources import NODES
from holokube.client.transport import Call
from holokube.hollow.addresses import AddressPool, BlockPool, PodAddresses
from holokube.hollow.draws import Draw, stable_int
from holokube.hollow.event_sink import EventSink
from holokube.hollow.images import ImageStore
from holokube.hollow.node_life import (
    asks_for_reboot,
    boot_id,
    desired_status,
    faults_of,
    internal_addresses,
    reboot_token,
    status_patch,
    transition_events,
)  # fmt: skip
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.profile import NodeProfile
from holokube.hollow.stages.lives import StagedNodeLife
from holokube.hollow.stages.node_player import NodePlayer
from holokube.hollow.versions import is_newer
from holokube.hollow.wheel import WheelDriver
from holokube.hollow.writes import Carrier, Urgency, Withheld
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject

RETRY_BASE_S = 0.2
RETRY_MAX_S = 30.0


class NodeKeeper:
    """All managed nodes, whoever speaks for them."""

    def __init__(
        self,
        clock: Clock,
        carrier: Carrier,
        wheel: WheelDriver[Callable[[], None]],
        events: EventSink,
        profile: NodeProfile,
        draw: Draw,
        may_write: Callable[[NodeRecord], bool],
        *,
        on_back: Callable[[NodeRecord], None],
        on_answer: Callable[[NodeRecord, JsonObject], None],
        stages: StagedNodeLife | None = None,
    ) -> None:
        """``on_back`` is called when a node has rebooted, ``on_answer`` with what the server made of a report: it may
        hold changes of others as well, so it is handled like an event of the watch."""
        self._clock = clock
        self._carrier = carrier
        self._wheel = wheel
        self._events = events
        self._profile = profile
        self._draw = draw
        self._may_write = may_write
        self._on_back = on_back
        self._on_answer = on_answer
        self.player: NodePlayer | None = None
        if stages is not None:
            self.player = NodePlayer(
                clock, carrier, wheel, events, stages, draw, may_write, kubelet_port=profile.kubelet_port,
                is_known=lambda record: self._records.get(record.name) is record, on_answer=on_answer,
            )  # fmt: skip
        self._records: dict[str, NodeRecord] = {}
        self.get = self._records.get
        """The record of a node by its name."""
        self._addresses = AddressPool(profile.node_cidr)
        self._blocks = BlockPool(profile.pod_cidr, profile.pod_block_bits)
        self.patches = 0
        self.errors = 0
        # One bound method for all timers, instead of one for each.
        self._when_due = self.look

    def __len__(self) -> int:
        return len(self._records)

    def records(self) -> list[NodeRecord]:
        return [*self._records.values()]

    def add(self, node: JsonObject) -> NodeRecord:
        """A node that matches the selector, seen for the first time."""
        name, uid = node["metadata"]["name"], str(node["metadata"]["uid"])
        host_ips, own = internal_addresses(node), ""
        for address in host_ips:
            self._addresses.claim(address)
        if not host_ips:
            if self._profile.node_ip:
                host_ips = [self._profile.node_ip]
            else:
                own = self._addresses.take(stable_int(name, self._addresses.size)) or ""
                host_ips = [own] if own else []
        record = NodeRecord(
            name,
            uid,
            node,
            tuple(host_ips),
            own,
            PodAddresses(self._pod_ranges(node)),
            self._profile.slow_factor,
            self._profile.allocatable or self._profile.capacity,
        )
        record.faults = faults_of(node)
        if self._profile.images:
            record.images = ImageStore()
        known = ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID") or ""
        record.boot = known or boot_id(uid, reboot_token(node))
        self._records[name] = record
        return record

    def _pod_ranges(self, node: JsonObject) -> list[str]:
        spec = node.get("spec") or {}
        ranges = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [])
        if ranges:
            return list(ranges)
        block = self._blocks.block_of(node["metadata"]["name"])
        return [block] if block is not None else []

    def remove(self, record: NodeRecord) -> None:
        self.rest(record)
        if self.player is not None:
            self.player.forget(record)
        if self._records.get(record.name) is record:
            del self._records[record.name]
        self._blocks.release(record.name)
        if record.own_address:
            self._addresses.release(record.own_address)

    def changed(self, record: NodeRecord, node: JsonObject) -> None:
        """The Node object changed: by us, by others, or because somebody asks for a fault."""
        if not is_newer(node, record.node):
            if node["metadata"].get("resourceVersion") == record.node["metadata"].get("resourceVersion"):
                # The echo of our own report; the informer keeps it, so that the answer needs no memory.
                self._keep(record, node)
            return
        before = record.node
        self._keep(record, node)
        record.faults = faults_of(node)
        if internal_addresses(node):
            record.host_ips = tuple(internal_addresses(node))
        if asks_for_reboot(before, node):
            self.begin_reboot(record)
        self.look(record)

    @staticmethod
    def _keep(record: NodeRecord, node: JsonObject) -> None:
        record.node = node
        reported = ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID")
        if reported == record.boot:
            # One text instead of two equal ones.
            record.boot = reported

    def look(self, record: NodeRecord) -> None:
        """Reports if there is something to report, and sets the timer for the next report."""
        if self.player is not None:
            self.player.look(record)
            return
        if record.busy:
            record.dirty = True
            return
        if not self._may_write(record):
            return
        now_s = self._clock.time()
        first = record.reported_s is None
        due = record.reported_s is not None and now_s >= record.reported_s + record.report_every_s - 1e-6
        if not due and not first and _stays_settled(record):
            self._set_timer(record)
            return
        desired = desired_status(
            record.node, self._profile, record.all_faults, addresses=record.host_ips, boot=record.boot,
            images=record.images.report() if record.images is not None else None,
        )  # fmt: skip
        patch = status_patch(record.node, desired, now_s, heartbeat=due)
        if patch is None:
            _settle(record)
            if first:
                # Adopted as it is; when it was last reported is unknown, so the first report is somewhere within.
                record.reported_s = now_s
                record.report_every_s = self._profile.report_every_s * self._draw(f"{record.uid}/first report")
            self._set_timer(record)
            return
        if self._profile.events:
            for kind, reason, message in transition_events(record.node, desired):
                self._events.emit(_as_event_object(record.node), record.name, kind, reason, message)
        record.busy = True
        call = Call("patch", NODES, "", record.name, "status", {}, patch, PatchType.STRATEGIC.value)
        self.patches += 1
        self._carrier.send(
            Urgency.NODE, call, partial(self._reported, record, due), partial(self._may_write, record), record.known
        )

    def rest(self, record: NodeRecord) -> None:
        """Reports nothing until the next ``look``."""
        self._wheel.cancel(record.timer)
        record.timer = None

    def begin_reboot(self, record: NodeRecord) -> None:
        """The node is silent for a while, and comes back under a new boot id."""
        if record.rebooting:
            return
        record.rebooting = True
        record.reboots += 1
        record.boot = boot_id(record.uid, f"{reboot_token(record.node)}/{record.reboots}")
        self._wheel.after(self._profile.reboot_s, lambda: self._back(record))

    def _back(self, record: NodeRecord) -> None:
        if self._records.get(record.name) is not record:
            return
        record.rebooting = False
        message = f"Node {record.name} has been rebooted, boot id: {record.boot}"
        self._events.emit(_as_event_object(record.node), record.name, "Warning", "Rebooted", message)
        self._on_back(record)

    def _set_timer(self, record: NodeRecord) -> None:
        assert record.reported_s is not None
        self._wheel.cancel(record.timer)
        left_s = record.reported_s + record.report_every_s - self._clock.time()
        record.timer = self._wheel.after(left_s, partial(self._when_due, record))

    def _reported(self, record: NodeRecord, due: bool, answer: JsonObject, error: HolokubeError | None) -> None:
        record.busy = False
        if error is None:
            record.failures = 0
            record.reported_s = self._clock.time()
            record.report_every_s = self._profile.report_every_s
            if not due:
                # After a change the next report is shifted once, so that a fleet does not report in step.
                shift = 0.5 + self._draw(f"{record.uid}/{record.reported_s}/shift")
                record.report_every_s *= shift
        if self._records.get(record.name) is not record or isinstance(error, Withheld):
            return
        if error is not None and not isinstance(error, NotFound):
            self.errors += 1
            record.failures += 1
            record.dirty = False
            delay_s = min(RETRY_MAX_S, RETRY_BASE_S * 2 ** min(record.failures - 1, 10))
            self._wheel.cancel(record.timer)
            record.timer = self._wheel.after(delay_s, partial(self._when_due, record))
        elif error is None and is_newer(answer, record.node):
            record.dirty = False
            self._on_answer(record, answer)
        elif record.dirty:
            record.dirty = False
            self.look(record)
        elif record.reported_s is not None:
            # Of a node that was not found, the watch will tell.
            self._set_timer(record)


def _is_plain(record: NodeRecord) -> bool:
    """Whether nothing but its status, its addresses and its boot id decide on what a node has to report.

    What kwok's label asks for is among the faults.
    """
    return not record.faults and not record.commanded and record.images is None


def _settle(record: NodeRecord) -> None:
    """Remembers that there is nothing to report."""
    status = record.node.get("status")
    record.settled = (status, record.host_ips, record.boot) if status and _is_plain(record) else None


def _stays_settled(record: NodeRecord) -> bool:
    """Whether a change was about something else, a taint say: then the very same status is there, in process."""
    known = record.settled
    if known is None or record.node.get("status") is not known[0]:
        return False
    return record.host_ips == known[1] and record.boot == known[2] and _is_plain(record)


def _as_event_object(node: JsonObject) -> JsonObject:
    """Kubelets refer to their node by name in the uid as well, a habit that tools rely on."""
    name = node["metadata"]["name"]
    return {"kind": "Node", "name": name, "uid": name, "apiVersion": "v1"}
