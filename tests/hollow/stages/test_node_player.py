"""Stages of nodes on their way to the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.base.errors import HolokubeError, TransportError
from holokube.client.transport import Call
from holokube.hollow.addresses import PodAddresses
from holokube.hollow.draws import KeyedDraws
from holokube.hollow.event_sink import EventSink
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.stages.lives import StageBook, StagedNodeLife
from holokube.hollow.stages.node_player import NodePlayer
from holokube.hollow.wheel import WheelDriver
from holokube.hollow.writes import Answered, Renewal, Renewed, Urgency, Withheld
from holokube.kube.errors import NotFound
from tests.hollow.stages.samples import INITIALIZE, stage, stages

STEPS = stage(
    "steps",
    "selector: {matchLabels: {a: b}}\nnext: {event: {reason: Hello}, patches: [{root: metadata, type: merge, "
    "template: 'labels: {a: c}'}], statusTemplate: 'phase: Running'}\nsteps: [{delete: true}]",
    kind="Node",
)


class FakeCarrier:
    """Keeps what is sent until the test answers."""

    def __init__(self) -> None:
        self.sent: list[tuple[Call, Answered]] = []
        self.events: list[Call] = []

    def renew(self, renewal: Renewal, done: Renewed) -> None:
        raise AssertionError("no leases here")

    def send(self, urgency: Urgency, call: Call, done: Answered, allowed: Callable[[], bool] | None = None,
             known: Callable[[], Any] | None = None) -> bool:
        if urgency is Urgency.EVENT:
            self.events.append(call)
        else:
            self.sent.append((call, done))
        return True

    async def close(self) -> None:
        return None


class FakeWheel(WheelDriver[Callable[[], None]]):
    """Remembers timers; the test fires them."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, lambda action: action())
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def after(self, delay_s: float, payload: Callable[[], None]) -> Any:
        self.waiting.append((delay_s, payload))

    def cancel(self, timer: Any) -> None:
        return None


class World:
    def __init__(self, document: str, **labels: str) -> None:
        clock = VirtualClock()
        self.carrier, self.wheel = FakeCarrier(), FakeWheel(clock)
        self.node: dict[str, Any] = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "1", "labels": labels}}
        self.record = NodeRecord("n", "u", self.node, ("192.0.2.1",), "", PodAddresses([]), 1.0, {})
        self.known = self.speaks = True
        self.player = NodePlayer(
            clock, self.carrier, self.wheel, EventSink(clock, self.carrier), StagedNodeLife(
                StageBook(stages(document)), start_s=0.0), KeyedDraws(1), lambda record: self.speaks,
            kubelet_port=10250, is_known=lambda record: self.known, on_answer=self.take,
        )  # fmt: skip
        self.player.look(self.record)

    def take(self, record: NodeRecord, answer: dict[str, Any]) -> None:
        record.node = answer
        self.player.look(record)

    def answer(self, status: dict[str, Any] | None = None, error: HolokubeError | None = None) -> None:
        _, done = self.carrier.sent.pop(0)
        meta = {**self.record.node["metadata"], "resourceVersion": "2"}
        done({"metadata": meta, "status": status or {}} if error is None else {}, error)


def test_a_node_is_initialized_and_then_left_alone() -> None:
    world = World(INITIALIZE)
    ((call, _),) = world.carrier.sent
    assert (call.verb, call.subresource) == ("patch", "status")
    assert call.content_type == "application/strategic-merge-patch+json"
    world.answer({"conditions": [{"type": "Ready", "status": "True"}]})
    assert world.carrier.sent == [] and not world.record.busy


def test_steps_go_one_after_the_other_and_the_event_at_once() -> None:
    world = World(STEPS, a="b")
    assert [call.body["reason"] for call in world.carrier.events] == ["Hello"]
    seen = []
    while world.carrier.sent:
        assert len(world.carrier.sent) == 1
        call = world.carrier.sent[0][0]
        seen.append((call.verb, call.subresource))
        world.answer()
    assert seen == [("patch", ""), ("patch", "status"), ("delete", "")]


def test_what_fails_is_played_again_after_a_while() -> None:
    world = World(INITIALIZE)
    world.answer(error=TransportError("no answer"))
    ((delay_s, again),) = world.wheel.waiting
    assert delay_s == 0.2 and world.player.errors == 1 and world.carrier.sent == []
    world.wheel.waiting.clear()
    again()
    assert len(world.carrier.sent) == 1
    world.answer(error=TransportError("no answer"))
    assert world.wheel.waiting[0][0] == 0.4


def test_a_node_that_is_gone_or_not_ours_is_left_alone() -> None:
    for error in (NotFound("no such node"), None):
        world = World(INITIALIZE)
        call = world.carrier.sent[0][0]
        world.answer(error=error or Withheld(call))
        assert world.wheel.waiting == [] and not world.record.busy and world.player.errors == 0
    world = World(INITIALIZE)
    world.known = False
    world.answer()
    assert world.carrier.sent == []


def test_nothing_is_sent_for_a_node_of_others_nor_twice_at_a_time() -> None:
    world = World(INITIALIZE)
    world.player.look(world.record)
    assert len(world.carrier.sent) == 1 and world.record.dirty
    world.answer(error=NotFound("no such node"))
    world.speaks = False
    world.player.forget(world.record)
    world.player.look(world.record)
    assert world.carrier.sent == []
