from __future__ import annotations

import asyncio

import pytest

from holokube.apiserver.options import ListOptions
from holokube.apiserver.watching import BOOKMARK_EVERY_S, WatchStream
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.store.store import Store
from tests.apiserver.worlds import World, in_world
from tests.builders import config_map


def watch(world: World, **query: str) -> WatchStream:
    options = ListOptions.parse(query, watch=True)
    return world.registry.watch(world.served("configmaps"), "default", options)


def seen(stream: WatchStream) -> list[tuple[str, str]]:
    return [(event.type, event.stored.obj["metadata"].get("name", "")) for event in stream.take_ready()]


def test_without_a_version_it_begins_with_what_is_there() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map("a"))
        stream = watch(world)
        await world.create("configmaps", config_map("b"))
        assert seen(stream) == [("ADDED", "a"), ("ADDED", "b")]

    in_world(body)


def test_from_a_version_it_shows_what_came_after() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map("a"))
        version = str(world.store.revision)
        await world.create("configmaps", config_map("b"))
        await world.delete("configmaps", "a")
        assert seen(watch(world, resourceVersion=version)) == [("ADDED", "b"), ("DELETED", "a")]

    in_world(body)


def test_from_a_version_that_is_yet_to_come_it_shows_what_comes_after_that() -> None:
    async def body(world: World) -> None:
        now = world.store.revision
        streams = [watch(world, resourceVersion=str(now + ahead)) for ahead in (0, 2, 9)]
        for name in "abc":
            await world.create("configmaps", config_map(name))
        assert [[name for _, name in seen(stream)] for stream in streams] == [["a", "b", "c"], ["c"], []]

    in_world(body)


def test_a_selector_turns_changes_into_coming_and_going() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map("a", labels={"on": "no"}))
        stream = watch(world, labelSelector="on=yes", resourceVersion=str(world.store.revision))
        for value in ("yes", "yes", "no", "no"):
            data = {value: str(world.store.revision)}
            await world.patch("configmaps", "a", {"metadata": {"labels": {"on": value}}, "data": data})
        assert seen(stream) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]

    in_world(body)


def test_an_object_that_leaves_a_selector_is_shown_as_it_last_matched() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map("a", labels={"on": "yes"}))
        stream = watch(world, labelSelector="on=yes", resourceVersion=str(world.store.revision))
        await world.patch("configmaps", "a", {"metadata": {"labels": {"on": "no"}}})
        event = stream.take_ready()[0]
        assert event.stored.obj["metadata"]["labels"] == {"on": "yes"}
        assert event.stored.obj["metadata"]["resourceVersion"] == str(world.store.revision)

    in_world(body)


def test_streamed_initial_events_end_with_a_marked_bookmark() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map("a"))
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        events = watch(world, **query).take_ready()
        assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
        assert events[1].stored.obj["metadata"] == {
            "resourceVersion": str(world.store.revision),
            "annotations": {"k8s.io/initial-events-end": "true"},
        }

    in_world(body)


def test_bookmarks_come_now_and_then_and_only_with_news() -> None:
    async def body(world: World) -> None:
        version = str(world.store.revision)
        stream = watch(world, allowWatchBookmarks="true", resourceVersion=version, timeoutSeconds="300")
        await world.create("configmaps", config_map("elsewhere", "kube-system"))
        batch = await stream.next_batch()
        assert batch is not None
        assert [event.type for event in batch] == ["BOOKMARK"]
        assert world.clock.monotonic() >= BOOKMARK_EVERY_S
        assert await stream.next_batch() is None

    in_world(body)


def test_a_watch_ends_after_its_time() -> None:
    async def body(world: World) -> None:
        stream = watch(world, timeoutSeconds="7", resourceVersion=str(world.store.revision))
        assert await stream.next_batch() is None
        assert world.clock.monotonic() == pytest.approx(7)

    in_world(body)


def test_a_version_that_left_the_history_is_a_410() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, Store(history=5))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        await world.create("namespaces", namespace)
        for index in range(10):
            await world.create("configmaps", config_map(f"c{index}"))
        stream = watch(world, resourceVersion="2")
        events = stream.take_ready()
        assert [(event.type, event.stored.obj["code"]) for event in events] == [("ERROR", 410)]
        assert await stream.next_batch() is None

    run_virtual(main)


def test_a_reader_that_never_reads_is_cut_off_with_a_410() -> None:
    async def body(world: World) -> None:
        stream = watch(world, resourceVersion=str(world.store.revision))
        await world.create("configmaps", config_map("a"))
        for index in range(10_050):
            world.store.update("configmaps", "default/a", {"metadata": {"name": "a", "n": index}})
        assert [(e.type, e.stored.obj["code"]) for e in stream.take_ready()] == [("ERROR", 410)]

    in_world(body)


def test_closing_wakes_whoever_waits() -> None:
    async def body(world: World) -> None:
        stream = watch(world, resourceVersion=str(world.store.revision))
        reader = asyncio.create_task(stream.next_batch())
        await world.clock.sleep(1)
        stream.close()
        assert await reader is None

    in_world(body)


def test_a_reader_that_is_cancelled_ends_even_when_an_event_comes_at_the_same_moment() -> None:
    async def body(world: World) -> None:
        reader = asyncio.create_task(_read_for_ever(watch(world, allowWatchBookmarks="true")))
        await asyncio.sleep(0)
        await world.create("configmaps", config_map("a"))
        reader.cancel()
        await asyncio.wait({reader}, timeout=1.0)
        assert reader.cancelled()

    in_world(body)


async def _read_for_ever(stream: WatchStream) -> None:
    while await stream.next_batch() is not None:
        pass
