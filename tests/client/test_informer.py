from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.audience import DELETION, EVERYTHING, FINALIZERS, SPEC, STATUS
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.faulty import Faults, FaultyTransport
from holokube.client.informer import Informer
from holokube.client.resources import PODS
from holokube.client.transport import Call, WatchEvent
from holokube.kube.errors import ApiError, Conflict, NotFound
from holokube.kube.selectors import LabelSelector

from .fake_api import FakeApi, pod

JsonObject = dict[str, Any]


class Recorder:
    """A handler that checks, event by event, that each object's history is one that can happen.

    An informer survives handlers that raise, so a broken rule is kept and raised when results are looked at.
    """

    def __init__(self) -> None:
        self._events: list[tuple[str, str]] = []
        self._last: dict[str, JsonObject] = {}
        self._broken: list[AssertionError] = []

    @property
    def events(self) -> list[tuple[str, str]]:
        if self._broken:
            raise self._broken[0]
        return self._events

    @property
    def last(self) -> dict[str, JsonObject]:
        if self._broken:
            raise self._broken[0]
        return self._last

    def __call__(self, type: str, old: JsonObject | None, new: JsonObject | None) -> None:
        try:
            self._check(type, old, new)
        except AssertionError as error:
            self._broken.append(error)

    def _check(self, type: str, old: JsonObject | None, new: JsonObject | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        key = object_key(obj)
        self._events.append((type, key))
        if type == "ADDED":
            assert old is None, f"{key}: ADDED with a state before"
            assert key not in self._last, f"{key}: ADDED twice"
        else:
            assert key in self._last, f"{key}: {type} of an object that is not there"
            assert old is self._last[key], f"{key}: {type} does not continue from the event before"
        if type == "MODIFIED":
            assert old is not None
            assert new is not None
            assert old["metadata"]["uid"] == new["metadata"]["uid"], f"{key}: MODIFIED into another object"
            assert int(old["metadata"]["resourceVersion"]) < int(new["metadata"]["resourceVersion"])
        if new is None:
            assert type == "DELETED"
            del self._last[key]
        else:
            self._last[key] = new


def with_api(
    test: Callable[[VirtualClock, FakeApi, Client], Awaitable[None]], **options: Any
) -> None:
    async def main(clock: VirtualClock) -> None:
        api = FakeApi(clock, **options)
        await test(clock, api, Client(api))

    run_virtual(main)


def names(objects: list[JsonObject]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)


def test_lists_in_pages_then_follows_the_watch() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        for i in range(25):
            api.create(pod(f"p{i:02}"))
        recorder = Recorder()
        informer = Informer(clock, client, PODS, page_size=10)
        informer.add_handler(recorder)
        informer.start()
        await informer.synced()
        assert [call.verb for call in api.calls][:3] == ["list"] * 3
        assert len(informer.lister) == 25
        first = informer.lister.get("p00", "default")
        assert first is not None
        assert (first["kind"], first["apiVersion"]) == ("Pod", "v1")

        await clock.sleep(1)
        api.update(pod("p00", node="a"))
        api.delete("default/p01")
        api.create(pod("p99"))
        await clock.sleep(1)
        assert recorder.events[25:] == [
            ("MODIFIED", "default/p00"), ("DELETED", "default/p01"), ("ADDED", "default/p99")
        ]  # fmt: skip
        assert recorder.last == {object_key(obj): obj for obj in informer.lister}
        assert informer.resource_version == str(api.revision)
        await informer.stop()

    with_api(test)


def test_a_page_that_is_too_old_makes_it_list_in_one_piece() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        for i in range(25):
            api.create(pod(f"p{i:02}"))

        async def compact_after_the_first_page() -> None:
            while not api.calls:
                await clock.sleep(0.0005)
            await clock.sleep(0.001)
            api.forget_history()

        compaction = asyncio.create_task(compact_after_the_first_page())
        informer = Informer(clock, client, PODS, page_size=10)
        informer.start()
        await informer.synced()
        await compaction
        assert len(informer.lister) == 25
        lists = [call.query for call in api.calls if call.verb == "list"]
        assert lists[-1].get("limit") is None
        assert any("continue" in query for query in lists[:-1])
        await informer.stop()

    with_api(test)


def test_after_an_expired_watch_the_difference_is_told_and_nothing_else() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        for name in ("same", "changed", "vanished", "replaced"):
            api.create(pod(name))
        recorder = Recorder()
        informer = Informer(clock, client, PODS)
        informer.add_handler(recorder)
        informer.start()
        await informer.synced()
        await clock.sleep(1)
        before = dict(recorder.last)
        recorder.events.clear()

        # All in one instant, so that the watch sees none of it before the history is gone.
        api.update(pod("changed", node="a"))
        api.delete("default/vanished")
        api.delete("default/replaced")
        api.create(pod("replaced"))
        api.create(pod("fresh"))
        api.forget_history()
        await clock.sleep(60)
        assert recorder.events == [
            ("DELETED", "default/vanished"),
            ("MODIFIED", "default/changed"),
            ("ADDED", "default/fresh"),
            ("DELETED", "default/replaced"),
            ("ADDED", "default/replaced"),
        ]
        assert recorder.last["default/same"] is before["default/same"]
        await informer.stop()

    with_api(test)


def test_bookmarks_carry_it_over_a_quiet_time() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        api.create(pod("other", namespace="elsewhere"))
        informer = Informer(clock, client, PODS, namespace="default")
        informer.start()
        await informer.synced()
        for i in range(20):
            api.update(pod("other", namespace="elsewhere", generation=i))
            await clock.sleep(40)
        # 800 s is longer than any one watch, and the window of five writes has long moved on.
        assert [call.verb for call in api.calls].count("list") == 1
        assert [call.verb for call in api.calls].count("watch") >= 2
        assert int(informer.resource_version) > 15
        await informer.stop()

    with_api(test, window=5)


def test_a_stream_of_initial_state_replaces_the_list() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        api.create(pod("a"))
        recorder = Recorder()
        informer = Informer(clock, client, PODS, watch_list=True)
        informer.add_handler(recorder)
        informer.start()
        await informer.synced()
        api.create(pod("b"))
        await clock.sleep(1)
        assert recorder.events == [("ADDED", "default/a"), ("ADDED", "default/b")]
        assert [call.verb for call in api.calls] == ["watch"]
        await informer.stop()

    with_api(test)


def test_a_server_that_cannot_stream_initial_state_is_listed() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        api.create(pod("a"))
        informer = Informer(clock, client, PODS, watch_list=True)
        informer.start()
        await informer.synced()
        await clock.sleep(1)
        assert [call.verb for call in api.calls] == ["watch", "list", "watch"]
        assert len(informer.lister) == 1
        await informer.stop()

    with_api(test, streams_initial_state=False)


def test_a_label_selector_lets_objects_come_and_go() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        api.create(pod("a", labels={"app": "x"}))
        api.create(pod("b", labels={"app": "y"}))
        recorder = Recorder()
        informer = Informer(clock, client, PODS, label_selector="app=x")
        informer.add_handler(recorder)
        informer.start()
        await informer.synced()
        await clock.sleep(1)
        api.update(pod("a", labels={"app": "y"}))
        api.update(pod("b", labels={"app": "x"}))
        await clock.sleep(1)
        assert recorder.events == [
            ("ADDED", "default/a"), ("DELETED", "default/a"), ("ADDED", "default/b")
        ]  # fmt: skip
        await informer.stop()

    with_api(test)


def test_a_handler_added_late_hears_of_what_is_there_and_can_leave() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        api.create(pod("a"))
        informer = Informer(clock, client, PODS)
        informer.start()
        await informer.synced()
        recorder = Recorder()
        leave = informer.add_handler(recorder)
        assert recorder.events == [("ADDED", "default/a")]
        leave()
        leave()
        await clock.sleep(1)
        api.create(pod("b"))
        await clock.sleep(1)
        assert len(informer.lister) == 2
        assert recorder.events == [("ADDED", "default/a")]
        await informer.stop()

    with_api(test)


def test_a_failing_handler_harms_nobody_else() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        api.create(pod("a"))
        recorder = Recorder()
        informer = Informer(clock, client, PODS)

        def broken(type: str, old: JsonObject | None, new: JsonObject | None) -> None:
            raise RuntimeError("broken handler")

        informer.add_handler(broken)
        informer.add_handler(recorder)
        informer.start()
        await informer.synced()
        assert recorder.events == [("ADDED", "default/a")]
        await informer.stop()

    with_api(test)


def test_what_does_not_concern_a_listener_is_kept_from_it_alone_or_among_others() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        for name in "abc":
            api.create(pod(name))
        picky, all_of_it, dropped = Recorder(), Recorder(), Recorder()
        informer = Informer(clock, client, PODS)

        def concerns(old: JsonObject | None, new: JsonObject | None) -> bool:
            obj = new or old
            assert obj is not None
            if obj["metadata"]["name"] == "c":
                raise RuntimeError("broken concern")
            return bool(obj["metadata"]["name"] == "b")

        informer.listen(picky, concerns=concerns)
        informer.add_handler(all_of_it)
        informer.start()
        await informer.synced()
        assert picky.events == [("ADDED", "default/b")]
        late = Recorder()
        informer.listen(late, concerns=concerns)
        assert late.events == picky.events
        api.update(pod("a", node="n"))
        await clock.sleep(1)
        api.update(pod("b", node="n"))
        await clock.sleep(1)
        assert picky.events == [("ADDED", "default/b"), ("MODIFIED", "default/b")]
        assert [name for _, name in all_of_it.events] == [f"default/{name}" for name in "abcab"]
        leaving = informer.listen(dropped, concerns=lambda _old, _new: True)
        dropped.events.clear()
        informer.dismiss(leaving)
        api.delete("default/b")
        await clock.sleep(1)
        assert picky.events[2:] == [("DELETED", "default/b")]
        assert dropped.events == []
        await informer.stop()

    with_api(test)


def test_resync_repeats_what_is_there() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        api.create(pod("a"))
        seen: list[tuple[str, bool]] = []
        informer = Informer(clock, client, PODS, resync_every_s=60)
        informer.add_handler(lambda kind, old, new: seen.append((kind, old is new)))
        informer.start()
        await informer.synced()
        await clock.sleep(130)
        assert seen == [("ADDED", False), ("MODIFIED", True), ("MODIFIED", True)]
        await informer.stop()

    with_api(test)


def test_stopped_before_the_first_list_it_says_so() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        informer = Informer(clock, client, PODS)
        informer.start()
        waiting = asyncio.create_task(informer.synced())
        await asyncio.sleep(0)
        await informer.stop()
        with pytest.raises(HolokubeError, match="stopped before its first list"):
            await waiting
        assert not informer.has_synced

    with_api(test)


def test_after_the_servers_history_began_anew_the_new_one_is_taken() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        for i in range(10):
            api.create(pod(f"old{i}"))
        recorder = Recorder()
        informer = Informer(clock, client, PODS)
        informer.add_handler(recorder)
        informer.start()
        await informer.synced()
        await clock.sleep(1)
        api.reset()
        api.create(pod("new"))
        await clock.sleep(1200)
        assert names(informer.lister.list()) == ["new"]
        assert names(list(recorder.last.values())) == ["new"]
        await informer.stop()

    with_api(test)


class Scripted:
    """A transport whose lists and watches are written down beforehand."""

    def __init__(self, lists: list[JsonObject | Exception], watches: list[list[WatchEvent]]) -> None:
        self.lists = lists
        self.watches = watches
        self.watch_calls: list[Call] = []

    async def call(self, call: Call) -> JsonObject:
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self.watch_calls.append(call)
        events = self.watches.pop(0) if self.watches else []
        for event in events:
            yield event
        if not self.watches:
            await asyncio.Event().wait()

    async def request(self, method: str, path: str, **_: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def versioned(name: str, version: int, uid: str = "u") -> JsonObject:
    obj = pod(name)
    return {**obj, "metadata": {**obj["metadata"], "uid": uid, "resourceVersion": str(version)}}


def listing(version: int, *items: JsonObject) -> JsonObject:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(items)}


def run_script(transport: Scripted, seconds: float = 100) -> tuple[Informer, Recorder]:
    async def main(clock: VirtualClock) -> tuple[Informer, Recorder]:
        recorder = Recorder()
        informer = Informer(clock, Client(transport), PODS)
        informer.add_handler(recorder)
        informer.start()
        await clock.sleep(seconds)
        await informer.stop()
        return informer, recorder

    return run_virtual(main)


def test_events_that_are_repeated_or_older_are_dropped() -> None:
    _, recorder = run_script(
        Scripted(
            [listing(10, versioned("a", 7))],
            [[
                WatchEvent("MODIFIED", versioned("a", 7)),
                WatchEvent("ADDED", versioned("ghost", 9)),
                WatchEvent("MODIFIED", versioned("a", 11)),
                WatchEvent("MODIFIED", versioned("a", 11)),
                WatchEvent("DELETED", versioned("a", 8)),
                WatchEvent("DELETED", versioned("unknown", 12)),
            ]],
        )
    )  # fmt: skip
    assert recorder.events == [("ADDED", "default/a"), ("MODIFIED", "default/a")]


def test_a_deletion_that_carries_the_last_states_version_is_believed() -> None:
    _, recorder = run_script(
        Scripted([listing(10, versioned("a", 7))], [[WatchEvent("DELETED", versioned("a", 7))]])
    )
    assert recorder.events == [("ADDED", "default/a"), ("DELETED", "default/a")]


def test_another_uid_under_the_same_name_is_another_object() -> None:
    _, recorder = run_script(
        Scripted([listing(10, versioned("a", 7))], [[WatchEvent("MODIFIED", versioned("a", 12, "other"))]])
    )
    assert recorder.events == [("ADDED", "default/a"), ("DELETED", "default/a"), ("ADDED", "default/a")]


def told_together(first: list[JsonObject], *events: WatchEvent) -> list[tuple[str, int, int]]:
    """What a handler is told, as versions of old and new (0 for none), if events come together."""

    async def main(clock: VirtualClock) -> list[tuple[str, int, int]]:
        told: list[tuple[str, int, int]] = []

        def version(obj: JsonObject | None) -> int:
            return 0 if obj is None else int(obj["metadata"]["resourceVersion"])

        informer = Informer(clock, Client(Scripted([listing(10, *first)], [[]])), PODS)
        informer.start()
        await informer.synced()
        informer.add_handler(lambda what, old, new: told.append((what, version(old), version(new))))
        told.clear()
        informer._on_events(events)
        cached = {key: version(informer.lister.by_key(key)) for key in informer.lister.all_keys()}
        assert cached == {
            key: version(obj) for key, obj in latest_of(first, events).items()
        }, "whatever is told, the cache is complete"
        await informer.stop()
        return told

    return run_virtual(main)


def latest_of(first: list[JsonObject], events: Sequence[WatchEvent]) -> dict[str, JsonObject]:
    found = {object_key(obj): obj for obj in first}
    for event in events:
        if event.type == "DELETED":
            del found[object_key(event.object)]
        else:
            found[object_key(event.object)] = event.object
    return found


def test_writes_to_an_object_one_right_after_the_other_are_told_as_one() -> None:
    a, b = versioned("a", 7), versioned("b", 8)
    told = told_together(
        [a, b],
        WatchEvent("MODIFIED", versioned("a", 11)),
        WatchEvent("MODIFIED", versioned("a", 12)),
        WatchEvent("MODIFIED", versioned("a", 13)),
        WatchEvent("MODIFIED", versioned("b", 14)),
        WatchEvent("MODIFIED", versioned("a", 15)),
        WatchEvent("ADDED", versioned("c", 16)),
        WatchEvent("MODIFIED", versioned("c", 17)),
    )
    assert told == [
        ("MODIFIED", 7, 13), ("MODIFIED", 8, 14), ("MODIFIED", 13, 15), ("ADDED", 0, 16), ("MODIFIED", 16, 17),
    ]  # fmt: skip


def test_who_heeds_less_hears_of_writes_that_are_told_as_one_if_any_of_them_concerns_it() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        told: list[str] = []
        first = {**versioned("a", 7), "spec": {}, "status": {}}
        informer = Informer(clock, Client(Scripted([listing(10, first)], [[]])), PODS)
        informer.start()
        await informer.synced()
        for name, heeds in (("spec", SPEC), ("status", STATUS), ("finalizers", FINALIZERS)):
            informer.add_handler(lambda *_, name=name: told.append(name), heeds=heeds)
        told.clear()
        middle = {**versioned("a", 11), "spec": {"x": 1}, "status": first["status"]}
        last = {**versioned("a", 12), "spec": middle["spec"], "status": {"x": 1}}
        informer._on_events([WatchEvent("MODIFIED", middle), WatchEvent("MODIFIED", last)])
        await informer.stop()
        return told

    assert run_virtual(main) == ["spec", "status"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, [("DELETED", 7, 0)]),
        ({"deletionTimestamp": None}, [("DELETED", 7, 0)]),
        ({"deletionTimestamp": None, "generation": 2}, [("DELETED", 7, 0)]),
        ({"labels": {"a": "b"}}, [("MODIFIED", 7, 11), ("DELETED", 11, 0)]),
        ({"finalizers": ["a"]}, [("MODIFIED", 7, 11), ("DELETED", 11, 0)]),
        ({"status": {"phase": "Failed"}}, [("MODIFIED", 7, 11), ("DELETED", 11, 0)]),
        ({"spec": {"x": 1}}, [("MODIFIED", 7, 11), ("DELETED", 11, 0)]),
        ({"data": {"x": "1"}}, [("MODIFIED", 7, 11), ("DELETED", 11, 0)]),
    ],
)
def test_that_no_time_is_left_is_not_told_beside_the_end(
    changes: JsonObject, told: list[tuple[str, int, int]]
) -> None:
    first = versioned("a", 7)
    first["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    first |= {"status": {"phase": "Running"}, "spec": {}}
    last = {**first, "metadata": {**first["metadata"], "resourceVersion": "11", "deletionGracePeriodSeconds": 0}}
    for name, value in changes.items():
        if name == "deletionTimestamp":
            del first["metadata"][name]
        elif name in ("spec", "status", "data"):
            last[name] = value
        else:
            last["metadata"][name] = value
    gone = {**last, "metadata": {**last["metadata"], "resourceVersion": "12"}}
    found = told_together([first], WatchEvent("MODIFIED", last), WatchEvent("DELETED", gone))
    assert found == told


def test_who_is_not_told_of_the_end_hears_that_an_object_was_told_to_end_right_before() -> None:
    async def main(clock: VirtualClock) -> list[tuple[str, str]]:
        told: list[tuple[str, str]] = []
        first = versioned("a", 7)
        informer = Informer(clock, Client(Scripted([listing(10, first)], [[]])), PODS)
        informer.start()
        await informer.synced()
        for name, heeds, hears_comings in (
            ("all", EVERYTHING, True), ("changes", DELETION, False), ("spec", SPEC, False),
        ):  # fmt: skip
            informer.listen(
                lambda what, *_, name=name: told.append((name, what)), heeds=heeds, hears_comings=hears_comings
            )
        told.clear()
        last = {**first, "metadata": {**first["metadata"], "resourceVersion": "11"}}
        last["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
        gone = {**last, "metadata": {**last["metadata"], "resourceVersion": "12"}}
        informer._on_events([WatchEvent("MODIFIED", last), WatchEvent("DELETED", gone)])
        await informer.stop()
        return told

    assert run_virtual(main) == [("all", "DELETED"), ("changes", "MODIFIED")]


def test_a_watch_is_resumed_where_it_ended_and_its_version_never_goes_back() -> None:
    transport = Scripted(
        [listing(10)],
        [
            [WatchEvent("ADDED", versioned("a", 12))],
            [WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "11"}})],
            [WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "30"}})],
            [],
        ],
    )
    informer, _ = run_script(transport)
    assert [call.query["resourceVersion"] for call in transport.watch_calls] == ["10", "12", "12", "30"]
    assert informer.resource_version == "30"


def test_a_list_from_a_server_that_lags_is_not_taken() -> None:
    gone = WatchEvent("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    informer, recorder = run_script(
        Scripted(
            [listing(20, versioned("a", 15)), listing(9), listing(21, versioned("a", 21))], [[gone], []]
        )
    )
    assert recorder.events == [("ADDED", "default/a"), ("MODIFIED", "default/a")]
    assert informer.resource_version == "21"


def test_failed_lists_are_repeated_ever_more_slowly() -> None:
    async def main(clock: VirtualClock) -> list[float]:
        tried_at: list[float] = []

        class Refusing(Scripted):
            async def call(self, call: Call) -> JsonObject:
                tried_at.append(clock.monotonic())
                raise TransportError("no answer")

        informer = Informer(clock, Client(Refusing([], [])), PODS)
        informer.start()
        await clock.sleep(400)
        await informer.stop()
        return [after - before for before, after in pairwise(tried_at)]

    pauses = run_virtual(main)
    for pause, base in zip(pauses, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30], strict=False):
        assert base <= pause <= 2 * base
    assert len(pauses) >= 8


def test_lister_finds_by_key_namespace_labels_and_indexes() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        def by_node(obj: JsonObject) -> list[str]:
            node = obj["spec"].get("node")
            return [node] if node else []

        api.create(pod("a", node="n1", labels={"app": "x"}))
        api.create(pod("b", node="n1", namespace="other"))
        api.create(pod("c"))
        informer = Informer(clock, client, PODS, indexers={"node": by_node})
        informer.start()
        await informer.synced()
        await clock.sleep(1)
        lister = informer.lister
        assert names(lister.by_index("node", "n1")) == ["a", "b"]
        assert names(lister.list("other")) == ["b"]
        assert names(lister.list(selector=LabelSelector.parse("app=x"))) == ["a"]
        assert lister.by_key("other/b") is lister.get("b", "other")
        assert lister.get("b") is None
        assert "default/c" in lister

        api.update(pod("a", node="n2"))
        api.update(pod("c", node="n1"))
        api.delete("other/b")
        await clock.sleep(1)
        assert names(lister.by_index("node", "n1")) == ["c"]
        assert names(lister.by_index("node", "n2")) == ["a"]
        assert sorted(lister.index_values("node")) == ["n1", "n2"]
        assert lister.list("other") == []
        informer.add_index("first letter", lambda obj: [obj["metadata"]["name"][0]])
        assert names(lister.by_index("first letter", "a")) == ["a"]
        with pytest.raises(KeyError, match="no index 'zone'"):
            lister.by_index("zone", "z")
        with pytest.raises(ValueError, match="already"):
            informer.add_index("node", by_node)
        await informer.stop()

    with_api(test)


STORM = Faults(
    conflict=0.1,
    too_many_requests=0.1,
    internal_error=0.1,
    timeout_before=0.05,
    timeout_after=0.1,
    list_too_old=0.2,
    watch_drop=0.05,
    watch_stale=0.03,
    event_delay=0.2,
    answer_timeout_s=3,
    watch_lifetime_mean_s=60,
)


async def write_at_random(clock: VirtualClock, client: Client, rng: Rng, writes: int) -> None:
    """What controllers do: they read, change, and live with failures of unknown outcome."""
    for number in range(writes):
        await clock.sleep(rng.expovariate(1.0))
        name, namespace = f"p{rng.randrange(12)}", rng.choice(["default", "other"])
        try:
            match rng.choice(["create", "update", "update", "delete"]):
                case "create":
                    await client.create(PODS, pod(name, namespace=namespace), namespace)
                case "update":
                    current = await client.get(PODS, name, namespace)
                    await client.update(PODS, {**current, "spec": {"number": number}}, namespace)
                case _:
                    await client.delete(PODS, name, namespace)
        except (ApiError, TransportError):
            continue


@pytest.mark.parametrize("seed", range(40))
def test_under_any_faults_the_cache_becomes_the_servers_state_by_a_legal_history(seed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        rng = Rng(seed)
        api = FakeApi(clock, window=rng.choice([3, 20, 200]), streams_initial_state=seed % 4 != 0)
        faulty = FaultyTransport(clock, api, rng.fork("faults"), STORM)
        client = Client(faulty)
        recorder = Recorder()
        informer = Informer(
            clock,
            client,
            PODS,
            rng=rng.fork("informer"),
            page_size=5,
            watch_list=seed % 2 == 0,
            indexers={"name": lambda obj: [obj["metadata"]["name"]]},
        )
        informer.add_handler(recorder)
        informer.start()
        await asyncio.gather(
            *(write_at_random(clock, client, rng.fork(f"writer {i}"), 60) for i in range(3))
        )
        if seed % 5 == 0:
            api.forget_history()
        faulty.faults = Faults()
        await clock.sleep(900)

        cached = {object_key(obj): obj for obj in informer.lister}
        assert cached == api.objects
        assert recorder.last == cached
        for name in {obj["metadata"]["name"] for obj in api.objects.values()}:
            expected = sorted(key for key, obj in cached.items() if obj["metadata"]["name"] == name)
            assert sorted(map(object_key, informer.lister.by_index("name", name))) == expected
        _assert_lives_alternate(recorder)
        assert sum(faulty.injected.values()) > 30
        await informer.stop()

    run_virtual(main)


def _assert_lives_alternate(recorder: Recorder) -> None:
    counts: dict[str, list[str]] = defaultdict(list)
    for kind, key in recorder.events:
        counts[key].append(kind)
    for key, types in counts.items():
        lives = [kind for kind in types if kind != "MODIFIED"]
        assert lives == ["ADDED", "DELETED"] * (len(lives) // 2) + ["ADDED"] * (len(lives) % 2), key
        assert types[0] == "ADDED", key


def test_the_same_seed_gives_the_same_events() -> None:
    def run() -> tuple[list[tuple[str, str]], dict[str, int]]:
        async def main(clock: VirtualClock) -> tuple[list[tuple[str, str]], dict[str, int]]:
            rng = Rng("twice")
            api = FakeApi(clock, window=20)
            faulty = FaultyTransport(clock, api, rng.fork("faults"), STORM)
            recorder = Recorder()
            informer = Informer(clock, Client(faulty), PODS, rng=rng.fork("informer"))
            informer.add_handler(recorder)
            informer.start()
            await write_at_random(clock, Client(faulty), rng.fork("writer"), 80)
            await informer.stop()
            return recorder.events, dict(faulty.injected)

        return run_virtual(main)

    first = run()
    assert len(first[0]) > 10
    assert run() == first


def test_the_fake_server_refuses_what_a_real_one_refuses() -> None:
    async def test(clock: VirtualClock, api: FakeApi, client: Client) -> None:
        created = await client.create(PODS, pod("a"), "default")
        await client.update(PODS, {**created, "spec": {"x": 1}}, "default")
        with pytest.raises(Conflict):
            await client.update(PODS, {**created, "spec": {"x": 2}}, "default")
        with pytest.raises(NotFound):
            await client.get(PODS, "b", "default")

    with_api(test)
