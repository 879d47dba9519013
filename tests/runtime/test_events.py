from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.errors import TransportError
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.resources import Resource
from holokube.client.transport import Call
from holokube.kube.errors import Forbidden, ServiceUnavailable
from holokube.runtime.event_occurrence import reference_of
from holokube.runtime.events import EventRecorder, _reference_to, object_reference
from holokube.runtime.metrics import Metrics
from holokube.runtime.stop import StopSignal
from tests.runtime.fakes import FakeTransport

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop", "uid": "u1", "resourceVersion": "7"},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u2"}}


class Bench:
    """A recorder at work on a fake API server."""

    def __init__(
        self, clock: VirtualClock, transport: Any = None, component: str = "scheduler", **options: Any
    ) -> None:
        self.clock = clock
        self.server = FakeTransport(clock)
        self.metrics = Metrics()
        self.recorder = EventRecorder(
            clock, Client(transport or self.server), component, rng=Rng(1), metrics=self.metrics, **options
        )
        self.stop = StopSignal()
        self.task = asyncio.create_task(self.recorder.run(self.stop))

    def stored(self) -> list[dict[str, Any]]:
        return list(self.server.objects.values())

    def dropped(self, cause: str) -> float | None:
        labels = {"component": "scheduler", "cause": cause}
        return self.metrics.registry.get_sample_value("holokube_events_dropped_total", labels)

    async def end(self) -> None:
        self.stop.set()
        await self.task


def test_an_event_looks_like_one_of_client_go() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock, host="box")
        await clock.sleep(1.5)
        bench.recorder.event(POD, "Normal", "Scheduled", "assigned to n1", annotations={"a": "b"})
        await bench.end()
        (event,) = bench.stored()
        meta = event.pop("metadata")
        name, _, stamp = meta["name"].rpartition(".")
        assert (name, meta["namespace"], meta["annotations"]) == ("web-0", "shop", {"a": "b"})
        assert int(stamp, 16) // 1000 == 1767225601_500000
        assert event == {
            "apiVersion": "v1", "kind": "Event",
            "reason": "Scheduled", "message": "assigned to n1", "type": "Normal",
            "involvedObject": {
                "kind": "Pod", "namespace": "shop", "name": "web-0", "uid": "u1", "apiVersion": "v1",
                "resourceVersion": "7",
            },
            "source": {"component": "scheduler", "host": "box"},
            "firstTimestamp": "2026-01-01T00:00:01Z", "lastTimestamp": "2026-01-01T00:00:01Z", "count": 1,
            "reportingComponent": "scheduler", "reportingInstance": "box",
        }  # fmt: skip

    run_virtual(main)


def test_the_same_event_is_patched_and_comes_back_when_it_has_expired() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock)
        for _ in range(3):
            bench.recorder.event(NODE, "Warning", "DiskFull", "no space")
            await clock.sleep(10)
        (event,) = bench.stored()
        assert event["count"] == 3
        assert (event["firstTimestamp"][-3:], event["lastTimestamp"][-3:]) == ("00Z", "20Z")
        assert event["metadata"]["namespace"] == "default"
        bench.server.objects.clear()
        bench.recorder.event(NODE, "Warning", "DiskFull", "no space")
        await bench.end()
        (again,) = bench.stored()
        assert (again["count"], again["metadata"]["name"]) == (4, event["metadata"]["name"])

    run_virtual(main)


def test_events_of_one_virtual_instant_get_different_names_even_from_twin_recorders() -> None:
    async def main(clock: VirtualClock) -> None:
        server = FakeTransport(clock)
        twins = [EventRecorder(clock, Client(server), "twin", rng=Rng(n)) for n in range(2)]
        for n in range(5):
            for number, twin in enumerate(twins):
                twin.event(POD, "Normal", f"Reason{n}", f"from {number}")
        stop = StopSignal()
        stop.set()
        for twin in twins:
            await twin.run(stop)
        assert len(server.objects) == 10
        # Counting goes on under the name that was free.
        twins[1].event(POD, "Normal", "Reason0", "from 1")
        await twins[1].run(stop)
        assert [e["message"] for e in server.objects.values() if e["count"] == 2] == ["from 1"]

    run_virtual(main)


def test_a_name_that_an_event_may_not_have_becomes_a_uuid() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock)
        meta = {"name": "system:node"}
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta}
        bench.recorder.event(role, "Normal", "Seen", "odd name")
        await bench.end()
        (event,) = bench.stored()
        assert len(event["metadata"]["name"].split("-")) == 5

    run_virtual(main)


def test_a_burst_of_dropped_events_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock, max_queued=2)
        for n in range(50):
            bench.recorder.event(POD, "Normal", f"R{n}", "full")
        await bench.end()
        assert bench.dropped("queue_full") == 48

    run_virtual(main)
    assert [record.getMessage() for record in caplog.records].count("Too many events are queued, some are dropped") == 1


def test_the_caller_never_sees_an_error() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock, max_queued=2)
        bench.recorder.event({}, "Normal", "A", "no object")
        bench.recorder.event({"metadata": {"name": "x"}}, "Normal", "A", "no kind")
        bench.recorder.event(POD, "Error", "A", "no such type")
        bench.recorder.event(None, "Normal", "A", "nothing")  # type: ignore[arg-type]  # what a bug would pass
        assert bench.recorder.queued == 0
        for n in range(5):
            bench.recorder.event(POD, "Normal", f"R{n}", "full")
        await bench.end()
        assert [event["reason"] for event in bench.stored()] == ["R0", "R1"]
        assert bench.dropped("queue_full") == 3

    run_virtual(main)


def test_events_are_written_in_order_when_the_server_comes_back() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock)
        bench.server.fail = lambda call: TransportError("down")
        for n in range(4):
            bench.recorder.event(POD, "Normal", f"R{n}", "x")
        await clock.sleep(35)
        assert bench.stored() == []
        bench.server.fail = lambda call: None
        await clock.sleep(11)
        assert [event["reason"] for event in bench.stored()] == ["R0", "R1", "R2", "R3"]
        await bench.end()

    run_virtual(main)


def test_an_event_is_given_up_after_twelve_tries_and_at_once_when_refused() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock)
        tries: list[str] = []

        def fail(call: Call) -> Exception | None:
            tries.append(call.body["reason"])
            return {"Down": ServiceUnavailable("down"), "Bad": Forbidden("no")}.get(call.body["reason"])

        bench.server.fail = fail
        for reason in ("Down", "Bad", "Good"):
            bench.recorder.event(POD, "Normal", reason, "x")
        await clock.sleep(150)
        assert (tries.count("Down"), tries.count("Bad"), tries.count("Good")) == (12, 1, 1)
        assert (bench.dropped("gave_up"), bench.dropped("rejected")) == (1, 1)
        assert [event["reason"] for event in bench.stored()] == ["Good"]
        await bench.end()

    run_virtual(main)


def test_a_lost_answer_does_not_make_a_second_event() -> None:
    async def main(clock: VirtualClock) -> None:
        server = FakeTransport(clock)
        faulty = FaultyTransport(clock, server, Rng(3), Faults(timeout_after=1.0, answer_timeout_s=2))
        bench = Bench(clock, transport=faulty)
        bench.recorder.event(POD, "Normal", "Once", "x")
        await clock.sleep(1)
        faulty.faults = Faults()
        await clock.sleep(60)
        await bench.end()
        assert [event["reason"] for event in server.objects.values()] == ["Once"]

    run_virtual(main)


def test_the_stop_writes_what_is_queued_but_not_forever() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock)
        for n in range(20):
            bench.recorder.event(POD, "Normal", f"R{n}", "x")
        await bench.end()
        assert (len(bench.stored()), clock.monotonic()) == (20, 0)
        stuck = Bench(clock)
        stuck.server.latency_s = lambda: 1.0
        for n in range(20):
            stuck.recorder.event(POD, "Normal", f"R{n}", "x")
        await stuck.end()
        assert clock.monotonic() == 5
        assert len(stuck.stored()) in (2, 3)
        assert stuck.recorder.queued == 0

    run_virtual(main)


def test_a_chatty_object_is_throttled() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock)
        for n in range(100):
            bench.recorder.event(POD, "Warning", "BackOff", f"attempt {n}")
        await bench.end()
        assert bench.server.counts["create"] + bench.server.counts["patch"] == 25
        assert len(bench.stored()) == 10
        assert bench.dropped("spam") == 75

    run_virtual(main)


def test_the_new_api_writes_series() -> None:
    async def main(clock: VirtualClock) -> None:
        bench = Bench(clock, component="karpenter.sh", api="events.k8s.io/v1", host="box")
        for _ in range(5):
            bench.recorder.event(POD, "Normal", "Nominated", "ü" * 2000, related=NODE)
            await clock.sleep(1)
        (event,) = bench.stored()
        assert event["series"] == {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
        assert event["regarding"]["name"] == "web-0"
        assert event["related"]["name"] == "n1"
        assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"
        assert event["reportingController"] == "karpenter.sh"
        assert event["reportingInstance"] == "karpenter.sh-box"
        assert event["action"] == "Nominated"
        assert event["note"] == "ü" * 512
        assert "count" not in event
        await clock.sleep(400)
        (event,) = bench.stored()
        assert event["series"]["count"] == 5
        await bench.end()

    run_virtual(main)


def test_a_reference_is_taken_as_it_is() -> None:
    reference = {"kind": "Pod", "name": "a", "namespace": "b", "fieldPath": "spec.containers{web}"}
    assert object_reference(reference) == reference
    with pytest.raises(ValueError, match="needs kind and name"):
        object_reference({"name": "a"})


class Unread(FakeTransport):
    """Nobody reads its events, unless told otherwise."""

    is_read = False

    def discard(self, verb: str, resource: Resource) -> bool:
        if not self.is_read:
            self.counts[f"unread {verb} {resource.plural}"] += 1
        return not self.is_read


def test_where_nobody_reads_events_they_are_counted_and_never_made_however_many() -> None:
    async def main(clock: VirtualClock) -> None:
        server = Unread(clock)
        bench = Bench(clock, transport=server, max_queued=5)
        for n in range(20):
            bench.recorder.event({"kind": "Pod", "name": f"web-{n}", "namespace": "shop"}, "Normal", "Seen", "x")
        bench.recorder.event(NODE, "Normal", "Seen", "x")
        bench.recorder.event(NODE, "Normal", "Seen", "x")
        assert (bench.recorder.queued, bench.dropped("queue_full")) == (0, None)
        assert server.counts == {"unread create events": 21, "unread patch events": 1}
        # From here on somebody reads them, and what was only counted before counts.
        server.is_read = True
        bench.recorder.event(NODE, "Normal", "Seen", "x")
        await bench.end()
        (event,) = server.objects.values()
        assert event["count"] == 3

    run_virtual(main)


def test_series_that_nobody_reads_end_as_others_do() -> None:
    async def main(clock: VirtualClock) -> None:
        server = Unread(clock)
        bench = Bench(clock, transport=server, api="events.k8s.io/v1")
        for _ in range(5):
            bench.recorder.event(POD, "Normal", "Nominated", "soon")
            await clock.sleep(1)
        assert server.counts == {"unread create events": 1, "unread patch events": 1}
        await clock.sleep(400)
        assert server.counts == {"unread create events": 1, "unread patch events": 2}
        await bench.end()

    run_virtual(main)


def test_a_repeat_that_waits_behind_its_first_goes_where_that_one_went() -> None:
    async def main(clock: VirtualClock) -> None:
        server = FakeTransport(clock)
        twins = [EventRecorder(clock, Client(server), "twin", rng=Rng(n)) for n in range(2)]
        for twin in twins:
            twin.event(POD, "Normal", "Seen", f"by {twins.index(twin)}")
            twin.event(POD, "Normal", "Seen", f"by {twins.index(twin)}")
        stop = StopSignal()
        stop.set()
        for twin in twins:
            await twin.run(stop)
        assert sorted((e["message"], e["count"]) for e in server.objects.values()) == [("by 0", 2), ("by 1", 2)]

    run_virtual(main)


WORDS = st.sampled_from([None, "", "a"])


def some_of(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, WORDS))


@given(
    some_of("kind", "apiVersion", "name", "namespace", "uid", "resourceVersion", "fieldPath"),
    st.one_of(st.just({}), some_of("name", "namespace", "uid", "resourceVersion").map(lambda meta: {"metadata": meta})),
)
def test_what_tells_an_object_from_others_is_what_a_reference_to_it_says(
    fields: dict[str, Any], metadata: dict[str, Any]
) -> None:
    def outcome(of: Callable[[dict[str, Any]], Any]) -> Any:
        try:
            return of({**fields, **metadata})
        except ValueError as problem:
            return str(problem)

    assert outcome(_reference_to) == outcome(lambda obj: reference_of(object_reference(obj)))
