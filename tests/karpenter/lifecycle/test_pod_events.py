"""What those who note the steps of pods do not hear of is nothing that they would have noted."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.client.audience import Listener, aspects_changed
from holokube.client.client import Client
from holokube.client.resources import PODS
from holokube.karpenter.lifecycle.pod_events import PodEvents, matters
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.state.pod_times import PodTimes
from holokube.karpenter.state.pod_watch import PodWatch
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.sources import Change
from tests.runtime.fakes import FakeTransport


@st.composite
def pods(draw: st.DrawFn) -> JsonObject:
    meta: JsonObject = {"name": "p", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-05T00:00:00Z"}
    if draw(st.booleans()):
        meta["deletionTimestamp"] = "2026-01-05T08:30:00Z"
    spec: JsonObject = {"containers": [{"name": "c"}]}
    if draw(st.booleans()):
        spec["nodeName"] = "n"
    phase = draw(st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]))
    pod: JsonObject = {"metadata": meta, "spec": spec}
    if phase or draw(st.booleans()):
        pod["status"] = {"phase": phase} if phase else {}
    return pod


@st.composite
def changes(draw: st.DrawFn) -> tuple[JsonObject, JsonObject]:
    """Two states of a pod; what a write leaves alone is the very same object."""
    old, new = draw(pods()), draw(pods())
    for part in ("spec", "status"):
        if part in old and old[part] == new.get(part):
            new[part] = old[part]
    return old, new


class _Notes:
    """Counts what is noted, in place of metrics."""

    def __init__(self) -> None:
        self.count = 0

    def pod_bound(self, *_seconds: float | None) -> None:
        self.count += 1

    def pod_started(self, *_seconds: float) -> None:
        self.count += 1


def _informers() -> tuple[VirtualClock, Client, InformerSet]:
    clock = VirtualClock()
    client = Client(FakeTransport(clock))
    return clock, client, InformerSet(clock, client, Rng("pods"))


def _listeners(informers: InformerSet) -> list[Listener]:
    return informers.get(PODS)._audience._listeners


@given(changes())
def test_each_change_of_a_pod_that_matters_to_its_claim_is_heard(change: tuple[JsonObject, JsonObject]) -> None:
    old, new = change
    clock, client, informers = _informers()
    PodEvents(clock, client, informers, cast("CloudProvider", None))._controller._sources[0].start(lambda _key: None)
    (listener,) = _listeners(informers)
    if matters(Change(old, new)):
        assert listener in informers.get(PODS)._audience.of(aspects_changed(old, new), new)
    assert not matters(Change(None, new)) and not matters(Change(old, None))


@given(changes())
def test_each_change_of_a_pod_that_is_counted_is_heard(change: tuple[JsonObject, JsonObject]) -> None:
    old, new = change
    clock, _, informers = _informers()
    notes = _Notes()
    watch = PodWatch(clock, informers.get(PODS), cast("Any", notes), PodTimes())
    (listener,) = _listeners(informers)
    watch._on_pod("ADDED", None, new)
    watch._on_pod("DELETED", old, None)
    assert not notes.count
    watch._on_pod("MODIFIED", old, new)
    if notes.count:
        assert listener in informers.get(PODS)._audience.of(aspects_changed(old, new), new)
