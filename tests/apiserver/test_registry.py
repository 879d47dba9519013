from __future__ import annotations

import pytest

from holokube.apiserver.options import ListOptions
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.kube.errors import BadRequest, Expired, Invalid, NotFound, Timeout
from holokube.store.store import Store
from tests.apiserver.worlds import World, in_world
from tests.builders import config_map, pod


def test_an_unknown_resource_is_not_found() -> None:
    async def body(world: World) -> None:
        with pytest.raises(NotFound, match="could not find the requested resource"):
            world.served("frobs")

    in_world(body)


def test_lists_are_in_order_of_namespace_and_name() -> None:
    async def body(world: World) -> None:
        for name, namespace in (("b", "kube-system"), ("c", "default"), ("a", "default")):
            await world.create("configmaps", config_map(name, namespace))
        assert world.names("configmaps") == ["a", "c", "b"]
        assert world.names("configmaps", namespace="default") == ["a", "c"]

    in_world(body)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"labelSelector": "app=x"}, ["a", "c"]),
        ({"labelSelector": "app in (y, z)"}, ["b"]),
        ({"labelSelector": "!app"}, ["d"]),
        ({"fieldSelector": "metadata.name=b"}, ["b"]),
        ({"fieldSelector": "metadata.name!=b", "labelSelector": "app"}, ["a", "c"]),
        ({"fieldSelector": "metadata.name=b", "labelSelector": "app=x"}, []),
    ],
)
def test_selectors_choose(query: dict[str, str], expected: list[str]) -> None:
    async def body(world: World) -> None:
        for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {"app": "x"}), ("d", {})):
            await world.create("configmaps", config_map(name, labels=labels))
        assert world.names("configmaps", namespace="default", **query) == expected

    in_world(body)


def test_pods_can_be_listed_by_node() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod("here", node="n"))
        await world.create("pods", pod("nowhere"))
        assert world.names("pods", fieldSelector="spec.nodeName=n") == ["here"]

    in_world(body)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"labelSelector": "a in"}, BadRequest),
        ({"fieldSelector": "frob=1"}, BadRequest),
        ({"limit": "many"}, BadRequest),
        ({"continue": "!!"}, BadRequest),
        ({"resourceVersion": "new"}, BadRequest),
        ({"resourceVersion": "99999", "resourceVersionMatch": "NotOlderThan"}, Timeout),
        ({"resourceVersionMatch": "Exact"}, Invalid),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, Invalid),
        ({"resourceVersion": "1", "resourceVersionMatch": "Roughly"}, Invalid),
        ({"sendInitialEvents": "true"}, Invalid),
    ],
)
def test_bad_list_options_are_refused(query: dict[str, str], problem: type[Exception]) -> None:
    async def body(world: World) -> None:
        with pytest.raises(problem):
            world.names("configmaps", **query)

    in_world(body)


def test_pages_show_one_moment_whatever_is_written_in_between() -> None:
    async def body(world: World) -> None:
        for index in range(10):
            await world.create("configmaps", config_map(f"c{index}"))
        served, seen, token = world.served("configmaps"), [], ""
        while True:
            options = ListOptions.parse({"limit": "3", "continue": token}, watch=False)
            page = world.registry.list(served, "default", options)
            seen += [stored.obj["metadata"]["name"] for stored in page.items]
            await world.create("configmaps", config_map(f"late{len(seen)}"))
            if len(seen) < 10:
                await world.delete("configmaps", f"c{len(seen)}")
            token = page.continue_
            if not token:
                break
        assert seen == [f"c{index}" for index in range(10)]

    in_world(body)


def test_the_remaining_count_is_told_unless_a_selector_is_used() -> None:
    async def body(world: World) -> None:
        for index in range(5):
            await world.create("configmaps", config_map(f"c{index}", labels={"x": "y"}))
        served = world.served("configmaps")
        plain = world.registry.list(served, "default", ListOptions.parse({"limit": "2"}, watch=False))
        chosen = world.registry.list(
            served, "default", ListOptions.parse({"limit": "2", "labelSelector": "x=y"}, watch=False)
        )
        assert (plain.remaining, chosen.remaining) == (3, None)
        assert chosen.continue_

    in_world(body)


def test_an_old_token_expires_but_offers_to_go_on() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, Store(history=3))
        await world.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        for index in range(4):
            await world.create("configmaps", config_map(f"c{index}"))
        served = world.served("configmaps")
        first = world.registry.list(served, "default", ListOptions.parse({"limit": "2"}, watch=False))
        for index in range(5):
            await world.create("configmaps", config_map(f"d{index}"))
        with pytest.raises(Expired) as caught:
            world.registry.list(served, "default", ListOptions.parse({"continue": first.continue_}, watch=False))
        token = caught.value.to_status()["metadata"]["continue"]
        rest = world.registry.list(served, "default", ListOptions.parse({"continue": token}, watch=False))
        assert [stored.obj["metadata"]["name"] for stored in rest.items][:3] == ["c2", "c3", "d0"]

    run_virtual(main)


def test_an_exact_version_shows_the_past() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map("a"))
        then = str(world.store.revision)
        await world.delete("configmaps", "a")
        query = {"resourceVersion": then, "resourceVersionMatch": "Exact"}
        assert world.names("configmaps", namespace="default", **query) == ["a"]
        assert world.names("configmaps", namespace="default") == []

    in_world(body)


def test_events_are_the_same_objects_in_both_groups() -> None:
    async def body(world: World) -> None:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "message": "hello",
        }
        await world.create("events", event)
        shown = world.get("events", "e", "events.k8s.io")
        assert (shown["apiVersion"], shown["note"], shown["regarding"]["name"]) == ("events.k8s.io/v1", "hello", "p")

    in_world(body)
