"""Requests over a bounded set of connections: written together, answered together.

Several requests are under way on each connection, one behind the other; a server answers them in order. While any
is, the connections are looked at every ``gather_s``, all in one wake-up; while none is, they are only watched for
their end. A connection that breaks leaves it open whether its requests were carried out, so those fail and whoever
sent them decides; requests behind an announced end (``Connection: close``) were not, and go out again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError, HolokubeError, TransportError
from holokube.base.log import get_logger
from holokube.client.http_errors import transport_error
from holokube.hollow.wire.answers import Answer, AnswerParser, WireError
from holokube.hollow.wire.connection import Connection
from holokube.hollow.wire.dialer import Dialer
from holokube.hollow.writes import no_answer

REDIAL_FIRST_S = 0.1
REDIAL_MAX_S = 1.0
"""Kept short: after a restart of the server, every lease waits for this."""
MAX_RETRIES = 10
MAX_RETRY_AFTER_S = 60


class Request(Protocol):
    """One write on its way."""

    since_s: float
    """When it was handed in, on the monotonic clock."""
    tries: int
    retries_429: bool

    @property
    def what(self) -> str:
        """How messages name it."""

    def encode(self, prefix: bytes, head: bytes, now_s: float) -> bytes | None:
        """The bytes to send now; None if it must not be sent any more, which it has told its owner then."""

    def answered(self, answer: Answer) -> None: ...

    def failed(self, error: HolokubeError) -> None: ...


class _Line:
    """A connection and what is under way on it."""

    __slots__ = ("certificates", "closing", "connection", "head_since_s", "outbox", "parser", "waiting")

    def __init__(self, connection: Connection, certificates: int) -> None:
        self.connection = connection
        self.certificates = certificates
        self.parser = AnswerParser()
        self.waiting: deque[Request] = deque()
        self.outbox: list[bytes] = []
        self.head_since_s = 0.0
        """Since when the server owes the next answer."""
        self.closing = False


def _freest(lines: list[_Line]) -> _Line | None:
    return min(lines, key=lambda line: len(line.waiting), default=None)


class WirePool:
    """Connections of one purpose."""

    def __init__(
        self,
        clock: Clock,
        dialer: Dialer,
        *,
        name: str,
        connections: int,
        depth: int,
        spread_at: int,
        gather_s: float,
        timeout_s: float,
        priorities: int = 1,
    ) -> None:
        """At most ``depth`` requests are under way per connection; another connection is opened when all there are
        have ``spread_at`` or more."""
        self._clock = clock
        self._dialer = dialer
        self._connections = connections
        self._depth = depth
        self._spread_at = spread_at
        self._gather_s = gather_s
        self._timeout_s = timeout_s
        self._queues: tuple[deque[Request], ...] = tuple(deque() for _ in range(priorities))
        self._lines: list[_Line] = []
        self._dialing: asyncio.Task[None] | None = None
        self._redial_s = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._pumping: asyncio.Handle | None = None
        self._polling: asyncio.TimerHandle | None = None
        self._later: set[asyncio.TimerHandle] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._closed = False
        self.sent = 0
        self.reconnects = 0
        self._log = get_logger("holokube.hollow.wire").bind(pool=name)

    @property
    def queued(self) -> int:
        """How many requests have not been sent."""
        return sum(map(len, self._queues))

    def queued_at(self, priority: int) -> int:
        return len(self._queues[priority])

    @property
    def under_way(self) -> int:
        """How many requests wait for their answer."""
        return sum(len(line.waiting) for line in self._lines)

    @property
    def is_redialing(self) -> bool:
        """Whether the server could not be reached when it was last tried."""
        return self._redial_s > 0

    @property
    def open_connections(self) -> int:
        return len(self._lines)

    def submit(self, request: Request, priority: int = 0) -> None:
        """Sends it at the end of this turn of the event loop, together with everything else of this turn."""
        request.since_s = self._clock.monotonic()
        self._queues[priority].append(request)
        self._pump_soon()

    async def close(self) -> None:
        """Hangs up; whatever was under way is forgotten, unanswered."""
        self._closed = True
        for handle in (self._pumping, self._polling, *self._later):
            if handle is not None:
                handle.cancel()
        tasks = {task for task in (self._dialing, self._refreshing, *self._asking) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for line in self._lines:
            line.connection.close()
        self._lines.clear()
        for queue in self._queues:
            queue.clear()

    # Sending

    def _pump_soon(self) -> None:
        if self._pumping is None and not self._closed:
            self._pumping = asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = None
        if self._closed or not any(self._queues):
            return
        if not self._dialer.is_fresh:
            if self._refreshing is None:
                self._refreshing = asyncio.create_task(self._refresh(), name="wire credentials")
            return
        now_s = self._clock.time()
        lines = [line for line in self._lines if not line.closing]
        line = _freest(lines)
        for queue in self._queues:
            while queue and line is not None:
                if len(line.waiting) >= self._spread_at:
                    # Up to here a connection is filled, because each one written to costs a call of the kernel.
                    line = _freest(lines)
                    assert line is not None
                    if len(line.waiting) >= self._depth:
                        break
                self._put(line, queue.popleft(), now_s)
        for line in lines:
            self._flush(line)
        fewest = min((len(line.waiting) for line in self._lines if not line.closing), default=self._spread_at)
        if len(self._lines) < self._connections and fewest >= self._spread_at and (any(self._queues) or lines):
            self._dial_soon()
        self._poll_later()

    def _put(self, line: _Line, request: Request, now_s: float) -> None:
        data = request.encode(self._dialer.path_prefix, self._dialer.head, now_s)
        if data is None:
            return
        if not line.waiting:
            line.head_since_s = self._clock.monotonic()
            line.connection.when_readable(None)
        line.waiting.append(request)
        line.outbox.append(data)

    def _flush(self, line: _Line) -> None:
        if not line.outbox:
            return
        data = b"".join(line.outbox)
        self.sent += len(line.outbox)
        line.outbox.clear()
        try:
            line.connection.write(data)
        except OSError as error:
            self._lost(line, error)

    async def _refresh(self) -> None:
        try:
            await self._dialer.refresh()
        except (ConfigError, TransportError) as error:
            self._fail_queued(error)
        finally:
            self._refreshing = None
        for line in [*self._lines]:
            if line.certificates != self._dialer.certificates:
                self._retire(line)
        self._pump_soon()

    # Connections

    def _dial_soon(self) -> None:
        if self._dialing is None:
            self._dialing = asyncio.create_task(self._dial(), name="wire dial")

    async def _dial(self) -> None:
        """Opens one connection, however long it takes; what waits meanwhile fails when its time is up."""
        try:
            while True:
                try:
                    certificates = self._dialer.certificates
                    line = _Line(await self._dialer.dial(), certificates)
                except (OSError, ConfigError) as error:
                    self._log_trouble(error)
                    self._expire_queued(error)
                    if not any(self._queues):
                        # Nobody is waiting for it; the next request dials again.
                        return
                    self._redial_s = min(REDIAL_MAX_S, self._redial_s * 2 or REDIAL_FIRST_S)
                    await asyncio.sleep(self._redial_s)
                else:
                    if self._redial_s:
                        self._log.info("connected again", server=self._dialer.server)
                    self._redial_s = 0.0
                    self.reconnects += 1
                    self._lines.append(line)
                    self._watch_idle(line)
                    return
        finally:
            self._dialing = None
            self._pump_soon()

    def _log_trouble(self, error: Exception) -> None:
        if not self._redial_s:
            self._log.warning("cannot connect, trying again", server=self._dialer.server, error=str(error))

    def _expire_queued(self, error: Exception) -> None:
        oldest_s = self._clock.monotonic() - self._timeout_s
        for queue in self._queues:
            while queue and queue[0].since_s <= oldest_s:
                request = queue.popleft()
                self._tell(request.failed, transport_error(error, request.what, self._dialer.server))

    def _fail_queued(self, error: HolokubeError) -> None:
        for queue in self._queues:
            waiting = [*queue]
            queue.clear()
            for request in waiting:
                self._tell(request.failed, error)

    def _watch_idle(self, line: _Line) -> None:
        """Only the end of the connection can come in while nothing is under way."""
        line.connection.when_readable(lambda: self._look(line))

    def _look(self, line: _Line) -> None:
        if line in self._lines and not line.waiting:
            self._read(line)
            if line in self._lines and not line.waiting:
                self._watch_idle(line)

    def _retire(self, line: _Line) -> None:
        """No new requests; those under way are waited for."""
        line.closing = True
        if not line.waiting:
            self._drop(line)

    def _drop(self, line: _Line) -> None:
        if line in self._lines:
            self._lines.remove(line)
        line.connection.close()

    def _lost(self, line: _Line, error: BaseException) -> None:
        self._drop(line)
        waiting, line.waiting = line.waiting, deque()
        for request in waiting:
            self._tell(request.failed, transport_error(error, request.what, self._dialer.server))
        self._pump_soon()

    # Answers

    def _poll_later(self) -> None:
        if self._polling is None and any(line.waiting for line in self._lines):
            self._polling = asyncio.get_running_loop().call_later(self._gather_s, self._poll)

    def _poll(self) -> None:
        self._polling = None
        now_s = self._clock.monotonic()
        for line in [*self._lines]:
            if not line.waiting:
                continue
            self._read(line)
            if not line.waiting:
                if line in self._lines:
                    self._watch_idle(line)
            elif now_s - line.head_since_s > self._timeout_s:
                self._hopeless(line)
        self._pump_soon()
        self._poll_later()

    def _hopeless(self, line: _Line) -> None:
        self._drop(line)
        waiting, line.waiting = line.waiting, deque()
        for request in waiting:
            self._tell(request.failed, no_answer(request.what, self._timeout_s))

    def _read(self, line: _Line) -> None:
        """Takes in what has come on a connection."""
        try:
            data = line.connection.read()
            answers = line.parser.feed(data) if data else []
        except EOFError:
            self._lost(line, ConnectionResetError("closed by the server"))
            return
        except (OSError, WireError) as error:
            self._lost(line, error)
            return
        if answers:
            line.head_since_s = self._clock.monotonic()
        for answer in answers:
            if not line.waiting:
                self._lost(line, WireError("an answer that nobody asked for"))
                return
            request = line.waiting.popleft()
            self._take(request, answer)
            if answer.is_last:
                self._send_again(line)
                return
        if not line.waiting and not line.parser.is_between:
            self._lost(line, WireError("an answer that nobody asked for"))
        elif line.closing and not line.waiting:
            self._drop(line)

    def _send_again(self, line: _Line) -> None:
        """The server hangs up after this answer, and has not looked at what came behind."""
        self._drop(line)
        waiting, line.waiting = line.waiting, deque()
        self._queues[0].extendleft(reversed(waiting))
        self._pump_soon()

    def _take(self, request: Request, answer: Answer) -> None:
        if answer.code == 401 and request.tries == 0:
            request.tries = 1
            task = asyncio.create_task(self._reauthenticate(request, answer), name="wire credentials")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
            return
        if answer.code == 429 and request.retries_429 and request.tries < MAX_RETRIES:
            wait = answer.headers.get("Retry-After", "")
            if wait.isdecimal() and int(wait) <= MAX_RETRY_AFTER_S:
                # Nothing was done, so that even a write may be sent again, when the server says.
                request.tries += 1
                self._submit_after(float(wait), request)
                return
        self._tell(request.answered, answer)

    def _submit_after(self, delay_s: float, request: Request) -> None:
        def again() -> None:
            self._later.discard(handle)
            self.submit(request)

        handle = asyncio.get_running_loop().call_later(delay_s, again)
        self._later.add(handle)

    async def _reauthenticate(self, request: Request, answer: Answer) -> None:
        try:
            others = await self._dialer.rejected()
        except (ConfigError, TransportError):
            others = False
        if others:
            self.submit(request)
        else:
            self._tell(request.answered, answer)

    def _tell(self, callback: Callable[[Answer], None] | Callable[[HolokubeError], None], value: object) -> None:
        try:
            callback(value)  # type: ignore[arg-type]  # each caller pairs a callback with what it takes
        except Exception as error:
            # One bad handler must not keep the others from their answers.
            self._log.exception("handling an answer failed", exc=error)
