from __future__ import annotations

from typing import Any

from holokube.base.clock import VirtualClock
from holokube.karpenter.events import NOMINATIONS, Publisher
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
