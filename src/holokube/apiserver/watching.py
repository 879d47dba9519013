"""Watches as the API means them: selectors, initial events, bookmarks, time-outs.

A selector has edges: an object that starts to match is ADDED for this watcher, one that stops matching is DELETED,
whatever the write itself was.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
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


Shown = WatchEvent | StoreEvent
"""An event as a watcher gets it: the store's own where this one sees everything just as it is stored."""


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
        # The stored version of a custom resource may become another one while it is watched.
        self._shows_all = self._matches is None and not served.type.custom and conversion.is_stored_so(served)
        """Whether this watcher always sees everything just as it is stored."""
        self._bookmarks = options.bookmarks
        self._ready: list[WatchEvent] = []
        self._watch: Watch | None = None
        self._skip_until = 0
        self._failed = False
        self._deadline = None if options.timeout_s is None else clock.monotonic() + options.timeout_s
        self._next_bookmark = clock.monotonic() + BOOKMARK_EVERY_S
        self._last_bookmark_revision = 0
        self._is_followed = False
        self._listener: Callable[[], None] | None = None
        self._timekeeper: Callable[[], None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = math.nan
        """For when it is set; equal to nothing while there is none."""
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

    def _on_news(self, _watch: Watch | None = None) -> None:
        if self._waiter is not None:
            _finish(self._waiter)
        if self._listener is not None:
            self._listener()

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

    def take_ready(self) -> Sequence[Shown]:
        """Everything that can be had without waiting."""
        ready, self._ready = self._ready, []
        if self._watch is not None and not self._failed:
            try:
                events = self._watch.pop_all()
            except WatchOverflow as problem:
                self._failed = True
                ready.append(_error(Expired(f"too old resource version: {problem}")))
                return ready
            if self._shows_all or (self._matches is None and conversion.is_stored_so(self._served)):
                if events and events[0].revision <= self._skip_until:
                    events = [event for event in events if event.revision > self._skip_until]
                return [*ready, *events] if ready else events
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

    async def next_batch(self) -> Sequence[Shown] | None:
        """Events as soon as there are any; None when the watch has ended."""
        while True:
            batch = self.poll()
            if batch is None or batch:
                return batch
            waiter = self._waiter = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                self._waiter = None

    def poll(self) -> Sequence[Shown] | None:
        """Events if there are any; None when the watch has ended. Nothing means that one has to wait: a reader in
        ``next_batch`` is woken, and the listener is called."""
        watch = self._watch
        if watch is not None and self._timer_s == self._deadline and not watch.closed:
            # The timer that tells of the end is set, so that this is not the first look. Every other one finds that
            # nothing has come; most others, something that is shown as it is.
            pending = watch.pending
            if not pending:
                return ()
            if self._shows_all and pending[0].revision > self._skip_until:
                return watch.pop_all()
        ready = self.take_ready()
        if ready:
            return ready
        if self._failed or self._watch is None or self._watch.closed:
            return None
        now = self._clock.monotonic()
        if self._deadline is not None and now >= self._deadline:
            return self.due_bookmark() if self._is_followed else None
        until = self._deadline
        # One who is told in the same process needs to know how far he is only when he comes back.
        if self._bookmarks and not (self._is_followed and until is not None):
            if now >= self._next_bookmark:
                self._next_bookmark = now + BOOKMARK_EVERY_S
                due = self.due_bookmark()
                if due is not None:
                    return due
            until = self._next_bookmark if until is None else min(until, self._next_bookmark)
        if until is not None:
            self._set_timer(until)
        return ()

    @property
    def has_news(self) -> bool:
        """Whether there is something to ``poll`` that is not about time."""
        watch = self._watch
        return bool(self._ready) or self._failed or watch is None or watch.closed or bool(watch.pending)

    @property
    def reached(self) -> int:
        """The revision up to which the reader has been given everything that he did not know before."""
        return max(self._watch.last_revision if self._watch is not None else 0, self._skip_until)

    def due_bookmark(self) -> list[WatchEvent] | None:
        """How far the reader is, unless there is nothing to say that he has not been told."""
        reached = self._watch.last_revision if self._watch is not None and self._bookmarks else 0
        return [self._bookmark(max(reached, self._skip_until))] if reached > self._last_bookmark_revision else None

    @property
    def is_out_of_time(self) -> bool:
        """Whether it has ended for no other reason than that its time is over."""
        watch, until = self._watch, self._deadline
        return (
            until is not None and self._clock.monotonic() >= until
            and not self._failed and watch is not None and not watch.closed and not watch.overflowed
        )  # fmt: skip

    def is_of(self, served: Served) -> bool:
        """Whether it shows objects as this very resource has them; a changed definition makes another one of it."""
        return served is self._served

    def last(self, timeout_s: float) -> None:
        """Go on for so long from now, as another watch would that begins where this one ends."""
        self._deadline = self._clock.monotonic() + timeout_s
        self._set_timer(self._deadline)

    def listen(self, on_news: Callable[[], None], on_time: Callable[[], None]) -> None:
        """Have ``on_news`` called, inside the write, when there is something to ``poll``, and ``on_time`` when time has
        come to look whether there is a bookmark, or the end."""
        self._listener, self._timekeeper = on_news, on_time
        self._is_followed = True

    def _set_timer(self, until: float) -> None:
        """A timer is set once per moment, however often there is news before it: thousands of watches wait most of the
        time."""
        if self._timer_s != until:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_at(until, self._on_time)
            self._timer_s = until

    def _on_time(self) -> None:
        self._timer, self._timer_s = None, math.nan
        if self._waiter is not None:
            _finish(self._waiter)
        if self._timekeeper is not None:
            self._timekeeper()

    async def __aiter__(self) -> AsyncIterator[Shown]:
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
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_s = None, math.nan
        self._on_news()


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _error(problem: ApiError) -> WatchEvent:
    return WatchEvent("ERROR", Stored(problem.to_status(), 0))
