"""One transition, one patch, in whichever order the answer and the watch come in; and nothing of others is missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.client.transport import Call
from holokube.hollow.draws import KeyedDraws
from holokube.hollow.event_sink import EventSink
from holokube.hollow.node_keeper import NodeKeeper
from holokube.hollow.node_record import NodeRecord
from holokube.hollow.pod_keeper import PodKeeper
from holokube.hollow.profile import FAST, NodeProfile
from holokube.hollow.wheel import WheelDriver
from holokube.hollow.writes import Answered, Renewal, Renewed, Urgency, Withheld
from holokube.kube.errors import InternalError, NotFound
from holokube.kube.patch.merge_patch import apply_merge_patch
from tests.builders import pod
from tests.hollow.worlds import fake_node


class HeldCarrier:
    """Keeps writes until they are answered by hand."""

    def __init__(self) -> None:
        self.sent: list[tuple[Call, Answered]] = []

    def renew(self, renewal: Renewal, done: Renewed) -> None:
        raise AssertionError("pods renew nothing")

    def send(self, urgency: Urgency, call: Call, done: Answered, allowed: Callable[[], bool] | None = None,
             known: Callable[[], Any] | None = None) -> bool:
        assert urgency is Urgency.POD
        self.sent.append((call, done))
        return True

    async def close(self) -> None:
        pass


class World:
    """One pod on one node; versions are given by hand."""

    def __init__(self, clock: VirtualClock) -> None:
        self.carrier = HeldCarrier()
        self.wheel: WheelDriver[Callable[[], None]] = WheelDriver(clock, lambda action: action())
        events = EventSink(clock, self.carrier)
        draw = KeyedDraws(1)
        self.allowed = True
        nodes = NodeKeeper(
            clock, self.carrier, self.wheel, events, NodeProfile(), draw, self._may_write,
            on_back=lambda record: None, on_answer=lambda record, node: None,
        )  # fmt: skip
        self.keeper = PodKeeper(clock, self.carrier, self.wheel, events, FAST, draw, self._may_write)
        given = fake_node("n")
        given["metadata"] |= {"uid": "n", "resourceVersion": "1"}
        self.node = nodes.add(given)
        self.pod = pod("p", "default", node="n")
        self.pod["metadata"] |= {"uid": "u", "resourceVersion": "4"}
        self.pod["status"] = {"phase": "Pending"}

    def _may_write(self, _record: NodeRecord) -> bool:
        return self.allowed

    def see(self, obj: dict[str, Any]) -> None:
        self.keeper.see(obj, self.node)

    def patched(self, version: str, **meta: Any) -> dict[str, Any]:
        """The pod with the first patch applied."""
        result = apply_merge_patch(self.pod, self.carrier.sent[0][0].body)
        return {**result, "metadata": {**result["metadata"], "resourceVersion": version, **meta}}

    def answer(self, obj: dict[str, Any], number: int = 0) -> None:
        self.carrier.sent[number][1](obj, None)

    @property
    def verbs(self) -> list[str]:
        return [call.verb for call, _ in self.carrier.sent]


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}


def play(scene: Callable[[World], None]) -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock)
        world.see(world.pod)
        assert world.verbs == ["patch"]
        scene(world)
        world.wheel.stop()

    run_virtual(main)


def test_the_answer_first_and_then_its_echo_is_one_patch() -> None:
    def scene(world: World) -> None:
        world.answer(world.patched("6"))
        echo = world.patched("6")
        world.see(echo)
        assert world.verbs == ["patch"]
        assert world.keeper._records["default/p"].pod is echo

    play(scene)


def test_an_echo_that_is_the_very_answer_is_nothing_new() -> None:
    def scene(world: World) -> None:
        answer = world.patched("6", **DELETED)
        world.answer(answer)
        assert world.verbs == ["patch", "delete"]
        world.see(answer)
        assert world.keeper._records["default/p"].seen == 0
        assert world.keeper._records["default/p"].pod is answer

    play(scene)


def test_the_echo_first_and_then_the_answer_is_one_patch() -> None:
    def scene(world: World) -> None:
        world.see(world.patched("6"))
        world.answer(world.patched("6"))
        assert world.verbs == ["patch"]

    play(scene)


def test_a_deletion_seen_before_the_answer_is_carried_out_after_it() -> None:
    def scene(world: World) -> None:
        world.see({**world.pod, "metadata": {**world.pod["metadata"], "resourceVersion": "5", **DELETED}})
        assert world.verbs == ["patch"]
        world.answer(world.patched("6", **DELETED))
        assert world.verbs == ["patch", "delete"]

    play(scene)


def test_a_deletion_that_only_the_answer_tells_is_carried_out() -> None:
    def scene(world: World) -> None:
        world.answer(world.patched("6", **DELETED))
        assert world.verbs == ["patch", "delete"]
        world.see({**world.pod, "metadata": {**world.pod["metadata"], "resourceVersion": "5", **DELETED}})
        world.see(world.patched("6", **DELETED))
        assert world.verbs == ["patch", "delete"]

    play(scene)


def test_a_deletion_that_comes_with_the_echo_alone_is_carried_out() -> None:
    """As after a break of the watch, when the list shows the last state only."""

    def scene(world: World) -> None:
        world.see(world.patched("6", **DELETED))
        world.answer(world.patched("6", **DELETED))
        assert world.verbs == ["patch", "delete"]

    play(scene)


def test_what_others_wrote_at_the_same_time_is_put_right() -> None:
    def scene(world: World) -> None:
        answer = world.patched("6")
        for condition in answer["status"]["conditions"]:
            if condition["type"] == "Ready":
                condition["status"] = "False"
        other = {**world.pod, "metadata": {**world.pod["metadata"], "resourceVersion": "5"}}
        world.see(other)
        world.answer(answer)
        assert world.verbs == ["patch", "patch"]

    play(scene)


def test_a_write_that_was_withheld_is_made_when_the_node_is_ours_again() -> None:
    def scene(world: World) -> None:
        world.allowed = False
        call, done = world.carrier.sent[0]
        done({}, Withheld(call))
        assert world.verbs == ["patch"] and len(world.wheel) == 0
        world.allowed = True
        world.keeper.look_again(world.node)
        assert world.verbs == ["patch", "patch"]

    play(scene)


def test_a_failed_write_is_tried_again_later_and_one_of_a_missing_pod_is_not() -> None:
    def scene(world: World) -> None:
        world.carrier.sent[0][1]({}, InternalError("broken"))
        assert len(world.wheel) == 1 and world.keeper.stats.errors == 1
        world.keeper.look_again(world.node)
        world.carrier.sent[1][1]({}, NotFound("gone"))
        assert len(world.wheel) == 0 and world.keeper.stats.refused == 1

    play(scene)


def test_pods_of_a_node_that_is_gone_are_forgotten_and_with_them_what_is_due() -> None:
    def scene(world: World) -> None:
        world.carrier.sent[0][1]({}, InternalError("broken"))
        assert len(world.keeper) == len(world.wheel) == 1
        world.keeper.bury_node(world.node)
        assert len(world.keeper) == len(world.wheel) == 0
        assert world.node.pods == world.node.admitted == []

    play(scene)


def test_an_answer_for_a_pod_of_a_node_that_is_gone_changes_nothing() -> None:
    def scene(world: World) -> None:
        answer = world.patched("6")
        world.keeper.bury_node(world.node)
        world.answer(answer)
        world.keeper.gone(answer)
        assert len(world.keeper) == 0
        assert world.verbs == ["patch"]

    play(scene)
