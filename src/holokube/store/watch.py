"""Watches: how a reader learns of writes, in revision order, without asking again and again.

A write first puts its event into the buffer of every watch concerned, and only then calls listeners.
So a listener that writes to the store again finds every buffer complete up to its own event, and no
watcher can see two events in the wrong order. Listeners never run nested: the calls a listener causes
wait in the ``Announcer`` until that listener has returned.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self

from holokube.base.errors import WatchClosed, WatchOverflow
from holokube.base.log import get_logger
from holokube.store.values import StoreEvent

_log = get_logger(__name__)


class Watch:
    """The events of one bucket under one prefix. Made by ``Store.watch``; read it, then close it.

    When more than ``buffer`` live events wait unread, the watch is cut off: what waited is dropped and every
    read raises ``WatchOverflow``. Events replayed at the start do not count against the buffer, since they
    are bounded by the history window already and a reader far behind could otherwise never catch up.
    """

    __slots__ = (
        "_buffer", "_detach", "_end_revision", "_overflowed", "_published", "announcing", "bucket", "closed", "limit",
        "listeners", "pending", "prefix", "since", "waiters",
    )

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        since: int,
        buffer: int,
        replay: Iterable[StoreEvent],
        published: Callable[[], int],
        detach: Callable[[Watch], None],
    ) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self.since = since
        self.closed = False
        self.pending: deque[StoreEvent] = deque(replay)
        self.limit = buffer + len(self.pending)
        self.announcing = False
        self._buffer = buffer
        self._published = published
        self._detach = detach
        self.listeners: tuple[Callable[[Watch], None], ...] = ()
        self.waiters: list[asyncio.Future[None]] = []
        """Coroutines in ``next``."""
        self._overflowed = False
        self._end_revision = 0

    @property
    def overflowed(self) -> bool:
        return self._overflowed

    @property
    def last_revision(self) -> int:
        """The revision up to which the reader has been given everything; what a bookmark may say."""
        if self.closed:
            return self._end_revision
        if self.pending:
            return max(self.since, self.pending[0].revision - 1)
        return max(self.since, self._published())

    def pop_all(self) -> list[StoreEvent]:
        """Everything that waits, oldest first; empty when there is nothing or the watch was closed."""
        if self.pending:
            events = list(self.pending)
            self.pending.clear()
            self.limit = self._buffer
            return events
        if self._overflowed:
            raise self._overflow_error()
        return []

    async def next(self) -> StoreEvent:
        """The next event, waiting for it if need be. A cancelled wait loses no event."""
        while not self.pending:
            if self._overflowed:
                raise self._overflow_error()
            if self.closed:
                raise WatchClosed(
                    f"the watch of {self._name()} was closed",
                    hint=f"Open a new watch, from revision {self._end_revision}.",
                )
            # The event stays in the buffer until the reader runs again and takes it, so a cancellation
            # between the wake-up and that moment leaves it for the next reader.
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            try:
                await waiter
            finally:
                self.waiters.remove(waiter)
        event = self.pending.popleft()
        if not self.pending:
            self.limit = self._buffer
        return event

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StoreEvent:
        try:
            return await self.next()
        except WatchClosed:
            raise StopAsyncIteration from None

    def add_listener(self, callback: Callable[[Watch], None]) -> None:
        """Calls ``callback`` when there is something new to read: the first event of a batch, or the end.

        It is called once, then not again until the buffer has been emptied; at once if events wait already
        or the watch has ended. It runs inside the write, after every watch got the event; it may write.
        """
        self.listeners = (*self.listeners, callback)
        self.announce((callback,))

    def remove_listener(self, callback: Callable[[Watch], None]) -> None:
        """Forgets a listener; one that is not there is fine."""
        listeners = list(self.listeners)
        if callback in listeners:
            listeners.remove(callback)
            self.listeners = tuple(listeners)

    def close(self) -> None:
        """Stops the watch and drops what waits unread. Closing twice is fine; listeners are not called."""
        if not self.closed:
            self.listeners = ()
            self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def end(self, *, overflowed: bool = False) -> None:
        """The store's side of closing: detaches, frees the buffer, wakes whoever waits."""
        if self.closed:
            return
        self._end_revision = self.last_revision
        self._overflowed = overflowed
        self.closed = True
        self.pending.clear()
        self._detach(self)
        self.wake()

    def wake(self) -> None:
        """Wakes the coroutines in ``next``. They run later, on their own loop."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def announce(self, listeners: tuple[Callable[[Watch], None], ...]) -> None:
        """Calls listeners, unless somebody has read the news meanwhile."""
        for callback in listeners if self.pending or self.closed else ():
            try:
                callback(self)
            except Exception:
                # The write has happened and the other listeners need to hear of it, so one that fails
                # must not stop either.
                _log.exception("a watch listener failed", bucket=self.bucket, prefix=self.prefix)

    def _overflow_error(self) -> WatchOverflow:
        return WatchOverflow(
            f"the watch of {self._name()} fell more than {self._buffer} events behind and was cut off",
            hint=f"Watch again from revision {self._end_revision}; read faster or ask for a larger buffer.",
        )

    def _name(self) -> str:
        return f"{self.bucket} under {self.prefix!r}" if self.prefix else self.bucket


_Group = dict[Watch, None]


class WatchIndex:
    """The watches of one bucket, found by the keys they want rather than by asking each of them."""

    __slots__ = ("_by_length", "_by_namespace", "_everything", "count", "wanting_all")

    def __init__(self) -> None:
        self.count = 0
        self._everything: _Group = {}
        self.wanting_all: list[_Group] = []
        """What ``wanting`` answers for every key, while no watch has a prefix; empty otherwise."""
        # Prefixes of the form "namespace/": one look-up finds them, whatever their number.
        self._by_namespace: dict[str, _Group] = {}
        # Any other prefix: one look-up per distinct length.
        self._by_length: dict[int, dict[str, _Group]] = {}

    def __iter__(self) -> Iterator[Watch]:
        yield from self._everything
        for groups in (self._by_namespace, *self._by_length.values()):
            for group in groups.values():
                yield from group

    def add(self, watch: Watch) -> None:
        prefix = watch.prefix
        if not prefix:
            group = self._everything
        elif _is_namespace(prefix):
            group = self._by_namespace.setdefault(prefix, {})
        else:
            group = self._by_length.setdefault(len(prefix), {}).setdefault(prefix, {})
        group[watch] = None
        self._count(1)

    def discard(self, watch: Watch) -> None:
        prefix = watch.prefix
        if not prefix:
            del self._everything[watch]
        elif _is_namespace(prefix):
            _remove(self._by_namespace, watch)
        else:
            groups = self._by_length[len(prefix)]
            _remove(groups, watch)
            if not groups:
                del self._by_length[len(prefix)]
        self._count(-1)

    def _count(self, more: int) -> None:
        self.count += more
        is_plain = self._everything and not self._by_namespace and not self._by_length
        self.wanting_all = [self._everything] if is_plain else []

    def wanting(self, key: str) -> list[_Group]:
        """The groups of watches whose prefix ``key`` starts with."""
        found = [self._everything] if self._everything else []
        if self._by_namespace:
            group = self._by_namespace.get(key[: key.find("/") + 1])
            if group is not None:
                found.append(group)
        for length, groups in self._by_length.items():
            group = groups.get(key[:length])
            if group is not None:
                found.append(group)
        return found


class Announcer:
    """Brings events into buffers, then tells listeners, one after the other and never nested."""

    __slots__ = ("_running", "queue")

    def __init__(self) -> None:
        self.queue: deque[Watch] = deque()
        """The watches with news of which their listeners have not heard."""
        self._running = False

    def push(self, watches: WatchIndex, event: StoreEvent) -> None:
        """Puts ``event`` into the buffers of the watches that want it. Call ``run`` after the last one."""
        revision = event.revision
        cut_off: list[Watch] | None = None
        for group in watches.wanting_all or watches.wanting(event.key):
            for watch in group:
                if revision <= watch.since:
                    # The reader listed at a revision that was not durable yet and watches from there.
                    continue
                pending = watch.pending
                waiting = len(pending)
                if waiting >= watch.limit:
                    cut_off = [watch] if cut_off is None else [*cut_off, watch]
                    continue
                pending.append(event)
                if not waiting:
                    if watch.waiters:
                        watch.wake()
                    if not watch.announcing:
                        watch.announcing = True
                        self.queue.append(watch)
        if cut_off is not None:
            for watch in cut_off:
                self.end(watch, overflowed=True)

    def end(self, watch: Watch, *, overflowed: bool = False) -> None:
        """Ends ``watch``; its listeners hear of it in the next ``run``."""
        watch.end(overflowed=overflowed)
        if not watch.announcing:
            watch.announcing = True
            self.queue.append(watch)

    def run(self) -> None:
        """Calls the listeners of all watches with news. Inside a listener this does nothing: the call
        that is running already comes to them in turn."""
        queue = self.queue
        if self._running or not queue:
            return
        self._running = True
        try:
            while queue:
                watch = queue.popleft()
                watch.announcing = False
                watch.announce(watch.listeners)
        finally:
            self._running = False


def _is_namespace(prefix: str) -> bool:
    return prefix.find("/") == len(prefix) - 1


def _remove(groups: dict[str, _Group], watch: Watch) -> None:
    group = groups[watch.prefix]
    del group[watch]
    if not group:
        del groups[watch.prefix]
