"""The versioned store: every write moves one global revision by one, and watchers see all of them in order.

Everything here is synchronous and in memory, for one thread. What "durable" means when there is a journal
stands in ``commit.py``; how events reach watchers without being reordered, in ``watch.py``.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Self

from holokube.base.errors import (
    KeyExists,
    KeyMissing,
    RevisionInFuture,
    RevisionMismatch,
    RevisionTooOld,
    StoreReadOnly,
)
from holokube.kube.types import JsonObject
from holokube.store.bucket import Bucket
from holokube.store.commit import GroupCommit
from holokube.store.journal import FIRST_REVISION, Journal, Row
from holokube.store.snapshot import read_snapshot, write_snapshot
from holokube.store.values import EventType, Page, Stored, StoreEvent, Tally, stamp
from holokube.store.watch import Announcer, Watch

__all__ = ["EventType", "Page", "Store", "StoreEvent", "Stored", "Watch"]

HISTORY_EVENTS = 100_000
WATCH_BUFFER_EVENTS = 10_000


class Store:
    """Objects by bucket (``pods``, ``deployments.apps``) and key (``namespace/name`` or ``name``).

    ``history`` bounds the events kept, over all buckets, for watches that resume and lists of older
    revisions. A ``journal`` makes writes durable and belongs to the store from then on; ``commit_inline``
    is for virtual time (see ``commit.py``).
    """

    def __init__(
        self,
        *,
        history: int = HISTORY_EVENTS,
        journal: Journal | None = None,
        commit_inline: bool = False,
    ) -> None:
        if history < 0:
            raise ValueError(f"history must be 0 or more events, not {history}")
        self.revision = FIRST_REVISION
        self._history = history
        self._buckets: dict[str, Bucket] = {}
        self._order: deque[Bucket] = deque()  # the bucket of every event in the window, oldest first
        self._compacted = 0
        self._published = FIRST_REVISION
        self._announcer = Announcer()
        self._tallies: dict[frozenset[str], Tally] = {}
        self._journal = journal
        self._commit: GroupCommit | None = None
        self.is_durable_at_once = journal is None
        """Whether there is no disk to wait for, ever."""
        self._unpublished: deque[tuple[Bucket, StoreEvent]] = deque()
        self._refusal: StoreReadOnly | None = None
        self._closed = False
        if journal is not None:
            self._open_journal(journal, inline=commit_inline)

    # Reading

    @property
    def compacted_revision(self) -> int:
        """The oldest revision that lists and watches can still start from."""
        return self._compacted

    @property
    def durable_revision(self) -> int:
        """The newest revision that is on disk; without a journal, the newest one."""
        return self.revision if self._commit is None else self._commit.durable_revision

    def buckets(self) -> list[str]:
        """The names of the buckets that hold something, sorted."""
        return sorted(name for name, shelf in self._buckets.items() if shelf.items)

    def get(self, bucket: str, key: str) -> Stored | None:
        shelf = self._buckets.get(bucket)
        return None if shelf is None else shelf.items.get(key)

    def list(
        self,
        bucket: str,
        prefix: str = "",
        *,
        at_revision: int | None = None,
        start_after: str = "",
        limit: int = 0,
    ) -> Page:
        """The objects whose key starts with ``prefix``, in byte order of the keys, now or at a revision."""
        if limit < 0:
            raise ValueError(f"limit must be 0 (no limit) or more, not {limit}")
        if at_revision is not None:
            self._require_in_window(at_revision)
        revision = self.revision if at_revision is None else at_revision
        shelf = self._buckets.get(bucket)
        if shelf is None:
            return Page([], revision, more=False, remaining=0)
        if revision == self.revision:
            return shelf.page(prefix, start_after, limit, revision)
        return shelf.page_at(prefix, start_after, limit, revision)

    def count(self, bucket: str, prefix: str = "") -> int:
        shelf = self._buckets.get(bucket)
        return 0 if shelf is None else shelf.count(prefix)

    def tally(self, buckets: frozenset[str]) -> Tally:
        """Counts whatever happens to some buckets from now on: writes, and that these are shown to watchers or taken
        back. Meant for buckets that are seldom written to."""
        found = self._tallies.get(buckets)
        if found is None:
            found = self._tallies[buckets] = Tally()
            for name in buckets:
                shelf = self._shelf(name)
                shelf.tallies = (*shelf.tallies, found)
        return found

    def watch(
        self, bucket: str, prefix: str = "", *, since: int, buffer: int = WATCH_BUFFER_EVENTS
    ) -> Watch:
        """The events after revision ``since``: first those that happened already, then live ones."""
        if buffer < 1:
            raise ValueError(f"buffer must be at least 1 event, not {buffer}")
        if self._closed:
            raise _closed()
        self._require_in_window(since)
        shelf = self._shelf(bucket)
        watch = Watch(
            bucket,
            prefix,
            since=since,
            buffer=buffer,
            replay=shelf.events_between(since, self._published, prefix),
            published=self._published_revision,
            detach=shelf.watches.discard,
        )
        shelf.watches.add(watch)
        return watch

    # Writing

    # An object is copied as far as it has to carry its revision, unless it is ``owned``: nobody but the writer has it,
    # nor its metadata, and the writer gives it away.

    def create(self, bucket: str, key: str, obj: Mapping[str, Any], *, owned: bool = False) -> Stored:
        """Stores a new object; KeyExists when the key is taken."""
        shelf = self._shelf(bucket)
        if key in shelf.items:
            raise KeyExists(
                f"{bucket} {key!r} exists already, at revision {shelf.items[key].revision}",
                hint="Update it, or use another name.",
            )
        revision = self.revision + 1
        stored = Stored(stamp(obj, revision, owned=owned), revision)
        self._apply(shelf, StoreEvent("ADDED", key, stored, None, revision))
        return stored

    def update(
        self, bucket: str, key: str, obj: Mapping[str, Any], *, expected: int | None = None, owned: bool = False
    ) -> Stored:
        """Replaces an object; with ``expected``, only if it still has that revision."""
        shelf = self._buckets.get(bucket)
        previous = None if shelf is None else shelf.items.get(key)
        if shelf is None or previous is None or (expected is not None and previous.revision != expected):
            raise self._unexpected(bucket, key, expected)
        revision = self.revision + 1
        if owned and type(obj) is dict:
            # As ``stamp`` has it, without a call: there is nothing that happens more often.
            obj["metadata"]["resourceVersion"] = str(revision)
            stored = Stored(obj, revision)
        else:
            stored = Stored(stamp(obj, revision), revision)
        self._apply(shelf, StoreEvent("MODIFIED", key, stored, previous, revision))
        return stored

    def delete(
        self, bucket: str, key: str, *, expected: int | None = None, final: JsonObject | None = None
    ) -> Stored:
        """Removes an object and returns its last state, carrying the revision of the deletion.

        ``final`` is shown to watchers as that last state in place of the stored one.
        """
        shelf = self._buckets.get(bucket)
        previous = None if shelf is None else shelf.items.get(key)
        if shelf is None or previous is None or (expected is not None and previous.revision != expected):
            raise self._unexpected(bucket, key, expected)
        revision = self.revision + 1
        stored = Stored(stamp(previous.obj if final is None else final, revision), revision)
        self._apply(shelf, StoreEvent("DELETED", key, stored, previous, revision))
        return stored

    # Durability

    async def durable(self, revision: int | None = None) -> None:
        """Returns once ``revision`` (the newest, unless told) is on disk; without a journal, at once."""
        if revision is None:
            revision = self.revision
        if self._commit is not None:
            if self._commit.failure is None:
                self._require_existing(revision)
            await self._commit.wait(revision)

    def flush(self) -> None:
        """Like ``durable`` for callers without an event loop: blocks until everything is on disk."""
        if self._commit is not None and not self._closed:
            self._commit.flush()

    def close(self) -> None:
        """Flushes, ends all watches and gives the data directory back. Closing twice is fine."""
        if self._closed:
            return
        try:
            if self._commit is not None and self._commit.failure is None:
                self._commit.flush()
        finally:
            self._closed = True
            self._refusal = self._refusal or _closed()
            if self._journal is not None:
                self._journal.close()
            for shelf in self._buckets.values():
                for watch in tuple(shelf.watches):
                    self._announcer.end(watch)
            self._announcer.run()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Snapshots

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the current state to a file, atomically; gzipped if the name ends in ``.gz``.

        With a journal it is the durable state. This works after the journal's disk has failed, too.
        """
        if self._refusal is None:
            self.flush()
        count = sum(len(shelf.items) for shelf in self._buckets.values())
        rows = (
            (name, key, stored) for name in self.buckets() for key, stored in self.list(name).items
        )
        write_snapshot(path, self.revision, count, rows)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        history: int = HISTORY_EVENTS,
        journal: Journal | None = None,
        commit_inline: bool = False,
    ) -> Self:
        """A store with a saved state, its revisions kept. A ``journal`` must be empty; it gets the state."""
        if journal is None:
            store = cls(history=history)
            snapshot = read_snapshot(path)
            store._restore(snapshot.revision, snapshot.rows)
            return store
        try:
            snapshot = read_snapshot(path)
            journal.replace(snapshot.revision, snapshot.rows)
        except BaseException:
            journal.close()
            raise
        return cls(history=history, journal=journal, commit_inline=commit_inline)

    # Inside

    def _shelf(self, bucket: str) -> Bucket:
        shelf = self._buckets.get(bucket)
        if shelf is None:
            shelf = self._buckets[bucket] = Bucket(bucket)
        return shelf

    def _unexpected(self, bucket: str, key: str, expected: int | None) -> KeyMissing | RevisionMismatch:
        """Why an object cannot be replaced or removed."""
        stored = self.get(bucket, key)
        if stored is None:
            return KeyMissing(f"there is no {bucket} {key!r}", hint="Create it first.")
        return RevisionMismatch(
            f"{bucket} {key!r} is at revision {stored.revision}, not at {expected}: another write came first",
            hint="Read it again, apply the change to what you read, and retry.",
        )

    def _apply(self, shelf: Bucket, event: StoreEvent) -> None:
        if self._refusal is not None:
            raise StoreReadOnly(self._refusal.message, hint=self._refusal.hint) from self._refusal
        commit = self._commit
        if commit is not None:
            # The journal comes first: if it cannot take the event, nothing has happened.
            commit.append(shelf.name, event)
        self.revision = event.revision
        what = event.type
        if what == "MODIFIED":
            shelf.items[event.key] = event.stored
        elif what == "ADDED":
            shelf.put(event.key, event.stored)
        else:
            shelf.remove(event.key)
        shelf.events.append(event)
        order = self._order
        order.append(shelf)
        if len(order) > self._history:
            self._compacted = order.popleft().events.popleft().revision
        if shelf.tallies:
            for tally in shelf.tallies:
                tally.count += 1
        if commit is not None:
            self._unpublished.append((shelf, event))
            return
        self._published = event.revision
        watches = shelf.watches
        if watches.count:
            announcer = self._announcer
            announcer.push(watches, event)
            # Most of what is written joins what others have been told of, and not read.
            if announcer.queue:
                announcer.run()

    def _open_journal(self, journal: Journal, *, inline: bool) -> None:
        try:
            self._restore(journal.revision, journal.rows())
        except BaseException:
            journal.close()
            raise
        self._commit = GroupCommit(
            journal, inline=inline, on_durable=self._publish_until, on_failure=self._roll_back
        )

    def _restore(self, revision: int, rows: Iterable[Row]) -> None:
        for bucket, key, stored in rows:
            self._shelf(bucket).put(key, stored)
        self.revision = self._published = revision
        # Nothing has happened before the first revision, so nothing is missing from the window.
        self._compacted = 0 if revision == FIRST_REVISION else revision

    def _published_revision(self) -> int:
        return self._published

    def _publish_until(self, revision: int) -> None:
        """Shows the watchers what has become durable; listeners hear of it once, after the last event."""
        unpublished = self._unpublished
        while unpublished and unpublished[0][1].revision <= revision:
            shelf, event = unpublished.popleft()
            for tally in shelf.tallies:
                tally.count += 1
            if shelf.watches.count:
                self._announcer.push(shelf.watches, event)
        self._published = revision
        self._announcer.run()

    def _roll_back(self, failure: StoreReadOnly) -> None:
        """Takes back every write that will never be durable, the newest first."""
        self._refusal = failure
        while self._unpublished:
            shelf, event = self._unpublished.pop()
            shelf.undo(event)
            for tally in shelf.tallies:
                tally.count += 1
            if self._order:
                self._order.pop()
        self.revision = self._published
        self._compacted = min(self._compacted, self.revision)

    def _require_existing(self, revision: int) -> None:
        if revision > self.revision:
            raise RevisionInFuture(
                f"revision {revision} does not exist yet, the newest is {self.revision}",
                hint="Use a revision that this store has given out.",
            )

    def _require_in_window(self, revision: int) -> None:
        self._require_existing(revision)
        if revision < self._compacted:
            raise RevisionTooOld(
                f"revision {revision} has left the history window, the oldest one kept is {self._compacted}",
                hint="List again, and continue from the revision of that list.",
            )


def _closed() -> StoreReadOnly:
    return StoreReadOnly("the store is closed", hint="Open it again.")
