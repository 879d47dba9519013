"""Virtual time: an asyncio event loop whose clock jumps to the next timer when nothing is ready.

Component code is the same ``async`` code on both clocks; under ``run_virtual`` a day of timers takes as long
as its callbacks take. There are no ticks. Timers with equal deadlines fire in the order they were set.

What the loop does when no callback is ready, in this order:

1. A job outside the loop is in flight (``run_in_executor``, ``asyncio.to_thread``, name resolution, a child
   process, a ``hold()``): it blocks in real time until one reports back. Virtual time stands still meanwhile,
   so a job never "times out" because the clock ran away from it.
2. File descriptors are registered (sockets, pipes): it waits up to ``io_wait_s`` of real time for input, then
   goes on with 3. Without a timer to jump to it waits for input without limit.
3. It jumps to the next timer. With a ``Pace`` (``set_pace``) it waits in real time first, as long as that asks;
   without one, the default, nothing holds it back.
4. No timer either: it raises ``StalledError`` naming the tasks that would wait forever.

Traps:

* A job that itself waits for virtual time to pass deadlocks, because of rule 1: for example a thread blocked
  in ``run_coroutine_threadsafe(clock.sleep(5), loop).result()``, or a child process that polls a server in
  this loop until something happens "in a minute".
* An idle socket, a listening one included, costs ``io_wait_s`` of real time per jump, and turns a stall into
  a hang. Close servers and client sessions, or use the in-process transport, in long simulations.
* A peer that needs longer than ``io_wait_s`` to answer sees virtual time-outs expire early. Raise
  ``io_wait_s`` (``math.inf`` freezes time until input arrives), or use the wall clock.
* A thread that the loop did not start is unknown to it: wrap the wait for it in ``with loop.hold():``.
* A signal handler is no way for input: waiting for nothing but SIGTERM is a stall.
* ``while True: await clock.sleep(0)`` never lets time pass: nothing is ever idle.
* An infinite delay is no timer. ``asyncio.sleep(math.inf)`` alone is a stall.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import math
import selectors
import time
import traceback
from asyncio.format_helpers import _format_callback_source as _describe_callback
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextvars import Context, copy_context
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, cast, overload

from holokube.base.clock import VirtualClock
from holokube.base.errors import StalledError
from holokube.base.pace import Pace
from holokube.base.stall import describe_tasks

_heappush, _heappop = heapq.heappush, heapq.heappop
_blank = object.__new__
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

DEFAULT_IO_WAIT_S = 0.05

# The heap is swept when it holds more than this many cancelled timers and they are the majority, so the cost
# of a sweep is spread over as many cancellations.
_SWEEP_MIN_CANCELLED = 64

# Without file descriptors the selector is only asked once in so many rounds: that empties the self-pipe, into
# which signals and other threads write, and lets handlers added with add_signal_handler run.
_ROUNDS_BETWEEN_POLLS = 512

# What is called last waits for so many rounds at most: who asks again and again, without ever waiting, whether
# something has happened must get to see it.
_ROUNDS_KEPT_BACK = 4

# A selector takes no infinite wait, and asking the pace again does no harm.
_PACE_WAIT_MAX_S = 3600.0

_asyncio_logger = logging.getLogger("asyncio")


class _CountingSelector(selectors.DefaultSelector):
    """Knows how many file descriptors it watches without being asked through a mapping."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = 0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self.watched += 1
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self.watched -= 1
        return key


class _Call(asyncio.Handle):
    """A Handle that does not ask its loop about debugging: much of the cost of making one.

    ``call_soon`` fills it in by itself, since there is nothing of which there are more.
    """

    __slots__ = ()

    _args: tuple[Any, ...]
    _callback: Callable[..., object]
    _context: Context
    _loop: VirtualTimeLoop
    _repr: str | None
    _source_traceback: traceback.StackSummary | None


class _Timer(asyncio.TimerHandle):
    """A TimerHandle made and cancelled without asking its loop about debugging; ``call_at`` fills it in by itself."""

    __slots__ = ()

    _args: tuple[Any, ...]
    _callback: Callable[..., object]
    _context: Context
    _loop: VirtualTimeLoop
    _repr: str | None
    _scheduled: bool
    """Whether it stands in the loop's heap."""
    _source_traceback: traceback.StackSummary | None
    _when: float

    def remember_origin(self) -> None:
        """Debugging: keep the stack of whoever set this timer, for the loop's exception handler."""
        stack = traceback.extract_stack(limit=12)
        while stack and stack[-1].filename == __file__:
            del stack[-1]
        self._source_traceback = stack

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            # A cancelled timer may stay in the heap for a while; what it would have called need not.
            self._callback = None  # type: ignore[assignment]  # as in asyncio: nobody calls what was cancelled
            self._args = ()
            if self._scheduled:
                self._loop.count_cancelled_timer()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits for time. Use ``run_virtual`` unless you need the loop object itself."""

    # State that BaseEventLoop owns and that the type stubs do not mention.
    _closed: bool
    _debug: bool
    _ready: deque[asyncio.Handle]
    _stopping: bool

    def __init__(self, clock: VirtualClock | None = None, *, io_wait_s: float = DEFAULT_IO_WAIT_S) -> None:
        if not io_wait_s >= 0:
            raise ValueError(f"io_wait_s must be zero or more seconds of real time, not {io_wait_s!r}")
        self._watcher = _CountingSelector()
        super().__init__(self._watcher)
        self._own_fds = self._watcher.watched
        self._clock = VirtualClock() if clock is None else clock
        self._io_wait_s = io_wait_s
        # (deadline, sequence number, what fires). The sequence number makes the order total: equal deadlines
        # keep the order of scheduling, and the third element is never compared.
        self._timers: list[tuple[float, int, _Timer | asyncio.Future[None]]] = []
        self._sequence = count()
        self._cancelled_timers = 0
        self._rounds_to_poll = _ROUNDS_BETWEEN_POLLS
        self._kept_back: list[asyncio.Handle] = []
        self._rounds_kept_back = 0
        self._jobs: set[asyncio.Future[Any]] = set()
        self._children: set[asyncio.SubprocessTransport] = set()
        self._holds = 0
        self._limit_s = math.inf
        self._on_limit: Callable[[], object] | None = None
        self._pace: Pace | None = None
        self._unlisten: Callable[[], None] | None = None
        try:
            self._clock.attach(self)
        except RuntimeError:
            super().close()
            raise

    @property
    def clock(self) -> VirtualClock:
        """The clock this loop drives."""
        return self._clock

    def time(self) -> float:
        return self._clock.monotonic()

    def close(self) -> None:
        self.set_pace(None)
        super().close()
        self._timers.clear()
        self._kept_back.clear()
        self._clock.detach(self)

    # --- scheduling

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None,
    ) -> asyncio.Handle:
        if self._debug or self._closed:
            return super().call_soon(callback, *args, context=context)
        handle = _blank(_Call)
        handle._context = copy_context() if context is None else context  # noqa: SLF001 - our own class, to the end
        handle._loop = self  # noqa: SLF001 - as above
        handle._callback = callback  # noqa: SLF001 - as above
        handle._args = args  # noqa: SLF001 - as above
        handle._cancelled = False  # noqa: SLF001 - as above
        handle._repr = None  # noqa: SLF001 - as above
        handle._source_traceback = None  # noqa: SLF001 - as above
        self._ready.append(handle)
        return handle

    def call_last(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None,
    ) -> asyncio.Handle:
        """As ``call_soon``, but after what is ready now and what that makes ready in turn, for a few rounds.

        For callbacks that take over what others leave for them: they find more of it at once.
        """
        handle = self.call_soon(callback, *args, context=context)
        self._kept_back.append(self._ready.pop())
        return handle

    def last_call(self, callback: Callable[[], object], context: Context) -> Callable[[], object]:
        """What has ``callback`` called as ``call_last`` does, over and over: what that takes is made once.

        It is not to be asked for again before it has been called.
        """
        handle = self.call_last(callback, context=context)
        self._kept_back.pop()
        return partial(self._kept_back.append, handle)

    def call_later(
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if delay is None:
            raise TypeError("delay must not be None")
        return self.call_at(self._clock.elapsed_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None,
    ) -> asyncio.TimerHandle:
        if when is None:
            raise TypeError("when cannot be None")
        if when != when:
            raise ValueError("cannot set a timer for NaN; check the computation of the deadline")
        if self._closed:
            raise RuntimeError("Event loop is closed")
        timer = _blank(_Timer)
        timer._context = copy_context() if context is None else context  # noqa: SLF001 - our own class, to the end
        timer._loop = self  # noqa: SLF001 - as above
        timer._callback = callback  # noqa: SLF001 - as above
        timer._args = args  # noqa: SLF001 - as above
        timer._cancelled = False  # noqa: SLF001 - as above
        timer._repr = None  # noqa: SLF001 - as above
        timer._source_traceback = None  # noqa: SLF001 - as above
        timer._when = when  # noqa: SLF001 - as above
        timer._scheduled = True  # noqa: SLF001 - as above
        if self._debug:
            self._check_thread()  # type: ignore[attr-defined]  # inherited, not in the stubs
            self._check_callback(callback, "call_at")  # type: ignore[attr-defined]  # inherited, not in stubs
            timer.remember_origin()
        _heappush(self._timers, (when, next(self._sequence), timer))
        return timer

    def wake_at(self, when_s: float, future: asyncio.Future[None]) -> None:
        """Complete a future at a time: what ``VirtualClock.sleep`` is made of, cheaper than a call."""
        _heappush(self._timers, (when_s, next(self._sequence), future))

    def forget(self, future: asyncio.Future[None]) -> None:
        """Say that nobody waits any longer for a future given to ``wake_at``."""
        if future.cancel() or future.cancelled():
            self.count_cancelled_timer()

    def count_cancelled_timer(self) -> None:
        """Take note that a timer in the heap was cancelled."""
        # Sweeping here, and not once per round, bounds memory even for one callback that sets and cancels
        # millions of timers.
        self._cancelled_timers += 1
        if self._cancelled_timers > _SWEEP_MIN_CANCELLED and self._cancelled_timers * 2 > len(self._timers):
            live = [timer for timer in self._timers if not timer[2].cancelled()]
            heapq.heapify(live)
            self._timers[:] = live
            self._cancelled_timers = 0

    # --- work outside the loop

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep virtual time still while something unknown to the loop, a thread say, will call back."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Ts], _T], *args: *_Ts,
    ) -> asyncio.Future[_T]:
        future = super().run_in_executor(executor, func, *args)
        self._jobs.add(future)
        future.add_done_callback(self._jobs.discard)
        return future

    async def shutdown_default_executor(self, *args: Any, **kwargs: Any) -> None:
        # The base class joins the pool from a thread of its own, which nothing else would announce.
        with self.hold():
            await super().shutdown_default_executor(*args, **kwargs)

    async def _make_subprocess_transport(self, *args: Any, **kwargs: Any) -> asyncio.SubprocessTransport:
        # A child without pipes is watched by a thread, not by a file descriptor.
        with self.hold():
            start = super()._make_subprocess_transport  # type: ignore[misc]  # inherited, not in the stubs
            transport = cast("asyncio.SubprocessTransport", await start(*args, **kwargs))
        self._children.add(transport)
        return transport

    def _work_in_flight(self) -> bool:
        if self._children:
            self._children = {child for child in self._children if child.get_returncode() is None}
        return bool(self._jobs or self._holds or self._children)

    # --- the limit

    def set_limit(self, at_s: float, callback: Callable[[], object]) -> None:
        """Call ``callback`` once, when all that is due up to ``at_s`` has happened, and lift the limit."""
        self._limit_s = at_s
        self._on_limit = callback

    def clear_limit(self) -> None:
        """Forget the limit."""
        self._limit_s = math.inf
        self._on_limit = None

    # --- the pace

    def set_pace(self, pace: Pace | None) -> None:
        """Let ``pace`` say how fast time passes from now on; None for as fast as possible."""
        if self._unlisten is not None:
            self._unlisten()
        self._pace = pace
        # Whoever changes the pace may be another thread, while this one waits for the next jump.
        self._unlisten = None if pace is None else pace.listen(self._wake)

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # The loop may be closed by now.
            self.call_soon_threadsafe(_nothing)

    def _is_held_back(self, pace: Pace, next_s: float) -> bool:
        """Ask the pace, and wait as it says or until something comes in; False when the jump may happen."""
        wait_s = pace.wait_s(self._clock.monotonic(), next_s) if next_s < math.inf else 0.0
        if wait_s <= 0:
            return False
        self._poll(min(wait_s, _PACE_WAIT_MAX_S))
        return True

    # --- running

    def _run_once(self) -> None:
        """Runs round after round until the loop is to stop: all that asyncio would do in between is to ask for that."""
        ready, timers, kept_back, next_ready = self._ready, self._timers, self._kept_back, self._ready.popleft
        watcher, own_fds, clock = self._watcher, self._own_fds, self._clock
        while True:
            self._rounds_to_poll -= 1
            if self._rounds_to_poll <= 0 or watcher.watched > own_fds:
                self._poll(0)
            if kept_back:
                self._rounds_kept_back += 1
                if not ready or self._rounds_kept_back > _ROUNDS_KEPT_BACK:
                    ready.extend(kept_back)
                    kept_back.clear()
                    self._rounds_kept_back = 0
            if not ready and not self._stopping:
                self._pass_time()
            if timers and timers[0][0] <= clock.elapsed_s:
                self._collect_due()
            # Callbacks added meanwhile wait for the next round, as in every asyncio loop.
            handles = len(ready)
            if self._debug:
                self._run_ready_debugging(ready)
                handles = 0
            for _ in range(handles):
                handle = next_ready()
                if type(handle) is _Call or type(handle) is _Timer:
                    # What Handle._run does, without its call: a day of a cluster has millions of these.
                    if not handle._cancelled:  # noqa: SLF001 - our own class
                        args = handle._args  # noqa: SLF001 - our own class
                        try:
                            # Nearly all have one argument or none, and to hand on any number of them takes longer.
                            if not args:
                                handle._context.run(handle._callback)  # noqa: SLF001 - our own class
                            elif len(args) == 1:
                                handle._context.run(handle._callback, args[0])  # noqa: SLF001 - our own class
                            else:
                                handle._context.run(handle._callback, *args)  # noqa: SLF001 - our own class
                        except (SystemExit, KeyboardInterrupt):
                            raise
                        except BaseException as error:
                            self._report_failure(handle, error)
                elif not handle._cancelled:  # noqa: SLF001 - running handles is the loop's own business
                    handle._run()  # noqa: SLF001 - as above
            # The loop must not keep the last callback's objects alive.
            handle = args = None  # type: ignore[assignment]
            if self._stopping:
                return

    def _report_failure(self, handle: _Call | _Timer, error: BaseException) -> None:
        """What asyncio does with an error that a callback lets out."""
        what = _describe_callback(handle._callback, handle._args)  # noqa: SLF001 - our own class
        about: dict[str, Any] = {"message": f"Exception in callback {what}", "exception": error, "handle": handle}
        if handle._source_traceback:  # noqa: SLF001 - as above
            about["source_traceback"] = handle._source_traceback  # noqa: SLF001 - as above
        self.call_exception_handler(about)

    def _collect_due(self) -> None:
        """Make everything ready whose time has come, in the order of (deadline, scheduling)."""
        timers = self._timers
        now_s = self._clock.elapsed_s
        add_ready = self._ready.append
        while timers and timers[0][0] <= now_s:
            item = _heappop(timers)[2]
            if isinstance(item, _Timer):
                item._scheduled = False  # noqa: SLF001 - our own class
                if item._cancelled:  # noqa: SLF001 - our own class
                    self._cancelled_timers -= 1
                else:
                    add_ready(item)
            elif item.cancelled():
                self._cancelled_timers -= 1
            elif not item.done():
                item.set_result(None)

    def _run_ready_debugging(self, ready: deque[asyncio.Handle]) -> None:
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.cancelled():
                continue
            # Virtual time stands still inside a callback; how long it blocks is a question about real time.
            began_s = time.perf_counter()
            handle._run()  # noqa: SLF001 - running handles is the loop's own business
            took_s = time.perf_counter() - began_s
            if took_s >= self.slow_callback_duration:
                _asyncio_logger.warning("Executing %r took %.3f seconds", handle, took_s)

    def _poll(self, timeout_s: float | None) -> bool:
        """Ask the selector; True when there was input or another thread added a callback."""
        self._rounds_to_poll = _ROUNDS_BETWEEN_POLLS
        events = self._watcher.select(timeout_s)
        self._process_events(events)  # type: ignore[attr-defined]  # inherited, not in the stubs
        return bool(events or self._ready)

    def _pass_time(self) -> None:
        """Nothing is ready: wait for the outside world, or jump."""
        if (self._jobs or self._holds or self._children) and self._work_in_flight():
            self._poll(None)
            return
        timers = self._timers
        while timers and timers[0][2].cancelled():
            _heappop(timers)
            self._cancelled_timers -= 1
        deadline_s = timers[0][0] if timers else math.inf
        if deadline_s <= self._clock.elapsed_s:
            return
        if self._watcher.watched > self._own_fds and self._input_arrives(deadline_s):
            return
        if self._pace is not None and self._is_held_back(self._pace, min(deadline_s, self._limit_s)):
            return
        if deadline_s > self._limit_s:
            self._reach_limit()
        elif deadline_s < math.inf:
            # It was found above to lie ahead.
            self._clock.elapsed_s = deadline_s
        elif not self._poll(0):
            raise self._stalled()

    def _input_arrives(self, deadline_s: float) -> bool:
        """Wait for file descriptors, in real time, before a jump; False when the jump may happen."""
        can_jump = min(deadline_s, self._limit_s) < math.inf
        return self._poll(self._io_wait_s if can_jump and self._io_wait_s < math.inf else None)

    def _reach_limit(self) -> None:
        callback = self._on_limit
        self._clock.advance_to(max(self._limit_s, self._clock.monotonic()))
        self.clear_limit()
        if callback is not None:
            self.call_soon(callback)

    def _stalled(self) -> StalledError:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: (len(task.get_name()), task.get_name()))
        return StalledError(
            f"virtual time stalled at {self._clock.now().isoformat()}: no callback is ready, no timer is set "
            f"and no input can arrive, yet {describe_tasks(tasks)}",
            hint="Complete what these tasks wait for, or bound the wait with asyncio.timeout(); if a thread "
                 "of your own will call back, wait for it inside `with loop.hold():`.",
        )


def _nothing() -> None:
    """What is called where being called is all."""


Main = Callable[[VirtualClock], Awaitable[_T]] | Coroutine[Any, Any, _T]


@overload
def run_virtual(
    main: Main[_T], *, clock: VirtualClock | None = None, until: None = None,
    io_wait_s: float = DEFAULT_IO_WAIT_S, debug: bool | None = None, pace: Pace | None = None,
) -> _T: ...


@overload
def run_virtual(
    main: Main[_T], *, clock: VirtualClock | None = None, until: datetime | timedelta,
    io_wait_s: float = DEFAULT_IO_WAIT_S, debug: bool | None = None, pace: Pace | None = None,
) -> _T | None: ...


def run_virtual(
    main: Main[_T], *, clock: VirtualClock | None = None, until: datetime | timedelta | None = None,
    io_wait_s: float = DEFAULT_IO_WAIT_S, debug: bool | None = None, pace: Pace | None = None,
) -> _T | None:
    """Run ``main`` on virtual time, like ``asyncio.run``; ``main(clock)`` or a coroutine.

    ``until`` (an instant, or a time span from now) ends the run: everything due up to and including that time
    still happens, then ``main`` is cancelled and may clean up, for which time may pass on. The answer is None
    then, unless ``main`` catches the cancellation and returns something. ``pace`` slows it down for those who watch.
    """
    clock = VirtualClock() if clock is None else clock
    coroutine = main if isinstance(main, Coroutine) else _call(main, clock)
    try:
        limit_s = _limit_s(clock, until)
        _refuse_nested_run()
        loop = VirtualTimeLoop(clock, io_wait_s=io_wait_s)
    except BaseException:
        coroutine.close()  # It will never run; without this Python would warn about that as well.
        raise
    loop.set_pace(pace)
    with asyncio.Runner(loop_factory=lambda: loop, debug=debug) as runner:
        return runner.run(_until_limit(loop, coroutine, limit_s))


async def _call(main: Callable[[VirtualClock], Awaitable[_T]], clock: VirtualClock) -> _T:
    return await main(clock)


def _limit_s(clock: VirtualClock, until: datetime | timedelta | None) -> float:
    if until is None:
        return math.inf
    if isinstance(until, timedelta):
        limit_s = clock.monotonic() + until.total_seconds()
    else:
        limit_s = clock.elapsed_at(until)
    if limit_s < clock.monotonic():
        raise ValueError(f"until={until} lies before the clock's time, {clock.now().isoformat()}")
    return limit_s


def _refuse_nested_run() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("run_virtual cannot be called from a running event loop; await the coroutine instead")


async def _until_limit(loop: VirtualTimeLoop, main: Coroutine[Any, Any, _T], limit_s: float) -> _T | None:
    task = asyncio.current_task()
    assert task is not None
    task.set_name("main")
    reached = False

    def stop() -> None:
        nonlocal reached
        reached = True
        task.cancel()

    if limit_s < math.inf:
        loop.set_limit(limit_s, stop)
    try:
        return await main
    except asyncio.CancelledError:
        # Another request to cancel beside the limit's own, Ctrl-C for example, is not ours to swallow.
        if reached and task.uncancel() == 0:
            return None
        raise
    finally:
        loop.clear_limit()
