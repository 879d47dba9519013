from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.base.errors import RevisionInFuture, RevisionTooOld, StoreReadOnly
from holokube.base.loop import run_virtual
from holokube.store import SqliteJournal, Store, StoreEvent, Watch
from holokube.store.journal import Row


class FakeJournal:
    """A disk in the hands of the test: it can be held up, and it can fail."""

    def __init__(self) -> None:
        self.revision = 1
        self.batches: list[list[int]] = []
        self.threads: list[threading.Thread] = []
        self.fails = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.started = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._pending: deque[int] = deque()

    def rows(self) -> Iterator[Row]:
        return iter(())

    def append(self, bucket: str, event: StoreEvent) -> None:
        self._pending.append(event.revision)

    def commit(self) -> int:
        with self._lock:
            batch = [self._pending.popleft() for _ in range(len(self._pending))]
            self.threads.append(threading.current_thread())
            self.started.release()
            assert self.may_go_on.wait(timeout=10)
            if self.fails:
                raise OSError(5, "Input/output error")
            if batch:
                self.batches.append(batch)
                self.revision = batch[-1]
            return self.revision

    def replace(self, revision: int, rows: Iterable[Row]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def revisions(watch: Watch) -> list[int]:
    return [event.revision for event in watch.pop_all()]


async def held_up(journal: FakeJournal) -> None:
    """Returns when a commit has begun and waits for the disk."""
    await asyncio.to_thread(journal.started.acquire)


def test_many_writers_share_few_commits() -> None:
    async def main() -> None:
        journal = FakeJournal()
        store = Store(journal=journal)
        acknowledged: list[int] = []

        async def write(writer: int) -> None:
            for number in range(5):
                revision = store.create("pods", f"{writer}/{number}", {}).revision
                await store.durable(revision)
                assert revision <= journal.revision
                acknowledged.append(revision)

        await asyncio.gather(*(write(writer) for writer in range(100)))
        assert sorted(acknowledged) == list(range(2, 502))
        assert [revision for batch in journal.batches for revision in batch] == list(range(2, 502))
        assert len(journal.batches) <= 10
        assert threading.main_thread() not in journal.threads

    asyncio.run(main())


def test_writes_during_a_commit_gather_for_the_next_one() -> None:
    async def main() -> None:
        journal = FakeJournal()
        journal.may_go_on.clear()
        store = Store(journal=journal)
        store.create("pods", "a", {})
        await held_up(journal)
        for number in range(10):
            store.create("pods", f"{number}", {})
            await asyncio.sleep(0)
        waiting = asyncio.create_task(store.durable())
        await asyncio.sleep(0)
        assert store.durable_revision == 1
        journal.may_go_on.set()
        await waiting
        assert journal.batches == [[2], list(range(3, 13))]

    asyncio.run(main())


def test_watchers_see_an_event_once_it_is_durable_and_listeners_hear_once_per_commit() -> None:
    async def main() -> None:
        journal = FakeJournal()
        journal.may_go_on.clear()
        store = Store(journal=journal)
        watch = store.watch("pods", since=1)
        calls: list[int] = []
        watch.add_listener(lambda it: calls.append(len(it.pending)))
        store.create("pods", "a", {})
        store.create("pods", "b", {})
        await held_up(journal)
        assert (store.get("pods", "a") is not None, store.revision) == (True, 3)
        assert (revisions(watch), watch.last_revision) == ([], 1)
        assert store.watch("pods", since=1).pop_all() == []
        journal.may_go_on.set()
        await store.durable()
        assert calls == [2]
        assert (revisions(watch), watch.last_revision) == ([2, 3], 3)

    asyncio.run(main())


def test_a_watch_from_a_revision_on_its_way_starts_right_after_it() -> None:
    store = Store(journal=FakeJournal())
    store.create("pods", "a", {})
    store.create("pods", "b", {})
    early = store.watch("pods", since=2)
    late = store.watch("pods", since=store.list("pods").revision)
    assert late.last_revision == 3
    store.create("pods", "c", {})
    store.flush()
    assert (revisions(early), revisions(late)) == ([3, 4], [4])


def test_writes_that_nobody_awaits_become_durable_all_the_same() -> None:
    async def main() -> None:
        store = Store(journal=FakeJournal())
        watch = store.watch("pods", since=1)
        store.create("pods", "a", {})
        assert (await watch.next()).revision == store.durable_revision == 2

    asyncio.run(main())


def test_without_an_event_loop_flush_does_it() -> None:
    journal = FakeJournal()
    store = Store(journal=journal)
    store.create("pods", "a", {})
    store.create("pods", "b", {})
    assert (store.durable_revision, journal.batches) == (1, [])
    store.flush()
    store.flush()
    assert (store.durable_revision, journal.batches) == (3, [[2, 3]])


def test_a_flush_waits_for_the_commit_under_way_and_adds_the_rest() -> None:
    async def main() -> None:
        journal = FakeJournal()
        journal.may_go_on.clear()
        store = Store(journal=journal)
        watch = store.watch("pods", since=1)
        store.create("pods", "a", {})
        await held_up(journal)
        store.create("pods", "b", {})
        threading.Timer(0.01, journal.may_go_on.set).start()
        store.flush()
        assert (store.durable_revision, journal.batches) == (3, [[2], [3]])
        await asyncio.sleep(0.01)
        assert revisions(watch) == [2, 3]

    asyncio.run(main())


def test_a_failed_commit_undoes_what_was_not_durable_and_tells_its_writers() -> None:
    async def main() -> None:
        journal = FakeJournal()
        store = Store(journal=journal)
        watch = store.watch("pods", since=1)
        store.create("pods", "kept", {"n": 1})
        store.create("pods", "kept-too", {})
        await store.durable()
        journal.fails = True
        lost = [
            store.update("pods", "kept", {"n": 2}),
            store.create("pods", "new", {}),
            store.update("pods", "kept", {"n": 3}),
            store.delete("pods", "kept-too"),
        ]
        results = await asyncio.gather(
            *(store.durable(stored.revision) for stored in lost), return_exceptions=True
        )
        assert [type(result) for result in results] == [StoreReadOnly] * 4
        assert len({id(result) for result in results}) == 4
        assert "Input/output error" in str(results[0])
        assert [(key, stored.revision) for key, stored in store.list("pods").items] == [
            ("kept", 2), ("kept-too", 3),
        ]
        assert (store.revision, revisions(watch)) == (3, [2, 3])
        assert [key for key, _ in store.list("pods", at_revision=2).items] == ["kept"]
        await store.durable(3)
        with pytest.raises(StoreReadOnly):
            await store.durable(5)
        with pytest.raises(StoreReadOnly):
            store.delete("pods", "kept")

    asyncio.run(main())


def test_what_an_earlier_commit_saved_survives_the_failure_of_the_next() -> None:
    async def main() -> None:
        journal = FakeJournal()
        journal.may_go_on.clear()
        store = Store(journal=journal)
        watch = store.watch("pods", since=1)
        store.create("pods", "saved", {})
        await held_up(journal)
        store.create("pods", "lost", {})
        real_commit = journal.commit

        def commit_in_vain() -> int:
            with journal._lock:
                journal.fails = True
            return real_commit()

        # The first commit is under way already; it succeeds before this one gets the lock and fails.
        journal.commit = commit_in_vain  # type: ignore[method-assign]  # the point of the test
        threading.Timer(0.01, journal.may_go_on.set).start()
        with pytest.raises(StoreReadOnly):
            store.flush()
        assert [key for key, _ in store.list("pods").items] == ["saved"]
        assert (store.revision, revisions(watch)) == (2, [2])
        await asyncio.sleep(0.01)
        assert (store.revision, store.durable_revision) == (2, 2)

    asyncio.run(main())


def test_undoing_more_than_the_history_window_holds_is_exact() -> None:
    journal = FakeJournal()
    store = Store(journal=journal, history=2)
    store.create("pods", "a", {"n": 0})
    store.create("nodes", "n", {})
    store.flush()
    for number in range(5):
        store.update("pods", "a", {"n": number})
        store.create("pods", f"x{number}", {})
    journal.fails = True
    with pytest.raises(StoreReadOnly):
        store.flush()
    assert [(key, stored.revision) for key, stored in store.list("pods").items] == [("a", 2)]
    assert store.revision == store.compacted_revision == 3
    assert store.watch("pods", since=3).pop_all() == []
    with pytest.raises(RevisionTooOld):
        store.watch("pods", since=2)


def test_a_cancelled_wait_for_durability_harms_nobody() -> None:
    async def main() -> None:
        journal = FakeJournal()
        journal.may_go_on.clear()
        store = Store(journal=journal)
        store.create("pods", "a", {})
        first, second = (asyncio.create_task(store.durable()) for _ in range(2))
        await held_up(journal)
        first.cancel()
        journal.may_go_on.set()
        await second
        assert first.cancelled()
        assert store.durable_revision == 2

    asyncio.run(main())


def test_durability_of_a_revision_that_does_not_exist_is_refused() -> None:
    store = Store(journal=FakeJournal())
    with pytest.raises(RevisionInFuture):
        asyncio.run(store.durable(2))


def test_without_a_journal_everything_is_as_durable_as_it_gets() -> None:
    store = Store()
    store.create("pods", "a", {})
    store.flush()
    asyncio.run(store.durable())
    assert store.durable_revision == 2


def test_a_loop_that_ended_early_does_not_hold_up_the_next_one() -> None:
    store = Store(journal=FakeJournal())
    dead = asyncio.new_event_loop()

    async def write() -> None:
        store.create("pods", "a", {})

    task = dead.create_task(write())
    dead.call_soon(dead.stop)
    dead.run_forever()
    assert task.done()
    dead.close()
    assert store.durable_revision == 1
    asyncio.run(asyncio.wait_for(store.durable(), timeout=10))
    assert store.durable_revision == 2


def test_asyncio_run_finishes_what_was_written_last() -> None:
    store = Store(journal=FakeJournal())

    async def main() -> None:
        store.create("pods", "a", {})

    asyncio.run(main())
    assert store.durable_revision == 2


def test_a_listener_that_writes_when_events_become_durable_keeps_the_order(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store(journal=SqliteJournal(tmp_path))
        watches = [store.watch("pods", since=1) for _ in range(3)]
        got: list[list[int]] = [[], [], []]

        def listen(index: int, watch: Watch) -> None:
            got[index].extend(revisions(watch))
            if store.revision < 30:
                store.create("pods", f"{index}-{store.revision}", {})

        for index, watch in enumerate(watches):
            watch.add_listener(lambda it, index=index: listen(index, it))  # type: ignore[misc]  # bound early
        store.create("pods", "start", {})
        while store.durable_revision < 30:
            await store.durable()
        store.close()
        assert got == [list(range(2, store.revision + 1))] * 3

    asyncio.run(main())


def test_closing_writes_what_listeners_add_on_the_last_flush(tmp_path: Path) -> None:
    store = Store(journal=SqliteJournal(tmp_path))

    def listen(watch: Watch) -> None:
        watch.pop_all()
        if store.revision < 10:
            store.update("pods", "a", {})

    store.watch("pods", since=1).add_listener(listen)
    store.create("pods", "a", {})
    store.close()
    with Store(journal=SqliteJournal(tmp_path)) as again:
        assert again.revision == 10


@pytest.mark.parametrize("inline", [False, True])
def test_durability_works_under_virtual_time(tmp_path: Path, inline: bool) -> None:
    async def write(store: Store, writer: int) -> None:
        for number in range(10):
            stored = store.create("pods", f"{writer}/{number}", {})
            await store.durable(stored.revision)
            assert store.durable_revision >= stored.revision
            await asyncio.sleep(1)

    async def main() -> None:
        with Store(journal=SqliteJournal(tmp_path), commit_inline=inline) as store:
            await asyncio.gather(*(write(store, writer) for writer in range(5)))

    run_virtual(main())
    with Store(journal=SqliteJournal(tmp_path)) as again:
        assert (again.revision, again.count("pods")) == (51, 50)


def test_inline_commits_stay_on_the_loop_and_still_share() -> None:
    journal = FakeJournal()
    store = Store(journal=journal, commit_inline=True)

    async def write(number: int) -> None:
        stored = store.create("pods", f"{number}", {})
        await store.durable(stored.revision)

    async def main() -> None:
        await asyncio.gather(*(write(number) for number in range(10)))

    asyncio.run(main())
    assert set(journal.threads) == {threading.main_thread()}
    assert journal.batches == [list(range(2, 12))]


def test_closing_a_store_with_a_commit_under_way_keeps_everything(tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        store = Store(journal=SqliteJournal(tmp_path))
        for number in range(100):
            store.create("pods", f"{number:03}", {"x": "y" * 1000})
            if number % 10 == 0:
                await asyncio.sleep(0)
        store.close()
        await asyncio.sleep(0.01)
        return dict(store.list("pods").items)

    written = asyncio.run(main())
    with Store(journal=SqliteJournal(tmp_path)) as again:
        assert dict(again.list("pods").items) == written
        assert again.revision == 101
