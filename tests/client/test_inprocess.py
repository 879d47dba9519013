from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

import pytest

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.base.clock import VirtualClock
from holokube.base.errors import TransportError
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.audience import EVERYTHING, LABELS, STATUS
from holokube.client.client import Client, PatchType
from holokube.client.discovery import Discovery
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.informer import Informer
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    Resource,
)
from holokube.client.transport import WatchEvent
from holokube.kube.errors import ApiError, Conflict, MethodNotAllowed, NotFound, ServiceUnavailable
from holokube.kube.types import JsonObject
from holokube.store.store import Store
from tests.apiserver.crds.steps import LAB, definition, widget
from tests.builders import config_map, deployment, node, pod

Body = Callable[[VirtualClock, Client], Awaitable[None]]


def in_cluster(body: Body) -> None:
    async def main(clock: VirtualClock) -> None:
        registry = Registry(clock, Rng("tests"), Store())
        await bootstrap(registry)
        async with Client(InProcessTransport(registry)) as client:
            await body(clock, client)

    run_virtual(main)


def test_every_verb_reaches_the_registry() -> None:
    async def body(_clock: VirtualClock, client: Client) -> None:
        created = await client.create(CONFIG_MAPS, config_map())
        assert await client.get(CONFIG_MAPS, "cm", "default") is created
        updated = await client.update(CONFIG_MAPS, {**created, "data": {"a": "2"}})
        addition = [{"op": "add", "path": "/data/b", "value": "3"}]
        patched = await client.patch(CONFIG_MAPS, "cm", addition, namespace="default", type=PatchType.JSON)
        assert patched["data"] == {"a": "2", "b": "3"}
        assert int(patched["metadata"]["resourceVersion"]) > int(updated["metadata"]["resourceVersion"])
        found = await client.list(CONFIG_MAPS, "default")
        assert [item["metadata"]["name"] for item in found.items] == ["cm"]
        await client.delete(CONFIG_MAPS, "cm", "default")
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "cm", "default")

    in_cluster(body)


def test_reads_hand_out_the_stored_object_without_copying() -> None:
    async def body(_clock: VirtualClock, client: Client) -> None:
        created = await client.create(CONFIG_MAPS, config_map())
        assert (await client.list(CONFIG_MAPS)).items[0] is created

    in_cluster(body)


def test_subresources_work_as_over_http() -> None:
    async def body(_clock: VirtualClock, client: Client) -> None:
        await client.create(NODES, node("n"))
        await client.create(PODS, pod())
        await client.bind("default", "p", "n")
        await client.patch_status(PODS, "p", {"status": {"phase": "Running"}}, namespace="default")
        assert (await client.get(PODS, "p", "default"))["status"]["phase"] == "Running"
        await client.evict("default", "p")
        await client.create(DEPLOYMENTS, deployment(replicas=2))
        scale = await client.get_scale(DEPLOYMENTS, "d", "default")
        assert scale["spec"]["replicas"] == 2
        text = await client.request("GET", "/api/v1/namespaces/default/pods/p/log")
        assert "simulated" in text

    in_cluster(body)


def test_a_verb_the_resource_does_not_know_is_refused() -> None:
    async def body(_clock: VirtualClock, client: Client) -> None:
        with pytest.raises(MethodNotAllowed):
            await client.request("DELETE", "/api/v1/componentstatuses")
        await client.create(NAMESPACES, {"metadata": {"name": "n"}})
        with pytest.raises(MethodNotAllowed):
            await client.create(NAMESPACES, {"metadata": {"name": "n"}}, name="n", subresource="status")

    in_cluster(body)


def test_the_status_of_a_resource_that_has_none_is_not_found() -> None:
    async def body(_clock: VirtualClock, client: Client) -> None:
        await client.create(CONFIG_MAPS, config_map())
        for _ in range(2):
            with pytest.raises(NotFound):
                await client.patch_status(CONFIG_MAPS, "cm", {"status": {"a": "b"}}, namespace="default")

    in_cluster(body)


def test_a_resource_that_changes_or_goes_is_not_remembered() -> None:
    widgets = Resource(LAB, "v1", "widgets", "Widget", True)

    async def body(_clock: VirtualClock, client: Client) -> None:
        for _ in range(2):
            with pytest.raises(NotFound):
                await client.create(widgets, widget())
            defined = await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
            assert (await client.create(widgets, widget(size=1)))["spec"] == {"size": 1}
            # The next version of the definition knows no such field.
            version = definition({"type": "object", "properties": {"spec": {"type": "object"}}})["spec"]["versions"]
            patch = {"spec": {"versions": version}}
            await client.patch(CUSTOM_RESOURCE_DEFINITIONS, defined["metadata"]["name"], patch)
            assert (await client.create(widgets, widget("other", size=1)))["spec"] == {}
            for name in ("w", "other"):
                await client.delete(widgets, name, "default")
            await client.delete(CUSTOM_RESOURCE_DEFINITIONS, defined["metadata"]["name"])

    in_cluster(body)


def test_discovery_finds_resources_by_short_name() -> None:
    async def body(_clock: VirtualClock, client: Client) -> None:
        assert (await Discovery(client).find("deploy")).plural == "deployments"
        assert (await client.request("GET", "/version"))["major"] == "1"

    in_cluster(body)


def test_closing_ends_open_watches_with_an_error_not_in_silence() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        async def read() -> None:
            async for _ in client.watch(CONFIG_MAPS, resource_version="0"):
                continue

        reader = asyncio.create_task(read())
        await clock.sleep(1)
        await client.close()
        with pytest.raises(TransportError):
            await reader
        with pytest.raises(TransportError, match="closed"):
            await client.list(CONFIG_MAPS)

    in_cluster(body)


@pytest.mark.parametrize("seed", range(12))
def test_an_informer_ends_up_with_the_servers_state_whatever_goes_wrong(seed: int) -> None:
    """The cache on top of a transport that fails in every way equals the store once the failures stop."""

    async def main(clock: VirtualClock) -> None:
        rng = Rng(f"informer-{seed}")
        registry = Registry(clock, rng.fork("server"), Store(history=40))
        await bootstrap(registry)
        honest = Client(InProcessTransport(registry))
        faults = Faults(
            too_many_requests=0.1, internal_error=0.1, timeout_before=0.05, list_too_old=0.2, watch_drop=0.1,
            watch_stale=0.1, event_delay=0.2, watch_lifetime_mean_s=20.0,
        )  # fmt: skip
        faulty = FaultyTransport(clock, InProcessTransport(registry), rng.fork("faults"), faults)
        informer = Informer(clock, Client(faulty), CONFIG_MAPS, page_size=3, rng=rng.fork("informer"))
        history: list[tuple[str, str]] = []
        alive: dict[str, str] = {}

        def on_event(type: str, old: dict[str, object] | None, new: dict[str, object] | None) -> None:
            obj = new or old
            assert obj is not None
            name = obj["metadata"]["name"]  # type: ignore[index]  # objects are plain JSON
            history.append((type, name))
            assert (name in alive) == (type != "ADDED"), f"seed {seed}: illegal {type} of {name} in {history[-5:]}"
            if type == "DELETED":
                del alive[name]
            else:
                alive[name] = type

        informer.add_handler(on_event)
        informer.start()
        for step in range(120):
            await clock.sleep(rng.uniform(0.0, 2.0))
            name = f"c{rng.randrange(6)}"
            try:
                if rng.random() < 0.3:
                    await honest.delete(CONFIG_MAPS, name, "default")
                else:
                    await honest.patch(CONFIG_MAPS, name, {"data": {"n": str(step)}}, namespace="default")
            except NotFound:
                await honest.create(CONFIG_MAPS, config_map(name))
            except (Conflict, ApiError) as problem:
                raise AssertionError(f"seed {seed}: {problem}") from problem
        faulty.faults = Faults()
        await clock.sleep(300)
        stored = {o["metadata"]["name"]: o for o in (await honest.list(CONFIG_MAPS)).items}
        cached = {o["metadata"]["name"]: o for o in informer.lister.list()}
        assert cached == stored, f"seed {seed}"
        assert set(alive) == set(stored), f"seed {seed}"
        await informer.stop()

    run_virtual(main)


class FullDisk:
    """A journal on a disk that has no room left."""

    revision = 1

    def rows(self) -> list[object]:
        return []

    def append(self, bucket: str, event: object) -> None:
        pass

    def commit(self) -> int:
        raise OSError(28, "No space left on device")

    def replace(self, revision: int, rows: object) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_write_that_cannot_be_made_durable_is_refused_and_not_shown() -> None:
    async def main(clock: VirtualClock) -> None:
        registry = Registry(clock, Rng("tests"), Store(journal=FullDisk(), commit_inline=True))  # type: ignore[arg-type]  # as much of a journal as is needed
        client = Client(InProcessTransport(registry))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}
        with pytest.raises(ServiceUnavailable, match="No space left"):
            await client.create(NAMESPACES, namespace)
        assert (await client.list(NAMESPACES)).items == []

    run_virtual(main)


def test_a_follower_is_told_at_once_of_all_that_was_written_before_its_turn() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        told: list[list[str]] = []

        def on_events(events: Sequence[WatchEvent]) -> None:
            told.append([f"{event.type} {event.object['metadata'].get('name', '')}".strip() for event in events])

        version = (await client.list(CONFIG_MAPS)).resource_version
        following = asyncio.create_task(
            client.follow(on_events, CONFIG_MAPS, resource_version=version, timeout_s=100)
        )
        await clock.sleep(1)
        await client.create(CONFIG_MAPS, config_map("a"))
        await client.create(CONFIG_MAPS, config_map("b"))
        await clock.sleep(1)
        await client.delete(CONFIG_MAPS, "a", "default")
        await following
        # How far it has come it needs to know only when it comes back.
        assert told == [["ADDED a", "ADDED b"], ["DELETED a"], ["BOOKMARK"]]
        assert clock.monotonic() == 100

    in_cluster(body)


def test_what_a_follower_raises_ends_its_watch() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        def on_events(_events: Sequence[WatchEvent]) -> None:
            raise ValueError("no more")

        following = asyncio.create_task(client.follow(on_events, CONFIG_MAPS))
        await clock.sleep(1)
        await client.create(CONFIG_MAPS, config_map("a"))
        with pytest.raises(ValueError, match="no more"):
            await following
        await client.create(CONFIG_MAPS, config_map("b"))
        await clock.sleep(1)

    in_cluster(body)


def test_a_follower_learns_that_the_client_was_closed() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        following = asyncio.create_task(client.follow(lambda _: None, CONFIG_MAPS, timeout_s=100))
        await clock.sleep(1)
        await client.close()
        with pytest.raises(TransportError, match="closed"):
            await following

    in_cluster(body)


def test_a_follower_is_told_in_its_own_context_not_in_the_writers() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        who: ContextVar[str] = ContextVar("who", default="nobody")
        told: list[str] = []

        async def follow() -> None:
            who.set("follower")
            await client.follow(lambda _: told.append(who.get()), CONFIG_MAPS, timeout_s=10)

        following = asyncio.create_task(follow())
        await clock.sleep(1)
        who.set("writer")
        await client.create(CONFIG_MAPS, config_map("a"))
        await following
        assert set(told) == {"follower"} and len(told) == 2

    in_cluster(body)


def _name(old: JsonObject | None, new: JsonObject | None) -> str:
    obj = new if new is not None else old
    assert obj is not None
    name: str = obj["metadata"]["name"]
    return name


def test_of_changes_that_come_together_each_listener_hears_its_own_before_the_next_one() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        informer = Informer(clock, client, PODS)
        told: list[str] = []

        def listen(who: str, heeds: int) -> None:
            def hear(type: str, old: JsonObject | None, new: JsonObject | None) -> None:
                told.append(f"{who}: {type} {_name(old, new)}")

            informer.listen(hear, heeds=heeds)

        listen("labels", LABELS)
        listen("status", STATUS)
        listen("all", EVERYTHING)
        informer.start()
        await informer.synced()
        await client.create(PODS, pod("a"))
        await client.create(PODS, pod("b"))
        await client.patch_status(PODS, "a", {"status": {"phase": "Running"}}, namespace="default")
        await client.patch(PODS, "b", {"metadata": {"labels": {"x": "y"}}}, namespace="default")
        await client.delete(PODS, "a", "default", grace_s=0)
        assert told == []
        await clock.sleep(1.0)
        # A server writes down that it is to go, and takes it out: the latter says it all.
        assert told == [
            "labels: ADDED a", "labels: ADDED b", "labels: MODIFIED b", "labels: DELETED a",
            "status: ADDED a", "status: ADDED b", "status: MODIFIED a", "status: DELETED a",
            "all: ADDED a", "all: ADDED b", "all: MODIFIED a", "all: MODIFIED b", "all: DELETED a",
        ]  # fmt: skip
        await informer.stop()

    in_cluster(body)


def test_who_leaves_in_the_midst_of_changes_hears_of_no_more_of_them() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        informer = Informer(clock, client, PODS)
        told: list[str] = []
        leave: list[Callable[[], None]] = []

        def first(type: str, old: JsonObject | None, new: JsonObject | None) -> None:
            told.append(f"first: {type} {_name(old, new)}")
            for one in leave:
                one()

        def second(type: str, old: JsonObject | None, new: JsonObject | None) -> None:
            told.append(f"second: {type} {_name(old, new)}")

        leave.append(informer.add_handler(first))
        leave.append(informer.add_handler(second))
        informer.start()
        await informer.synced()
        for name in "abc":
            await client.create(PODS, pod(name))
        await clock.sleep(1.0)
        assert told == ["first: ADDED a"]
        await informer.stop()

    in_cluster(body)


def test_who_comes_in_the_midst_of_changes_hears_of_each_object_once() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        informer = Informer(clock, client, PODS)
        told: list[str] = []

        def late(type: str, old: JsonObject | None, new: JsonObject | None) -> None:
            told.append(f"{type} {_name(old, new)}")

        def first(_type: str, old: JsonObject | None, new: JsonObject | None) -> None:
            if _name(old, new) == "b":
                informer.add_handler(late)

        informer.add_handler(first)
        informer.start()
        await informer.synced()
        for name in "abc":
            await client.create(PODS, pod(name))
        await clock.sleep(1.0)
        assert sorted(told) == ["ADDED a", "ADDED b", "ADDED c"]
        await informer.stop()

    in_cluster(body)


def test_who_asks_without_ever_waiting_gets_to_see_what_happened() -> None:
    async def body(clock: VirtualClock, client: Client) -> None:
        informer = Informer(clock, client, PODS)
        informer.start()
        await informer.synced()
        await client.create(PODS, pod("a"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert informer.lister.get("a", "default") is not None
        await informer.stop()

    in_cluster(body)
