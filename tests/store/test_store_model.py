"""The store against a naive model: a list of whole states, one per revision, and a list of all events."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holokube.base.errors import (
    KeyExists,
    KeyMissing,
    RevisionInFuture,
    RevisionMismatch,
    RevisionTooOld,
    WatchOverflow,
)
from holokube.store import SqliteJournal, Store, Watch

BUCKETS = st.sampled_from(["pods", "nodes"])
KEYS = st.sampled_from(["a/x", "a/y", "a/xy", "a-/x", "ab/x", "b/x", "b/é", "x", "a"])
PREFIXES = st.sampled_from(["", "a/", "a", "b/", "ab/x", "c/", "a/x"])
REVISION_CHECKS = st.sampled_from([None, "right", "wrong"])
AGES = st.integers(min_value=-1, max_value=40)

State = dict[str, tuple[int, int]]  # key -> (revision, payload)
Event = tuple[int, str, str, str, int]  # revision, bucket, type, key, payload


@dataclass
class WatchModel:
    watch: Watch
    bucket: str
    prefix: str
    buffer: int
    live_from: int
    backlog: int
    cut_off: bool = False
    waiting: list[Event] = field(default_factory=list)


class StoreMachine(RuleBasedStateMachine):
    """Every rule does the same to both and compares the answers."""

    durable = False

    @initialize(history=st.sampled_from([0, 1, 3, 10, 1000]))
    def begin(self, history: int) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.history = history
        self.store = self.open()
        self.states: dict[int, dict[str, State]] = {0: {}, 1: {}}
        self.events: list[Event] = []
        self.floor = 0
        self.watches: list[WatchModel] = []
        self.published = 1

    def open(self) -> Store:
        journal = SqliteJournal(self.directory / "data") if self.durable else None
        return Store(history=self.history, journal=journal)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.directory)

    # The model

    @property
    def revision(self) -> int:
        return max(self.states)

    @property
    def oldest(self) -> int:
        return max(self.floor, self.events[-self.history - 1][0] if len(self.events) > self.history else 0)

    def now(self, bucket: str) -> State:
        return self.states[self.revision].get(bucket, {})

    def record(self, bucket: str, kind: str, key: str, payload: int) -> None:
        revision = self.revision + 1
        state = {name: dict(items) for name, items in self.states[self.revision].items()}
        if kind == "DELETED":
            del state[bucket][key]
        else:
            state.setdefault(bucket, {})[key] = (revision, payload)
        self.states[revision] = state
        self.events.append((revision, bucket, kind, key, payload))
        if not self.durable:
            self.publish()

    def publish(self) -> None:
        for event in self.events:
            if event[0] > self.published:
                for model in self.watches:
                    self.deliver(model, event)
        self.published = self.revision

    def deliver(self, model: WatchModel, event: Event) -> None:
        revision, bucket, _, key, _ = event
        if model.cut_off or bucket != model.bucket or not key.startswith(model.prefix):
            return
        if revision <= model.live_from:
            return
        if len(model.waiting) >= model.buffer + model.backlog:
            model.cut_off = True
            model.waiting.clear()
        else:
            model.waiting.append(event)

    # Writes

    @rule(bucket=BUCKETS, key=KEYS, payload=st.integers(0, 9))
    def create(self, bucket: str, key: str, payload: int) -> None:
        if key in self.now(bucket):
            with pytest.raises(KeyExists):
                self.store.create(bucket, key, {"payload": payload})
        else:
            stored = self.store.create(bucket, key, {"payload": payload})
            self.record(bucket, "ADDED", key, payload)
            assert stored.revision == self.revision

    @rule(bucket=BUCKETS, key=KEYS, payload=st.integers(0, 9), expected=REVISION_CHECKS)
    def update(self, bucket: str, key: str, payload: int, expected: str | None) -> None:
        if key not in self.now(bucket):
            with pytest.raises(KeyMissing):
                self.store.update(bucket, key, {"payload": payload})
            return
        at, _ = self.now(bucket)[key]
        if expected == "wrong":
            with pytest.raises(RevisionMismatch):
                self.store.update(bucket, key, {"payload": payload}, expected=at - 1)
            return
        self.store.update(bucket, key, {"payload": payload}, expected=at if expected else None)
        self.record(bucket, "MODIFIED", key, payload)

    @rule(bucket=BUCKETS, key=KEYS, final=st.none() | st.integers(10, 19))
    def delete(self, bucket: str, key: str, final: int | None) -> None:
        if key not in self.now(bucket):
            with pytest.raises(KeyMissing):
                self.store.delete(bucket, key)
            return
        _, payload = self.now(bucket)[key]
        gone = self.store.delete(bucket, key, final=None if final is None else {"payload": final})
        self.record(bucket, "DELETED", key, payload if final is None else final)
        assert gone.obj["metadata"]["resourceVersion"] == str(self.revision)

    # Reads

    @rule(bucket=BUCKETS, key=KEYS)
    def get(self, bucket: str, key: str) -> None:
        stored = self.store.get(bucket, key)
        found = None if stored is None else (stored.revision, stored.obj["payload"])
        assert found == self.now(bucket).get(key)

    @rule(
        bucket=BUCKETS,
        prefix=PREFIXES,
        age=st.none() | AGES,
        limit=st.integers(0, 4),
        start_after=st.just("") | KEYS,
    )
    def list_pages(self, bucket: str, prefix: str, age: int | None, limit: int, start_after: str) -> None:
        at = None if age is None else self.revision - age
        if not self.in_window(at, lambda: self.store.list(bucket, prefix, at_revision=at)):
            return
        revision = self.revision if at is None else at
        state = self.states[revision].get(bucket, {})
        wanted = sorted(key for key in state if key.startswith(prefix) and key > start_after)
        while True:
            page = self.store.list(bucket, prefix, at_revision=at, start_after=start_after, limit=limit)
            here, wanted = (wanted[:limit], wanted[limit:]) if limit else (wanted, [])
            assert [
                (key, stored.revision, stored.obj["payload"], stored.obj["metadata"]["resourceVersion"])
                for key, stored in page.items
            ] == [(key, *state[key], str(state[key][0])) for key in here]
            assert (page.revision, page.more, page.remaining) == (revision, bool(wanted), len(wanted))
            if not page.more:
                break
            start_after = here[-1]

    @rule(bucket=BUCKETS, prefix=PREFIXES)
    def count(self, bucket: str, prefix: str) -> None:
        assert self.store.count(bucket, prefix) == sum(key.startswith(prefix) for key in self.now(bucket))

    def in_window(self, revision: int | None, call: Any) -> bool:
        if revision is not None and revision > self.revision:
            with pytest.raises(RevisionInFuture):
                call()
            return False
        if revision is not None and revision < self.oldest:
            with pytest.raises(RevisionTooOld):
                call()
            return False
        return True

    # Watches

    @rule(bucket=BUCKETS, prefix=PREFIXES, age=AGES, buffer=st.sampled_from([1, 2, 5, 100]))
    def watch(self, bucket: str, prefix: str, age: int, buffer: int) -> None:
        since = self.revision - age
        if not self.in_window(since, lambda: self.store.watch(bucket, prefix, since=since)):
            return
        watch = self.store.watch(bucket, prefix, since=since, buffer=buffer)
        model = WatchModel(watch, bucket, prefix, buffer, since, backlog=len(self.events))
        for event in self.events:
            if event[0] <= self.published:
                self.deliver(model, event)
        model.backlog = len(model.waiting)
        self.watches.append(model)

    @precondition(lambda self: self.watches)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        model = data.draw(st.sampled_from(self.watches))
        if model.cut_off:
            with pytest.raises(WatchOverflow):
                model.watch.pop_all()
            self.watches.remove(model)
            return
        got = [
            (event.revision, model.bucket, event.type, event.key, event.stored.obj["payload"])
            for event in model.watch.pop_all()
        ]
        assert got == model.waiting
        if model.waiting:
            model.waiting = []
            model.backlog = 0

    @precondition(lambda self: self.watches)
    @rule(data=st.data())
    def close_watch(self, data: st.DataObject) -> None:
        model = data.draw(st.sampled_from(self.watches))
        model.watch.close()
        self.watches.remove(model)
        assert model.watch.pop_all() == []

    # Restarts

    @rule(suffix=st.sampled_from(["", ".gz"]))
    def save_and_load(self, suffix: str) -> None:
        path = self.directory / f"state{suffix}"
        self.store.save(path)
        self.publish()
        loaded = Store.load(path, history=self.history)
        for bucket in {*loaded.buckets(), *self.store.buckets()}:
            assert loaded.list(bucket) == self.store.list(bucket)
        assert loaded.revision == self.store.revision
        if not self.durable:
            self.restarted(loaded)

    @precondition(lambda self: self.durable)
    @rule()
    def flush(self) -> None:
        self.store.flush()
        self.publish()

    @precondition(lambda self: self.durable)
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.publish()
        self.restarted(self.open())

    def restarted(self, store: Store) -> None:
        self.store.close()
        self.store = store
        self.watches.clear()
        self.events.clear()
        self.floor = 0 if self.revision == 1 else self.revision

    @invariant()
    def counters_agree(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.revision == self.revision
        assert self.store.compacted_revision == self.oldest
        assert self.store.durable_revision == self.published
        now = self.states[self.revision]
        assert self.store.buckets() == sorted(name for name, items in now.items() if items)
        for model in self.watches:
            if model.cut_off:
                assert model.watch.overflowed
            elif model.waiting:
                assert model.watch.last_revision == max(model.live_from, model.waiting[0][0] - 1)
            else:
                assert model.watch.last_revision == max(model.live_from, self.published)


class DurableStoreMachine(StoreMachine):
    """The same with a data directory: watchers see what was flushed, and reopening keeps the state."""

    durable = True


TestStoreModel = StoreMachine.TestCase
TestStoreModel.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestDurableStoreModel = DurableStoreMachine.TestCase
TestDurableStoreModel.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
