"""Group commit: many writers share one flush of the disk.

What durable means here:

- A write changes the state in memory at once, so that the next writer builds on it. It is *acknowledged*
  when ``await store.durable(revision)`` (or ``store.flush()``) has returned: then it is on disk.
- Watchers see an event only once it is durable. A crash takes revisions back that were never acknowledged,
  and the next process gives them out again; a watcher that had seen them would resume from a revision that
  now means something else.
- ``get`` and ``list`` do see writes that are on their way. Whoever hands such a reading to somebody outside
  the process awaits ``durable(page.revision)`` first; that is free when nothing is on its way.
- When a commit fails (disk full, disk gone), everything not yet durable is undone in memory, its writers
  get ``StoreReadOnly``, no watcher ever sees it, and the store refuses further writes until it is opened
  again. Reads go on. Trying again instead would be wrong: after a failed flush the kernel may forget
  which pages were never written, and report success the second time.

Commits run on a worker thread of the running event loop, so that a slow disk does not stop the loop, and
the events of the next commit gather meanwhile. With ``inline`` they run on the loop itself: under virtual
time the order of events must not depend on how fast the disk is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holokube.base.errors import StoreReadOnly
from holokube.base.log import get_logger
from holokube.store.journal import Journal
from holokube.store.values import StoreEvent

_log = get_logger(__name__)


class GroupCommit:
    """Brings appended events to disk soon, and says when they are there."""

    def __init__(
        self,
        journal: Journal,
        *,
        inline: bool,
        on_durable: Callable[[int], None],
        on_failure: Callable[[StoreReadOnly], None],
    ) -> None:
        self.failure: StoreReadOnly | None = None
        self.durable_revision = journal.revision
        self._journal = journal
        self._inline = inline
        self._on_durable = on_durable
        self._on_failure = on_failure
        self._appended_revision = journal.revision
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        # The loop on which a commit is scheduled or under way. A loop that was closed in between never
        # answers, so another loop does not wait for it but starts its own commit.
        self._busy_loop: asyncio.AbstractEventLoop | None = None

    def append(self, bucket: str, event: StoreEvent) -> None:
        """Takes an event; raises, with nothing changed, when it could never be written."""
        self._journal.append(bucket, event)
        self._appended_revision = event.revision
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # Without a loop nobody can run later: the caller flushes.
        self._schedule(loop)

    async def wait(self, revision: int) -> None:
        """Returns once ``revision`` is on disk; StoreReadOnly when it never will be."""
        if revision <= self.durable_revision:
            return
        if self.failure is not None:
            raise _copy(self.failure)
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append((revision, waiter))
        self._schedule(loop)
        await waiter

    def flush(self) -> None:
        """Brings everything to disk before it returns, blocking the caller."""
        if self.failure is not None:
            raise _copy(self.failure)
        # A listener that hears of the first writes may add more.
        while self._appended_revision > self.durable_revision:
            self._commit()
            if self.failure is not None:
                raise _copy(self.failure)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._busy_loop is not loop:
            self._busy_loop = loop
            # Not at once: the writers that are ready in this turn of the loop join the same commit.
            loop.call_soon(self._start, loop)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.failure is not None or self._appended_revision <= self.durable_revision:
            self._release(loop)
        elif self._inline:
            self._release(loop)
            self._commit()
        else:
            job = loop.run_in_executor(None, self._journal.commit)
            job.add_done_callback(lambda done: self._finish(loop, done))

    def _finish(self, loop: asyncio.AbstractEventLoop, done: asyncio.Future[int]) -> None:
        self._release(loop)
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._fail(error)
            return
        self._advance(done.result())
        if self._appended_revision > self.durable_revision and self.failure is None:
            self._schedule(loop)

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._busy_loop is loop:
            self._busy_loop = None

    def _commit(self) -> None:
        try:
            revision = self._journal.commit()
        except Exception as error:
            self._fail(error)
        else:
            self._advance(revision)

    def _advance(self, revision: int) -> None:
        if revision <= self.durable_revision:
            return
        self.durable_revision = revision
        waiting, self._waiters = self._waiters, []
        for wanted, waiter in waiting:
            if wanted > revision:
                self._waiters.append((wanted, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._on_durable(revision)

    def _fail(self, error: BaseException) -> None:
        if self.failure is not None:
            return
        # An earlier commit may have succeeded on the worker thread without having been reported yet.
        self._advance(self._journal.revision)
        if isinstance(error, StoreReadOnly):
            self.failure = error
        else:
            self.failure = StoreReadOnly(f"cannot make writes durable: {error}", hint="Restart.")
            self.failure.__cause__ = error
        _log.error("the store is read-only from now on", reason=self.failure.message, hint=self.failure.hint)
        waiting, self._waiters = self._waiters, []
        self._on_failure(self.failure)
        for _, waiter in waiting:
            if not waiter.done():
                waiter.set_exception(_copy(self.failure))


def _copy(failure: StoreReadOnly) -> StoreReadOnly:
    """Each raiser gets an exception of its own: a shared one would collect everybody's traceback."""
    copy = StoreReadOnly(failure.message, hint=failure.hint)
    copy.__cause__ = failure
    return copy
