"""Where nobody reads events they are correlated many at a time, and nobody can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import Resource
from holokube.client.transport import Call
from holokube.cluster_autoscaler.loop.event_correlation import AutoscalerCorrelator
from holokube.kube.errors import AlreadyExists
from holokube.runtime import events
from holokube.runtime.event_correlator import CountingCorrelator
from holokube.runtime.event_occurrence import Correlator
from holokube.runtime.events import EventRecorder
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal
from tests.runtime.fakes import FakeTransport

OBJECTS = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{n}", "namespace": "shop", "uid": f"u{n}"}}
    for n in range(3)
]
CROWD = [
    {"apiVersion": "v1", "kind": "Pod",
     "metadata": {"name": f"job-{n}", "namespace": "shop", "uid": f"j{n}", "resourceVersion": f"{n}"}}
    for n in range(12)
]  # fmt: skip


class Unread(FakeTransport):
    """Nobody reads its events, unless told otherwise; every third name is taken by somebody else."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, lambda: 0.4)
        self.is_read = False
        self._creates = 0

    def discard(self, verb: str, resource: Resource) -> bool:
        if not self.is_read:
            self.counts[f"unread {verb}"] += 1
        return not self.is_read

    def do(self, call: Call) -> dict[str, Any]:
        self._creates += call.verb == "create"
        if call.verb == "create" and self._creates % 3 == 1:
            raise AlreadyExists("taken")
        return super().do(call)

    def asked(self) -> dict[str, int]:
        return dict(self.counts)


class Postponing(Unread):
    """May be told later what it did not get."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.settle: list[Callable[[], None]] = []

    def postpones(self, settle: Callable[[], None]) -> bool:
        self.settle.append(settle)
        return True

    def discards(self, _resource: Resource) -> bool:
        return not self.is_read

    def count_discarded(self, verb: str, writes: int) -> None:
        assert writes > 0
        self.counts[f"unread {verb}"] += writes

    def asked(self) -> dict[str, int]:
        for settle in self.settle:
            settle()
        return super().asked()


def _counting(clock: VirtualClock) -> Correlator:
    return CountingCorrelator(
        clock, new_name=lambda event: f"{event['metadata']['name']}-all", cache_entries=4, similar_max=3,
        similar_window_s=5.0, spam_burst=6, spam_per_s=0.5,
    )  # fmt: skip


def _autoscaler(clock: VirtualClock) -> Correlator:
    return AutoscalerCorrelator(clock, ("kube-system", "status"))


def _forgetful(clock: VirtualClock) -> Correlator:
    return AutoscalerCorrelator(clock, ("kube-system", "status"), counted_entries=4, said_entries=6)


class Crowd(tuple[Any, ...]):
    """Many objects that are told of at once."""


class Bench:
    """A recorder at work."""

    def __init__(self, clock: VirtualClock, server: Unread, correlator: Correlator) -> None:
        self.server = server
        self.metrics = Metrics()
        self.recorder = EventRecorder(
            clock, Client(server), "scheduler", rng=Rng(1), metrics=self.metrics, max_queued=4, correlator=correlator
        )
        self.stop = StopSignal()
        self.task = asyncio.create_task(self.recorder.run(self.stop))

    def dropped(self) -> dict[str, float]:
        (family,) = (one for one in self.metrics.registry.collect() if one.name == "holokube_events_dropped")
        return {sample.labels["cause"]: sample.value for sample in family.samples}


def _steps(rng: Rng, count: int) -> list[Any]:
    """Events of a few objects in bursts, pauses, and now and then a time at which they are read, or counted."""
    steps: list[Any] = []
    for _ in range(count):
        match rng.randrange(10):
            case 0 | 1:
                steps.append(rng.choice([0.3, 1.0, 2.0, 5.5, 299.0]))
            case 2:
                steps.append(rng.choice(["read", "unread", "unread", "ask calls", "ask drops"]))
            case 3 | 4:
                crowd = [*CROWD[: rng.choice([3, 5, 7, 9, 12])], *rng.choice([[], [], OBJECTS])]
                match rng.randrange(6):
                    case 0:
                        crowd.reverse()
                    case 1:
                        crowd = [rng.choice(crowd) for _ in crowd]
                    case 2:
                        crowd[rng.randrange(len(crowd))] = {"metadata": {"name": "of no kind"}}
                    case _:
                        pass
                told = [(obj, rng.choice(["one", "one", "two"])) for obj in crowd]
                steps.extend([Crowd((told, "Normal", rng.choice("AB")))] * rng.choice([1, 2, 3]))
            case _:
                kind = "Strange" if rng.random() < 0.02 else rng.choice(["Normal", "Warning"])
                one = rng.choice(OBJECTS), kind, rng.choice("AB"), rng.choice(["one", "two", "three", "four", "five"])
                steps.extend([one] * rng.choice([1, 1, 1, 3]))
    return steps


def compare(steps: list[Any], make: Callable[[VirtualClock], Correlator]) -> None:
    """The same happens where each event is correlated at once, and where that is postponed."""

    async def main(clock: VirtualClock) -> None:
        benches = [Bench(clock, Unread(clock), make(clock)), Bench(clock, Postponing(clock), make(clock))]

        def answers(ask: Callable[[Bench], Any]) -> None:
            at_once, later = map(ask, benches)
            assert later == at_once

        for step in steps:
            if isinstance(step, float):
                await clock.sleep(step)
            elif step == "ask calls":
                answers(lambda bench: bench.server.asked())
            elif step == "ask drops":
                answers(lambda bench: bench.dropped())
            else:
                for bench in benches:
                    if isinstance(step, str):
                        bench.server.is_read = step == "read"
                    elif isinstance(step, Crowd):
                        bench.recorder.tell_each(*step)
                    else:
                        bench.recorder.event(*step)
        for bench in benches:
            bench.stop.set()
        await asyncio.gather(*(bench.task for bench in benches))
        answers(lambda bench: bench.server.asked())
        answers(lambda bench: bench.dropped())
        answers(lambda bench: bench.server.objects)
        answers(lambda bench: [(call.verb, call.name, call.body) for _, call in bench.server.calls])

    run_virtual(main)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32), count=st.integers(0, 150), most_told=st.sampled_from([5, 40]),
    make=st.sampled_from([_counting, _autoscaler, _forgetful]),
)  # fmt: skip
def test_whoever_asks_gets_the_same_answers_as_if_each_was_correlated_at_once(
    seed: int, count: int, most_told: int, make: Callable[[VirtualClock], Correlator]
) -> None:
    most, events.MAX_TOLD = events.MAX_TOLD, most_told
    try:
        compare(_steps(Rng(seed), count), make)
    finally:
        events.MAX_TOLD = most


def test_an_event_that_gets_another_name_meanwhile_is_as_old_as_it_would_be() -> None:
    first, second, third = ((obj, "Normal", "Seen", "x") for obj in OBJECTS)

    def make(clock: VirtualClock) -> Correlator:
        return CountingCorrelator(clock, new_name=lambda event: str(event["metadata"]["name"]), cache_entries=2)

    compare(["read", first, 0.1, "unread", second, 2.0, third, second, "ask calls"], make)


def test_combined_events_began_when_the_first_of_them_was_told() -> None:
    told = [(OBJECTS[0], "Normal", "Seen", f"try {n}") for n in range(4)]
    compare(["unread", *told[:3], 2.0, "read", told[3], 9.0], _counting)


def test_a_burst_is_told_again_after_a_time_at_which_nobody_read(caplog: pytest.LogCaptureFixture) -> None:
    burst = [(obj, "Normal", reason, "x") for obj in OBJECTS for reason in "ABC"]
    compare(["read", *burst, 99.0, "unread", burst[0], "read", *burst, 99.0], _counting)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["Too many events are queued, some are dropped"] * 4


def test_only_so_many_wait_and_the_stop_leaves_none() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock, server := Postponing(clock), _counting(clock))
        for n in range(events.MAX_TOLD - 1):
            bench.recorder.event({"kind": "Pod", "name": f"web-{n}"}, "Normal", "Seen", "x")
        assert not server.counts
        bench.recorder.event(OBJECTS[0], "Normal", "Seen", "x")
        assert server.counts == {"unread create": events.MAX_TOLD}
        bench.recorder.event(OBJECTS[1], "Normal", "Seen", "x")
        bench.stop.set()
        await bench.task
        assert server.counts == {"unread create": events.MAX_TOLD + 1}

    run_virtual(main)


def test_series_are_never_postponed_as_they_are_due_by_the_clock() -> None:
    async def main(clock: VirtualClock) -> None:
        server = Postponing(clock)
        recorder = EventRecorder(clock, Client(server), "scheduler", rng=Rng(1), api="events.k8s.io/v1")
        recorder.event(OBJECTS[0], "Normal", "Seen", "x")
        assert (server.settle, dict(server.counts)) == ([], {"unread create": 1})

    run_virtual(main)


def test_an_event_that_cannot_be_recorded_leaves_the_others_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock, server := Postponing(clock), _counting(clock))
        for obj in ({"metadata": {"name": "a"}}, {"kind": "Pod", "name": "a", "uid": ["no", "text"]}, OBJECTS[0]):
            bench.recorder.event(obj, "Normal", "Seen", "x")
        assert server.asked() == {"unread create": 1}
        bench.stop.set()
        await bench.task

    run_virtual(main)
    assert [record.getMessage() for record in caplog.records] == ["Event not recorded"] * 2
