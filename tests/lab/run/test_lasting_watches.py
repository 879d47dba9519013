"""A watch in process lasts on where it would be ended and begun anew; nobody who follows it sees a difference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.apiserver.watching import WatchStream
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from holokube.client.transport import Call, Transport, WatchEvent
from holokube.kube.types import JsonObject
from holokube.lab.run.transport import ApiTrouble, LabTransport, Trouble
from holokube.store.store import Store
from tests.builders import config_map

WIDGETS = Resource("lab.example.com", "v1", "widgets", "Widget", namespaced=True)
Told = list[tuple[float, EventType, str, str]]


class Plain:
    """A transport that cannot have a watch last on."""

    def __init__(self, inner: InProcessTransport) -> None:
        self.inner = inner
        self.call, self.request, self.close = inner.call, inner.request, inner.close

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self.inner.watch(call)


def _version(obj: JsonObject | None) -> str:
    return str(obj["metadata"]["resourceVersion"]) if obj is not None else ""


class World:
    """A server, and a transport by which every watch is counted."""

    def __init__(self, clock: VirtualClock, *, lasts: bool) -> None:
        self.clock = clock
        self.registry = Registry(clock, Rng("lasting"), Store())
        self.inner = InProcessTransport(self.registry)
        self.calls, self.trouble = defaultdict[str, int](int), ApiTrouble(Rng(1))
        inner: Transport = self.inner if lasts else Plain(self.inner)
        self.client = Client(LabTransport(inner, self.calls, self.trouble))
        self.told: Told = []
        self.opened = 0
        opens = self.inner.open_stream

        def open_stream(call: Call) -> WatchStream:
            self.opened += 1
            return opens(call)

        self.inner.open_stream = open_stream  # type: ignore[method-assign] - to count

    def follow(self, resource: Resource) -> Informer:
        informer = Informer(self.clock, self.client, resource, rng=Rng("informer"))

        def on_event(type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
            self.told.append((self.clock.monotonic(), type, _version(old), _version(new)))

        informer.add_handler(on_event)
        return informer


def _seen(steps: list[tuple[int, str]], *, lasts: bool) -> tuple[Told, int, int, str, int]:
    found: list[Any] = []

    async def main(clock: VirtualClock) -> None:
        world = World(clock, lasts=lasts)
        await bootstrap(world.registry)
        informer = world.follow(CONFIG_MAPS)
        informer.start()
        await informer.synced()
        there: set[str] = set()
        for wait_s, name in steps:
            await clock.sleep(wait_s)
            if name in there:
                await world.client.delete(CONFIG_MAPS, name, "default")
                there.discard(name)
            else:
                await world.client.create(CONFIG_MAPS, config_map(name))
                there.add(name)
        await clock.sleep(2_000)
        found.extend((world.told, world.calls["watch"], world.calls["list"], informer.resource_version, world.opened))
        await informer.stop()

    run_virtual(main)
    told, watches, lists, version, opened = found
    return told, watches, lists, version, opened


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from((0, 1, 299, 300, 450, 600, 1_200)), st.sampled_from("abc")), max_size=8))
def test_an_informer_is_told_the_same_at_the_same_times_and_as_many_watches_are_counted(
    steps: list[tuple[int, str]]
) -> None:
    *usual, opened = _seen(steps, lasts=False)
    *lasting, opened_once = _seen(steps, lasts=True)
    assert lasting == usual
    assert opened == usual[1] > opened_once == 1


def test_while_something_is_refused_a_watch_ends_and_begins_anew() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lasts=True)
        await bootstrap(world.registry)
        informer = world.follow(CONFIG_MAPS)
        informer.start()
        await informer.synced()
        await clock.sleep(1_000)
        assert world.opened == 1 and world.calls["watch"] > 1
        world.trouble.troubles.append(Trouble(1.0, 503, kinds=("nodes",)))
        before = world.calls["watch"]
        await clock.sleep(1_000)
        assert world.opened == 1 + world.calls["watch"] - before
        await informer.stop()

    run_virtual(main)


def _definition() -> JsonObject:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.lab.example.com"},
        "spec": {
            "group": "lab.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip


def test_a_watch_of_a_kind_that_is_not_served_any_more_ends() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lasts=True)
        await bootstrap(world.registry)
        await world.client.create(CUSTOM_RESOURCE_DEFINITIONS, _definition())
        await clock.sleep(10)
        informer = world.follow(WIDGETS)
        informer.start()
        await informer.synced()
        await clock.sleep(700)
        assert world.opened == 1
        await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.lab.example.com")
        await clock.sleep(700)
        assert world.opened > 1
        await informer.stop()

    run_virtual(main)


def test_a_transport_that_is_closed_ends_its_watches() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, lasts=True)
        await bootstrap(world.registry)
        assert world.client.transport.may_go_on()  # type: ignore[attr-defined] - not every transport has it
        await world.inner.close()
        before = world.calls["watch"]
        assert not world.client.transport.may_go_on()  # type: ignore[attr-defined] - not every transport has it
        assert world.calls["watch"] == before

    run_virtual(main)
