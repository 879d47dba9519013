"""Which events are written."""

from __future__ import annotations

from holokube.base.clock import VirtualClock
from holokube.client.resources import EVENTS, PODS
from holokube.cluster_autoscaler.loop.event_correlation import AutoscalerCorrelator, event_recorder
from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.kube.types import JsonObject
from holokube.runtime.event_occurrence import Occurrence
from holokube.runtime.stop import StopSignal
from holokube.testing import Cluster
from tests.builders import pod

STATUS = ("kube-system", "cluster-autoscaler-status")


def event(number: int, reason: str = "NotTriggerScaleUp", message: str = "no", kind: str = "Pod", name: str = "p",
          namespace: str = "default") -> JsonObject:
    return {
        "metadata": {"name": f"{name}.{number}", "namespace": namespace}, "source": {"component": "ca"},
        "involvedObject": {"kind": kind, "namespace": namespace, "name": name, "uid": name, "apiVersion": "v1"},
        "reason": reason, "message": message, "type": "Normal", "count": 1, "firstTimestamp": "", "lastTimestamp": "",
    }  # fmt: skip


def test_the_same_reason_is_told_once_in_five_minutes_whatever_the_message() -> None:
    clock = VirtualClock()
    correlator = AutoscalerCorrelator(clock, STATUS)
    assert correlator.correlate(event(1)) is not None
    assert correlator.correlate(event(2, message="still no")) is None
    assert correlator.correlate(event(3, reason="TriggeredScaleUp")) is not None
    assert correlator.correlate(event(4, name="q")) is not None
    clock.advance(299)
    assert correlator.correlate(event(5)) is None
    clock.advance(1)
    again = correlator.correlate(event(6))
    assert again is not None and again.patch is not None and again.patch["count"] == 3, "those between were counted"


def test_about_the_whole_cluster_every_message_is_told() -> None:
    correlator = AutoscalerCorrelator(VirtualClock(), STATUS)
    for number in range(8):
        told = correlator.correlate(event(number, "ScaledUpGroup", f"to {number}", "ConfigMap", STATUS[1], STATUS[0]))
        assert told is not None
    assert correlator.correlate(event(9, "ScaledUpGroup", "to 1", "ConfigMap", STATUS[1], STATUS[0])) is None
    assert correlator.due_at_s() is None and correlator.due(final=True) == []


def test_of_a_flood_of_pods_those_are_told_that_are_not_known_to_have_been() -> None:
    correlator = AutoscalerCorrelator(VirtualClock(), STATUS, counted_entries=3, said_entries=5)

    def flood(names: str) -> list[Occurrence]:
        return [Occurrence.of_core(event(number, name=name)) for number, name in enumerate(names)]

    assert correlator.count_flood_at(flood("abcd"), 0.0) == 4
    assert correlator.count_flood_at(flood("abcd"), 10.0) == 0, "they are too many to be counted, yet not to be known"
    assert correlator.count_flood_at(flood("abcdef"), 20.0) == 2
    assert correlator.count_flood_at(flood("abcdef"), 30.0) == 6, "these are too many to be known"
    assert correlator.correlate(event(9, name="f")) is None


def test_duplicates_are_recorded_if_that_is_wanted() -> None:
    for wanted, count in ((False, 1), (True, 3)):
        with Cluster() as cluster:

            async def main(wanted: bool = wanted, cluster: Cluster = cluster) -> int:
                options = AutoscalerOptions(record_duplicated_events=wanted)
                recorder = event_recorder(cluster.clock, cluster.client, options, cluster.rng.fork("events"))
                made = await cluster.client.create(PODS, pod())
                for _ in range(3):
                    recorder.event(made, "Normal", "NotTriggerScaleUp", "no")
                stop = StopSignal()
                stop.set()
                await recorder.run(stop)
                (written,) = (await cluster.client.list(EVENTS, "default")).items
                return int(written["count"])

            assert cluster.run(main()) == count
