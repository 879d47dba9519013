"""Watches as the API means them: selectors, initial events, bookmarks, time-outs.

A selector has edges: an object that starts to match is ADDED for this watcher, one that stops matching is DELETED,
whatever the write itself was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from holokube.apiserver import conversion
from holokube.apiserver.options import ListOptions, parse_revision
from holokube.apiserver.resources import Served
from holokube.apiserver.selection import Selection
from holokube.base.clock import Clock
from holokube.base.errors import RevisionTooOld, WatchOverflow
from holokube.kube.errors import ApiError, Expired
from holokube.kube.types import JsonObject
from holokube.store.store import Store
from holokube.store.values import Stored, StoreEvent
from holokube.store.watch import Watch

BOOKMARK_EVERY_S = 60.0
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchEvent(NamedTuple):
    """What a watcher gets: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    stored: Stored


class WatchStream:
    """One watch. Read it with ``next_batch`` or ``async for``; close it in any case."""

    def __init__(
        self,
        clock: Clock,
        store: Store,
        served: Served,
        selection: Selection,
        options: ListOptions,
        *,
        empty: JsonObject | None = None,
    ) -> None:
        self._clock = clock
        self._served = served
        self._empty = empty or {}
        self._matches = selection.matches
        self._bookmarks = options.bookmarks
        self._ready: list[WatchEvent] = []
        self._watch: Watch | None = None
        self._skip_until = 0
        self._failed = False
        self._deadline = None if options.timeout_s is None else clock.monotonic() + options.timeout_s
        self._next_bookmark = clock.monotonic() + BOOKMARK_EVERY_S
        self._last_bookmark_revision = 0
        self._has_news = False
        self._waiter: asyncio.Future[None] | None = None
        self._open(store, selection, options)

    def _open(self, store: Store, selection: Selection, options: ListOptions) -> None:
        wanted = parse_revision(options.resource_version)
        initial = options.send_initial_events
        if initial is None:
            initial = wanted == 0
        elif not initial and wanted == 0:
            wanted = store.revision
        try:
            if initial:
                page = store.list(self._served.bucket, selection.prefix)
                since = page.revision
                found = [stored for _, stored in page.items]
                self._ready.extend(
                    WatchEvent("ADDED", conversion.to_served(self._served, stored))
                    for stored in found
                    if self._matches is None or self._matches(stored.obj)
                )
                if options.send_initial_events and self._bookmarks:
                    self._ready.append(self._bookmark(since, ended_initial=True))
            else:
                since = min(wanted, store.revision)
            self._skip_until = max(wanted, since)
            self._watch = store.watch(self._served.bucket, selection.prefix, since=since)
        except RevisionTooOld:
            self._ready = [self._too_old(wanted, store)]
            self._failed = True
            return
        self._watch.add_listener(self._on_news)

    def _on_news(self, _watch: Watch) -> None:
        self._wake()

    def _wake(self) -> None:
        self._has_news = True
        _finish(self._waiter)

    def _too_old(self, wanted: int, store: Store) -> WatchEvent:
        return _error(Expired(f"too old resource version: {wanted} ({store.compacted_revision})"))

    def _bookmark(self, revision: int, *, ended_initial: bool = False) -> WatchEvent:
        meta: JsonObject = {"resourceVersion": str(revision)}
        if ended_initial:
            meta["annotations"] = {_INITIAL_EVENTS_END: "true"}
        obj: JsonObject = {
            "kind": self._served.kind,
            "apiVersion": self._served.api_version,
            **self._empty,
            "metadata": meta,
        }
        self._last_bookmark_revision = revision
        return WatchEvent("BOOKMARK", Stored(obj, revision))

    def take_ready(self) -> list[WatchEvent]:
        """Everything that can be had without waiting."""
        ready, self._ready = self._ready, []
        if self._watch is not None and not self._failed:
            try:
                events = self._watch.pop_all()
            except WatchOverflow as problem:
                self._failed = True
                ready.append(_error(Expired(f"too old resource version: {problem}")))
                return ready
            for event in events:
                seen = self._see(event)
                if seen is not None:
                    ready.append(seen)
        return ready

    def _see(self, event: StoreEvent) -> WatchEvent | None:
        """The event as this watcher's selector makes it look."""
        if event.revision <= self._skip_until:
            return None
        matches = self._matches
        if matches is None:
            return WatchEvent(event.type, conversion.to_served(self._served, event.stored))
        previous = event.previous
        matched_before = previous is not None and matches(previous.obj)
        if event.type == "DELETED":
            if not matched_before:
                return None
            return WatchEvent("DELETED", conversion.to_served(self._served, event.stored))
        if matches(event.stored.obj):
            kind = "MODIFIED" if matched_before else "ADDED"
            return WatchEvent(kind, conversion.to_served(self._served, event.stored))
        if matched_before and previous is not None:
            meta = {**previous.obj["metadata"], "resourceVersion": str(event.revision)}
            gone = Stored({**previous.obj, "metadata": meta}, event.revision)
            return WatchEvent("DELETED", conversion.to_served(self._served, gone))
        return None

    async def next_batch(self) -> Sequence[WatchEvent] | None:
        """Events as soon as there are any; None when the watch has ended."""
        while True:
            self._has_news = False
            ready = self.take_ready()
            if ready:
                return ready
            if self._failed or self._watch is None or self._watch.closed:
                return None
            now = self._clock.monotonic()
            if self._deadline is not None and now >= self._deadline:
                return None
            until = self._deadline
            if self._bookmarks:
                if now >= self._next_bookmark:
                    self._next_bookmark = now + BOOKMARK_EVERY_S
                    if self._watch.last_revision > self._last_bookmark_revision:
                        return [self._bookmark(max(self._watch.last_revision, self._skip_until))]
                until = self._next_bookmark if until is None else min(until, self._next_bookmark)
            await self._wait(None if until is None else until - now)

    async def _wait(self, seconds: float | None) -> None:
        """For news, but not longer than told. One future and one timer: thousands of watches wait most of the time."""
        if self._has_news:
            return
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _finish, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        try:
            while (batch := await self.next_batch()) is not None:
                for event in batch:
                    yield event
        finally:
            self.close()

    def close(self) -> None:
        """Give up the watch; closing twice does no harm."""
        if self._watch is not None:
            self._watch.close()
        self._wake()


def _finish(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _error(problem: ApiError) -> WatchEvent:
    return WatchEvent("ERROR", Stored(problem.to_status(), 0))
