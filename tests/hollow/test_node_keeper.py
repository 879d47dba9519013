"""A node whose status is as it was when there was nothing to report has nothing to report; all else is looked at."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.client.resources import NODES
from holokube.hollow import node_keeper
from holokube.hollow.draws import KeyedDraws
from holokube.hollow.event_sink import EventSink
from holokube.hollow.node_keeper import NodeKeeper
from holokube.hollow.node_life import FAULT, KWOK_NOT_READY, REBOOT, Fault
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.profile import NodeProfile
from holokube.hollow.wheel import WheelDriver
from holokube.kube.patch.merge_patch import apply_merge_patch
from tests.hollow.test_pod_keeper import HeldCarrier as PodCarrier
from tests.hollow.worlds import fake_node


class HeldCarrier(PodCarrier):
    def send(self, urgency: Any, call: Any, done: Any, allowed: Any = None, known: Any = None) -> bool:
        self.sent.append((call, done))
        return True


class World:
    """One node; its reports are answered as soon as they are made."""

    def __init__(self, clock: VirtualClock, *, remembers: bool = True) -> None:
        self.clock = clock
        self.carrier = HeldCarrier()
        self.remembers = remembers
        wheel: WheelDriver[Callable[[], None]] = WheelDriver(clock, lambda action: action())
        self.keeper = NodeKeeper(
            clock, self.carrier, wheel, EventSink(clock, self.carrier), NodeProfile(), KeyedDraws(1),
            lambda _record: True, on_back=lambda _record: None, on_answer=self._take,
        )  # fmt: skip
        given = fake_node("n")
        given["metadata"] |= {"uid": "n", "resourceVersion": "1"}
        self.node: dict[str, Any] = given
        self.record = self.keeper.add(given)
        self.keeper.look(self.record)
        self.answer()

    def _take(self, record: NodeRecord, node: dict[str, Any]) -> None:
        self._forget()
        self.keeper.changed(record, node)

    def _forget(self) -> None:
        if not self.remembers:
            self.record.settled = None

    def answer(self) -> None:
        """Carries out what was sent since."""
        while (number := getattr(self, "answered", 0)) < len(self.carrier.sent):
            self.answered = number + 1
            call, done = self.carrier.sent[number]
            if call.resource is not NODES:
                continue
            known = {one["type"]: one for one in (self.node.get("status") or {}).get("conditions") or ()}
            known |= {one["type"]: one for one in call.body["status"].get("conditions") or ()}
            status = {**call.body["status"], "conditions": [*known.values()]}
            self.node = apply_merge_patch(self.node, {"status": status})
            self._newer()
            done(self.node, None)

    def _newer(self) -> None:
        version = str(int(self.node["metadata"]["resourceVersion"]) + 1)
        self.node = {**self.node, "metadata": {**self.node["metadata"], "resourceVersion": version}}

    def change(self, part: str, **fields: Any) -> None:
        """Somebody else writes."""
        self.node = {**self.node, part: {**self.node.get(part, {}), **fields}}
        self._newer()
        self._forget()
        self.keeper.changed(self.record, self.node)
        self.answer()

    def command(self, *faults: Fault) -> None:
        self.record.commanded = frozenset(faults)
        self._forget()
        self.keeper.look(self.record)
        self.answer()


CHANGES: list[Callable[[World], None]] = [
    lambda world: world.change("spec", taints=[{"key": "a", "effect": "NoSchedule"}]),
    lambda world: world.change("spec", unschedulable=True),
    lambda world: world.change("metadata", labels={"zone": "a"}),
    lambda world: world.change("metadata", labels={}),
    lambda world: world.change("metadata", labels={KWOK_NOT_READY: "true"}),
    lambda world: world.change("metadata", annotations={FAULT: "not-ready"}),
    lambda world: world.change("metadata", annotations={REBOOT: "1"}),
    lambda world: world.change("metadata", annotations={}),
    lambda world: world.command(Fault.MEMORY_PRESSURE),
    lambda world: world.command(),
    lambda world: world.change("status", conditions=[]),
    lambda world: world.change("status", conditions=[{"type": "Ready", "status": "Unknown"}]),
    lambda world: world.change("status", addresses=[{"type": "InternalIP", "address": "1.2.3.4"}]),
    lambda world: world.change("status", nodeInfo={}),
    lambda world: world.change("status", phase="x"),
]  # fmt: skip


def told(changes: list[int], *, remembers: bool) -> list[str]:
    async def main(clock: VirtualClock) -> list[str]:
        world = World(clock, remembers=remembers)
        found = []
        for number in changes:
            before = len(world.carrier.sent)
            CHANGES[number](world)
            timer = world.record.timer.tick if world.record.timer is not None else None
            found.append(json.dumps([[call.body for call, _ in world.carrier.sent[before:]], timer]))
            await clock.sleep(40.0)
            world.answer()
        return found

    return run_virtual(main)


@settings(deadline=None)
@given(st.lists(st.integers(0, len(CHANGES) - 1), max_size=10))
def test_what_was_found_before_is_what_a_look_would_find(changes: list[int]) -> None:
    assert told(changes, remembers=True) == told(changes, remembers=False)


def test_a_change_of_something_else_is_not_compared_with_the_whole_status(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)

        def refuse(*_given: Any, **_more: Any) -> Any:
            raise AssertionError("the status was made up again")

        with monkeypatch.context() as patch:
            patch.setattr(node_keeper, "desired_status", refuse)
            CHANGES[0](world)
            CHANGES[2](world)
            with pytest.raises(AssertionError, match="made up again"):
                CHANGES[10](world)

    run_virtual(main)
