from __future__ import annotations

from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.karpenter import events
from holokube.karpenter.disruption.types import Notice, NoticeKind
from holokube.karpenter.disruption_loop.notices import tell
from holokube.karpenter.events import NOMINATIONS, Publisher
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.runtime.journal import Journal
from tests.karpenter.objects import pod


class Recorder:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def event(self, obj: Any, type: str, reason: str, message: str) -> None:
        assert type in ("Normal", "Warning")
        self.told.append((obj["metadata"]["name"], f"{reason}: {message}"))


def publisher() -> tuple[VirtualClock, Recorder, Publisher]:
    clock, recorder = VirtualClock(), Recorder()
    return clock, recorder, Publisher(clock, recorder)  # type: ignore[arg-type] # the part of a recorder that is used


def test_the_same_event_is_told_once_in_two_minutes() -> None:
    clock, recorder, publish = publisher()
    for seconds in (0, 60, 59, 2):
        clock.advance(seconds)
        publish.warning(pod("a"), "FailedScheduling", "no room")
    assert recorder.told == [("a", "FailedScheduling: no room")] * 2


def test_events_are_told_apart_by_what_the_caller_says() -> None:
    _, recorder, publish = publisher()
    publish.normal(pod("a"), "R", "1", "uid", "x")
    publish.normal(pod("a"), "R", "2", "uid", "y")
    publish.normal(pod("a"), "R", "3", "uid", "y")
    assert [message for _, message in recorder.told] == ["R: 1", "R: 2"]


def test_of_thousands_of_nominations_only_some_are_told() -> None:
    _, recorder, publish = publisher()
    for number in range(3000):
        publish.normal(pod(f"p{number}"), "Nominated", "there", budget=NOMINATIONS)
    assert len(recorder.told) == 10


def test_a_message_that_is_too_long_is_cut() -> None:
    _, recorder, publish = publisher()
    publish.normal(pod(), "R", "x" * 2000)
    assert len(recorder.told[0][1]) == len("R: ") + 1024


def test_what_is_told_of_many_objects_is_what_is_told_of_each() -> None:
    told = []
    for at_once in (True, False):
        clock, recorder, publish = publisher()
        # More than are kept before the old ones are put away, in groups that overlap.
        for begin in (0, 500, 1000, 1500, 0):
            pods = [pod(f"p{number}") for number in range(begin, begin + 1000)]
            if at_once:
                publish.normal_for_each(pods, "Nominated", "there")
            else:
                for one in pods:
                    publish.normal(one, "Nominated", "there")
            clock.advance(50)
        told.append(recorder.told)
    assert told[0] == told[1]
    assert len(told[0]) == 2500 + 1000


def test_objects_told_of_together_again_and_again_are_told_of_as_each_would_be() -> None:
    told = []
    for at_once in (True, False):
        clock, recorder, publish = publisher()
        pods = [pod(f"p{number}") for number in range(6)]
        # The same again, in another order, some of them, one more, one of them told of before; then when it is time.
        for group, message in (
            (pods[:4], "here"), (pods[:4], "here"), (pods[:2], "there"), (pods[3::-1], "here"), (pods[:5], "here"),
            (pods[:5], "here"), (pods[:5], "there"), (pods, "here"), (pods, "here"), (pods, "here"), (pods, "there"),
        ):  # fmt: skip
            clock.advance(30)
            if at_once:
                publish.normal_for_each(group, "Nominated", message)
            else:
                for one in group:
                    publish.normal(one, "Nominated", message)
        told.append(recorder.told)
    assert told[0] == told[1]
    assert len(told[0]) > 10


def test_what_is_remembered_of_objects_told_of_together_is_not_what_the_caller_changes() -> None:
    _, recorder, publish = publisher()
    pods = [pod("a")]
    publish.normal_for_each(pods, "Nominated", "there")
    pods[0] = pod("b")
    publish.normal_for_each(pods, "Nominated", "there")
    assert [name for name, _ in recorder.told] == ["a", "b"]


def test_it_is_known_until_when_an_event_is_not_told_again() -> None:
    clock, _, publish = publisher()
    publish.normal(pod("a"), "R", "1", "uid")
    publish.normal(pod("a"), "R", "1", "uid", "x", dedupe_s=5.0)
    now_s = clock.monotonic()
    assert publish.quiet_until_s("R", "uid") == now_s + 120
    assert publish.quiet_until_s("R", "uid", "x") == now_s + 5
    assert publish.quiet_until_s("R", "other") == publish.quiet_until_s("S", "uid") == 0.0


def test_who_knows_the_uid_of_an_object_tells_the_same_event() -> None:
    clock, recorder, publish = publisher()
    one = pod("a")
    uid = one["metadata"]["uid"]
    assert publish.quiet_until_s_by("R")(uid, 7.0) == 7.0, "nobody has heard of it"
    publish.normal_of(((one, uid), (pod("b"), "other")), "R", "1", 30.0)
    publish.normal(one, "R", "1")
    publish.normal_of(((pod("b"), "other"), (pod("c"), "third")), "R", "1", 30.0)
    assert [name for name, _ in recorder.told] == ["a", "b", "c"]
    assert publish.quiet_until_s_by("R")(uid, 0.0) == publish.quiet_until_s("R", uid) == clock.monotonic() + 30


def some_notices(rng: Rng) -> list[Notice]:
    """Most of them of one kind, of nodes that have a Node, a claim, or both."""
    is_mixed, found = rng.random() < 0.3, []
    for _ in range(rng.randrange(12)):
        number = rng.randrange(9)
        of_node = {"kind": "Node", "metadata": {"name": f"n{number}", "uid": f"node-{number}"}}
        claim = {"kind": "NodeClaim", "metadata": {"name": f"c{number}", "uid": f"claim-{number}"}}
        node = StateNode(of_node if number else None, claim if number % 3 != 1 else None)
        kind = rng.choice(list(NoticeKind)) if is_mixed else NoticeKind.UNCONSOLIDATABLE
        dedupe = ("more",) if is_mixed and rng.random() < 0.3 else ()
        found.append(Notice(kind, rng.choice(("one", "other", "x" * 1500)), node, dedupe=dedupe))
    return found


@pytest.mark.parametrize("sweep_every", [3, 1024])
@pytest.mark.parametrize("seed", range(20))
def test_notices_told_together_are_told_as_each_would_be(
    seed: int, sweep_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_SWEEP_EVERY", sweep_every)
    found = []
    for at_once in (True, False):
        rng = Rng(f"notices {seed}")
        clock, recorder, journal = VirtualClock(), Recorder(), Journal()
        publish = Publisher(clock, recorder, journal)  # type: ignore[arg-type] # the part of a recorder that is used
        for _ in range(30):
            notices = some_notices(rng)
            for group in [notices] if at_once else [[one] for one in notices]:
                tell(group, publish)
            clock.advance(rng.choice((0.0, 100.0, 500.0, 900.0)))
        found.append((recorder.told, list(journal)))
    assert found[0] == found[1]
    assert len(found[0][0]) > 50
