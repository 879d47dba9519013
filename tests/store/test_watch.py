from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import pytest

from holokube.base.errors import WatchClosed, WatchOverflow
from holokube.base.loop import run_virtual
from holokube.store import Store, StoreEvent, Watch


def seen(events: list[StoreEvent]) -> list[tuple[str, str, int]]:
    return [(event.type, event.key, event.revision) for event in events]


def test_replay_joins_live_events_without_gap_or_repetition() -> None:
    store = Store()
    store.create("pods", "a/x", {})
    since = store.revision
    store.update("pods", "a/x", {})
    store.create("nodes", "n", {})
    watch = store.watch("pods", since=since)
    store.delete("pods", "a/x")
    assert seen(watch.pop_all()) == [("MODIFIED", "a/x", 3), ("DELETED", "a/x", 5)]
    assert watch.pop_all() == []


@pytest.mark.parametrize("prefix", ["", "a/", "a", "a/x", "a/x/", "/", "é/"])
def test_a_prefix_gets_exactly_its_own_events(prefix: str) -> None:
    store = Store()
    live = store.watch("pods", prefix, since=1)
    keys = ["a/x", "ab/x", "a", "a/xy", "a/x/y", "/x", "b/a/x", "é/x", ""]
    for key in keys:
        store.create("pods", key, {})
    replayed = store.watch("pods", prefix, since=1)
    wanted = [key for key in keys if key.startswith(prefix)]
    assert [event.key for event in live.pop_all()] == wanted
    assert [event.key for event in replayed.pop_all()] == wanted


def test_watchers_of_other_namespaces_are_not_even_looked_at() -> None:
    store = Store()
    others = [store.watch("pods", f"team-{number}/", since=1) for number in range(100)]
    for other in others:
        del other.pending  # Whoever touches it fails.
    mine = store.watch("pods", "mine/", since=1)
    store.create("pods", "mine/x", {})
    assert len(mine.pop_all()) == 1


def test_watches_of_everything_and_of_parts_may_come_and_go_in_any_order() -> None:
    store = Store()
    prefixes = ["", "a/", "b/x", "", "b/", "a/y", ""]
    for number in range(len(prefixes)):
        order = prefixes[number:] + prefixes[:number]
        watches: list[Watch] = []
        for prefix in order:
            watches.append(store.watch("pods", prefix, since=store.revision))
            _write_and_check(store, watches)
        while watches:
            watches.pop(len(watches) // 2).close()
            _write_and_check(store, watches)


def _write_and_check(store: Store, watches: list[Watch]) -> None:
    for key in ("a/x", "a/y", "b/x", "b/xx", "c/x"):
        if store.get("pods", key) is None:
            store.create("pods", key, {"metadata": {}})
        else:
            store.update("pods", key, {"metadata": {}})
        for watch in watches:
            assert [event.key for event in watch.pop_all()] == ([key] if key.startswith(watch.prefix) else [])


def test_a_watcher_that_reads_too_slowly_is_cut_off() -> None:
    store = Store()
    watch = store.watch("pods", since=1, buffer=2)
    other = store.watch("pods", since=1, buffer=3)
    for number in range(3):
        store.create("pods", f"{number}", {})
    assert watch.overflowed
    for _ in range(2):
        with pytest.raises(WatchOverflow, match="the watch of pods fell more than 2 events behind") as caught:
            watch.pop_all()
        assert "revision 1" in caught.value.hint
    assert not watch.pending
    assert len(other.pop_all()) == 3
    store.create("pods", "3", {})
    assert not watch.pending


def test_a_reader_in_time_is_never_cut_off() -> None:
    store = Store()
    watch = store.watch("pods", since=1, buffer=2)
    for number in range(10):
        store.create("pods", f"{number}a", {})
        store.create("pods", f"{number}b", {})
        assert len(watch.pop_all()) == 2


def test_a_long_replay_does_not_count_against_the_buffer_but_live_events_do() -> None:
    store = Store()
    for number in range(100):
        store.create("pods", f"{number}", {})
    watch = store.watch("pods", since=1, buffer=2)
    store.update("pods", "0", {})
    store.update("pods", "0", {})
    assert len(watch.pop_all()) == 102
    for _ in range(3):
        store.update("pods", "0", {})
    with pytest.raises(WatchOverflow):
        watch.pop_all()


def test_reading_a_replay_one_by_one_also_ends_its_allowance() -> None:
    async def main() -> None:
        store = Store()
        for number in range(5):
            store.create("pods", f"{number}", {})
        watch = store.watch("pods", since=1, buffer=1)
        for _ in range(5):
            await watch.next()
        store.update("pods", "0", {})
        store.update("pods", "0", {})
        with pytest.raises(WatchOverflow):
            await watch.next()

    asyncio.run(main())


def test_an_overflow_wakes_listener_and_frees_the_events() -> None:
    store = Store(history=0)
    watch = store.watch("pods", since=1, buffer=1)
    calls: list[bool] = []
    watch.add_listener(lambda it: calls.append(it.overflowed))
    store.create("pods", "a", {})
    store.create("pods", "b", {})
    assert calls == [False, True]
    with pytest.raises(WatchOverflow):
        watch.pop_all()


def test_last_revision_says_up_to_where_the_reader_has_everything() -> None:
    store = Store()
    watch = store.watch("pods", "a/", since=1)
    assert watch.last_revision == 1
    store.create("pods", "b/x", {})
    assert watch.last_revision == 2
    store.create("pods", "a/x", {})
    store.create("nodes", "n", {})
    assert watch.last_revision == 2
    watch.pop_all()
    assert watch.last_revision == 4
    watch.close()
    store.create("nodes", "n2", {})
    assert watch.last_revision == 4


def test_last_revision_of_a_replay_starts_before_its_first_event() -> None:
    store = Store()
    store.create("nodes", "n", {})
    store.create("pods", "a/x", {})
    assert store.watch("pods", since=1).last_revision == 2


def test_closing_is_final_and_can_be_repeated() -> None:
    store = Store()
    watch = store.watch("pods", since=1)
    store.create("pods", "a", {})
    watch.close()
    watch.close()
    store.create("pods", "b", {})
    assert watch.pop_all() == []
    with pytest.raises(WatchClosed):
        asyncio.run(watch.next())


def test_leaving_the_with_block_closes() -> None:
    store = Store()
    with store.watch("pods", "a/", since=1) as watch:
        assert not watch.closed
    assert watch.closed


@pytest.mark.parametrize("prefix", ["", "a/", "a"])
def test_a_closed_watch_is_forgotten_by_the_store(prefix: str) -> None:
    store = Store()
    watch, other = (store.watch("pods", prefix, since=1) for _ in range(2))
    index = store._shelf("pods").watches
    watch.close()
    assert list(index) == [other]
    other.close()
    assert index.count == 0
    assert index.wanting("a/x") == []


def test_a_listener_is_called_once_per_batch() -> None:
    store = Store()
    watch = store.watch("pods", since=1)
    calls: list[Watch] = []
    watch.add_listener(calls.append)
    store.create("pods", "a", {})
    store.create("pods", "b", {})
    assert calls == [watch]
    watch.pop_all()
    store.create("pods", "c", {})
    assert calls == [watch, watch]
    watch.remove_listener(calls.append)
    watch.remove_listener(calls.append)
    watch.pop_all()
    store.create("pods", "d", {})
    assert len(calls) == 2


def test_one_listener_may_read_for_all_and_the_others_are_spared() -> None:
    store = Store()
    watches = [store.watch("pods", since=1) for _ in range(3)]
    calls: list[int] = []

    def flush_all(_: Watch) -> None:
        calls.append(sum(len(watch.pop_all()) for watch in watches))

    for watch in watches:
        watch.add_listener(flush_all)
    store.create("pods", "a", {})
    store.create("pods", "b", {})
    assert calls == [3, 3]


def test_a_listener_that_comes_late_hears_of_what_waits_already() -> None:
    store = Store()
    store.create("pods", "a", {})
    watch = store.watch("pods", since=1)
    calls: list[Watch] = []
    watch.add_listener(calls.append)
    assert calls == [watch]


def test_listeners_that_write_do_not_reorder_events() -> None:
    store = Store()
    watches = [store.watch("pods", prefix, since=1) for prefix in ("", "a/", "", "a")]
    got: list[list[int]] = [[] for _ in watches]
    depth = deepest = 0

    def listen(index: int, watch: Watch) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        got[index].extend(event.revision for event in watch.pop_all())
        if store.revision < 40:
            store.create("pods", f"a/{index}-{store.revision}", {})
            if index % 2:
                store.update("pods", "a/start", {})
        depth -= 1

    for index, watch in enumerate(watches):
        watch.add_listener(lambda it, index=index: listen(index, it))  # type: ignore[misc]  # bound early
    store.create("pods", "a/start", {})
    assert store.revision >= 40
    assert deepest == 1
    for revisions in got:
        assert revisions == list(range(2, store.revision + 1))


def test_a_chain_of_writing_listeners_may_be_longer_than_the_stack() -> None:
    store = Store()
    watch = store.watch("pods", since=1)

    def listen(it: Watch) -> None:
        it.pop_all()
        if store.revision < 20_000:
            store.update("pods", "a", {})

    watch.add_listener(listen)
    store.create("pods", "a", {})
    assert store.revision == 20_000


def test_a_watch_opened_inside_a_listener_misses_nothing_and_gets_nothing_twice() -> None:
    store = Store()
    first = store.watch("pods", since=1)
    opened: list[Watch] = []

    def listen(_: Watch) -> None:
        if not opened:
            opened.append(store.watch("pods", since=1))
            store.create("pods", "b", {})

    first.add_listener(listen)
    store.create("pods", "a", {})
    assert [event.revision for event in opened[0].pop_all()] == [2, 3]


def test_a_listener_may_close_other_watches_and_its_own() -> None:
    store = Store()
    first = store.watch("pods", since=1)
    second = store.watch("pods", since=1)
    calls: list[str] = []

    def listen(it: Watch) -> None:
        calls.append("first")
        second.close()
        it.close()

    first.add_listener(listen)
    second.add_listener(lambda _: calls.append("second"))
    store.create("pods", "a", {})
    store.create("pods", "b", {})
    assert calls == ["first"]


def test_a_failing_listener_hurts_neither_the_write_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store()
    watch = store.watch("pods", since=1)
    calls: list[Watch] = []

    def fail(_: Watch) -> None:
        raise RuntimeError("listener broke")

    watch.add_listener(fail)
    watch.add_listener(calls.append)
    assert store.create("pods", "a", {}).revision == 2
    assert calls == [watch]
    assert "a watch listener failed" in caplog.text


def test_closing_the_store_ends_its_watches() -> None:
    async def main() -> None:
        store = Store()
        watch = store.watch("pods", since=1)
        calls: list[bool] = []
        watch.add_listener(lambda it: calls.append(it.closed))
        reader = asyncio.create_task(read_all(watch))
        await asyncio.sleep(0)
        store.close()
        assert await reader == []
        assert calls == [True]

    asyncio.run(main())


async def read_all(watch: Watch) -> list[int]:
    return [event.revision async for event in watch]


def on_wall_loop(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def on_virtual_loop(main: Coroutine[Any, Any, None]) -> None:
    run_virtual(main)


@pytest.mark.parametrize("run", [on_wall_loop, on_virtual_loop])
def test_waiting_readers_wake_on_any_loop(run: Any) -> None:
    async def main() -> None:
        store = Store()
        watch = store.watch("pods", since=1)
        reader = asyncio.create_task(read_all(watch))
        for number in range(5):
            await asyncio.sleep(0.001)
            store.create("pods", f"{number}a", {})
            store.create("pods", f"{number}b", {})
        await asyncio.sleep(0.001)
        watch.close()
        assert await reader == list(range(2, 12))

    run(main())


def test_a_cancelled_wait_loses_no_event() -> None:
    async def main() -> None:
        store = Store()
        watch = store.watch("pods", since=1)
        got: list[int] = []
        for number in range(200):
            reader = asyncio.create_task(watch.next())
            await asyncio.sleep(0)
            store.create("pods", f"{number}", {})
            if number % 3 == 0:
                reader.cancel()  # The wake-up is under way already.
            elif number % 3 == 1:
                await asyncio.sleep(0)
            with contextlib.suppress(asyncio.CancelledError):
                got.append((await reader).revision)
        got.extend(event.revision for event in watch.pop_all())
        assert got == list(range(2, 202))
        assert not watch.waiters

    asyncio.run(main())


def test_several_readers_of_one_watch_share_its_events() -> None:
    async def main() -> None:
        store = Store()
        watch = store.watch("pods", since=1)
        readers = [asyncio.create_task(watch.next()) for _ in range(3)]
        await asyncio.sleep(0)
        readers[0].cancel()
        store.create("pods", "a", {})
        store.create("pods", "b", {})
        events = await asyncio.gather(readers[1], readers[2])
        assert [event.key for event in events] == ["a", "b"]

    asyncio.run(main())


def test_an_overflow_wakes_the_reader_with_the_error() -> None:
    async def main() -> None:
        store = Store()
        watch = store.watch("pods", since=1, buffer=1)
        reader = asyncio.create_task(read_all(watch))
        await asyncio.sleep(0)
        store.create("pods", "a", {})
        store.create("pods", "b", {})
        with pytest.raises(WatchOverflow):
            await reader

    asyncio.run(main())


def test_one_watch_can_be_read_from_one_loop_after_the_other() -> None:
    store = Store()
    watch = store.watch("pods", since=1)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(watch.next(), 0.001))
    store.create("pods", "a", {})
    assert asyncio.run(watch.next()).key == "a"
