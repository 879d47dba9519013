"""The virtual-time loop: jumps, order, the outside world, stalls, limits."""

from __future__ import annotations

import asyncio
import functools
import gc
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock, WallClock
from holokube.base.errors import StalledError
from holokube.base.loop import VirtualTimeLoop, run_virtual
from holokube.base.rng import Rng

YEAR_S = 365 * 86_400.0


# --- time passes only in jumps


def test_a_year_of_sleep_is_over_at_once_and_the_clock_shows_it() -> None:
    async def main(clock: VirtualClock) -> datetime:
        await clock.sleep(YEAR_S)
        assert asyncio.get_running_loop().time() == clock.monotonic() == YEAR_S
        return clock.now()

    assert run_virtual(main) == datetime(2027, 1, 1, tzinfo=UTC)


def test_a_coroutine_runs_on_the_clock_that_is_given() -> None:
    clock = VirtualClock(datetime(2030, 5, 5, tzinfo=UTC))

    async def main() -> str:
        await asyncio.sleep(1.5)
        await clock.sleep(0.5)
        return clock.now().isoformat()

    assert run_virtual(main(), clock=clock) == "2030-05-05T00:00:02+00:00"
    assert run_virtual(main(), clock=clock) == "2030-05-05T00:00:04+00:00"


def test_no_time_passes_while_anything_is_ready() -> None:
    async def main(clock: VirtualClock) -> None:
        for _ in range(1_000):
            await asyncio.sleep(0)
            await clock.sleep(0)
            await clock.sleep(-5)
        assert clock.monotonic() == 0.0

    run_virtual(main)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_every_sleep_ends_exactly_at_its_deadline_and_in_order(delays: list[float]) -> None:
    woken: list[tuple[float, int]] = []

    async def main(clock: VirtualClock) -> None:
        async def sleeper(index: int, delay: float) -> None:
            await clock.sleep(delay)
            assert clock.monotonic() == delay
            woken.append((delay, index))

        await asyncio.gather(*(sleeper(i, delay) for i, delay in enumerate(delays)))

    run_virtual(main)
    assert woken == sorted(woken)


@pytest.mark.parametrize("seed", range(3))
def test_equal_deadlines_fire_in_the_order_they_were_scheduled(seed: int) -> None:
    fired: list[int] = []

    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()

        async def sleeper(index: int) -> None:
            await clock.sleep(5)
            fired.append(index)

        sleepers = []
        for index in range(300):
            # Callbacks and sleeps are mixed; each sleeper starts before the next timer is set.
            if (index * 7 + seed) % 3:
                loop.call_at(5, fired.append, index)
            else:
                sleepers.append(asyncio.create_task(sleeper(index)))
                await asyncio.sleep(0)
        await asyncio.gather(*sleepers)
        await clock.sleep(1)

    run_virtual(main)
    assert fired == list(range(300))


def test_what_is_called_last_comes_after_all_that_is_ready_and_before_time_passes() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        loop = clock_loop(clock)
        order: list[str] = []
        loop.call_later(1.0, order.append, "later")
        loop.call_last(order.append, "last")
        loop.call_last(order.append, "very last")
        loop.call_soon(order.append, "soon")
        loop.call_soon(loop.call_soon, order.append, "made ready")
        await clock.sleep(2.0)
        return order

    assert run_virtual(main) == ["soon", "made ready", "last", "very last", "later"]


def test_what_is_called_last_does_not_wait_for_those_who_never_rest() -> None:
    async def main(clock: VirtualClock) -> None:
        seen: list[str] = []
        clock_loop(clock).call_last(seen.append, "seen")
        for _ in range(20):
            await asyncio.sleep(0)
        assert seen == ["seen"]

    run_virtual(main)


def test_what_is_called_last_can_be_cancelled() -> None:
    async def main(clock: VirtualClock) -> list[str]:
        order: list[str] = []
        clock_loop(clock).call_last(order.append, "never").cancel()
        clock_loop(clock).call_last(order.append, "last")
        await clock.sleep(1.0)
        return order

    assert run_virtual(main) == ["last"]


@pytest.mark.parametrize("debug", [False, True])
def test_a_last_call_can_be_made_over_and_over_in_the_context_it_was_given(debug: bool) -> None:
    who: ContextVar[str] = ContextVar("who")

    async def main(clock: VirtualClock) -> list[str]:
        loop = clock_loop(clock)
        order: list[str] = []
        who.set("first")
        call = loop.last_call(lambda: order.append(f"last, for {who.get()}"), copy_context())
        who.set("other")
        for number in range(2):
            call()
            loop.call_last(order.append, "very last")
            loop.call_soon(order.append, f"soon {number}")
            await clock.sleep(1.0)
        await clock.sleep(1.0)
        return order

    again = ["last, for first", "very last"]
    assert run_virtual(main, debug=debug) == ["soon 0", *again, "soon 1", *again]


@pytest.mark.parametrize("arguments", [(), ("one",), ("one", "two"), ("one", "two", "three")])
def test_callbacks_get_all_their_arguments(arguments: tuple[str, ...]) -> None:
    async def main(clock: VirtualClock) -> list[tuple[str, ...]]:
        got: list[tuple[str, ...]] = []
        loop = clock_loop(clock)
        for call in (loop.call_soon, loop.call_last):
            call(lambda *them: got.append(them), *arguments)
        loop.call_later(1.0, lambda *them: got.append(them), *arguments)
        await clock.sleep(2.0)
        return got

    assert run_virtual(main) == [arguments] * 3


def clock_loop(clock: VirtualClock) -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    assert loop.clock is clock
    return loop


def test_advancing_by_hand_makes_timers_late_but_keeps_their_order() -> None:
    fired: list[tuple[str, float]] = []

    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()

        def fire(name: str) -> None:
            fired.append((name, clock.monotonic()))

        for name, delay in (("b", 2), ("a", 1), ("c", 30)):
            loop.call_later(delay, fire, name)
        clock.advance(10)
        await clock.sleep(100)

    run_virtual(main)
    assert fired == [("a", 10), ("b", 10), ("c", 30)]


def test_a_timer_for_nan_is_refused() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(ValueError, match="NaN"):
            asyncio.get_running_loop().call_later(math.nan, print)
        with pytest.raises(ValueError, match="NaN"):
            await clock.sleep(math.nan)

    run_virtual(main)


# --- asyncio's own tools


def test_timeouts_expire_at_their_virtual_time() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await clock.sleep(31)
        assert clock.monotonic() == 30
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), timeout=60)
        assert clock.monotonic() == 90
        assert await asyncio.wait_for(asyncio.sleep(5, "done"), timeout=6) == "done"
        assert clock.monotonic() == 95

    run_virtual(main)


def test_task_groups_gather_and_async_generators_work() -> None:
    finished: list[str] = []
    unfinished: list[AsyncIterator[int]] = []

    async def main(clock: VirtualClock) -> list[int]:
        async def ticks() -> AsyncIterator[int]:
            try:
                for i in range(1_000):
                    await clock.sleep(1)
                    yield i
            finally:
                await clock.sleep(1)
                finished.append("generator")

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.sleep(i, i)) for i in (3, 1, 2)]
        stream = ticks()
        unfinished.append(stream)
        assert await anext(stream) == 0
        return await asyncio.gather(*tasks)

    assert run_virtual(main) == [3, 1, 2]
    assert finished == ["generator"]


def test_a_failing_task_group_cancels_its_siblings() -> None:
    async def main(clock: VirtualClock) -> None:
        async def fail() -> None:
            await clock.sleep(2)
            raise LookupError("gone")

        siblings: list[asyncio.Task[None]] = []

        async def siblings_and_failure() -> None:
            async with asyncio.TaskGroup() as group:
                siblings.append(group.create_task(clock.sleep(100)))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup) as caught:
            await siblings_and_failure()
        assert isinstance(caught.value.exceptions[0], LookupError)
        assert siblings[0].cancelled()
        assert clock.monotonic() == 2

    run_virtual(main)


def test_cancelled_timers_and_sleeps_never_fire_and_never_hold_time_up() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        fired: list[int] = []
        loop.call_later(1, fired.append, 1).cancel()
        task = asyncio.create_task(clock.sleep(5))
        await asyncio.sleep(0)
        task.cancel()
        await clock.sleep(10)
        assert task.cancelled()
        assert fired == []
        assert clock.monotonic() == 10

    run_virtual(main)


@pytest.mark.parametrize("kind", ["callback", "wait_for", "sleep"])
def test_cancelled_timers_leak_no_memory(kind: str) -> None:
    async def once(clock: VirtualClock) -> None:
        if kind == "callback":
            asyncio.get_running_loop().call_later(YEAR_S, print).cancel()
        elif kind == "wait_for":
            done = asyncio.get_running_loop().create_future()
            done.set_result(None)
            await asyncio.wait_for(asyncio.shield(done), YEAR_S)
        else:
            task = asyncio.ensure_future(clock.sleep(YEAR_S))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.call_later(YEAR_S * 2, print)
        peak = 0
        for _ in range(3_000):
            await once(clock)
            peak = max(peak, len(loop._timers))
        assert peak < 200
        assert clock.monotonic() == 0

    run_virtual(main)


def test_one_callback_that_sets_and_cancels_many_timers_stays_small() -> None:
    async def main(_clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        gc.collect()
        tracemalloc.start()
        for _ in range(20_000):
            loop.call_later(YEAR_S, print).cancel()
        held_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held_bytes < 200_000

    run_virtual(main)


@given(st.integers())
@settings(max_examples=20, deadline=None)
def test_sweeping_keeps_every_live_timer_in_order(seed: int) -> None:
    # Four of five timers are cancelled, so the heap is swept while live timers stand in it.
    rng = Rng(seed)
    plan = [(rng.randrange(21), rng.random() < 0.8) for _ in range(400)]
    fired: list[int] = []

    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        handles = [loop.call_later(delay, fired.append, i) for i, (delay, _) in enumerate(plan)]
        for handle, (_, cancelled) in zip(handles, plan, strict=True):
            if cancelled:
                handle.cancel()
        await clock.sleep(21)

    run_virtual(main)
    assert fired == [i for _, i in sorted((d, i) for i, (d, cancelled) in enumerate(plan) if not cancelled)]


# --- the outside world


def test_time_stands_still_while_an_executor_works() -> None:
    async def main(clock: VirtualClock) -> None:
        async with asyncio.timeout(1):
            await asyncio.to_thread(time.sleep, 0.05)
        assert clock.monotonic() == 0
        with ThreadPoolExecutor(1) as pool:
            assert await asyncio.get_running_loop().run_in_executor(pool, pow, 2, 5) == 32
        assert clock.monotonic() == 0

    run_virtual(main)


def test_a_failing_executor_job_is_reported_and_time_goes_on() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        await clock.sleep(3)
        assert clock.monotonic() == 3

    run_virtual(main)


def test_a_held_loop_waits_for_a_foreign_thread() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        answer = loop.create_future()

        def work() -> None:
            time.sleep(0.02)
            loop.call_soon_threadsafe(answer.set_result, "called back")

        thread = threading.Thread(target=work)
        thread.start()
        with loop.hold():
            async with asyncio.timeout(5):
                assert await answer == "called back"
        thread.join()
        assert clock.monotonic() == 0

    run_virtual(main)


def test_another_thread_can_call_into_a_busy_loop() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        seen = asyncio.Event()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(seen.set,))
        thread.start()
        for _ in range(1_000_000):
            await clock.sleep(1)
            if seen.is_set():
                break
        thread.join()
        assert seen.is_set()

    run_virtual(main)


def test_sockets_talk_while_time_stands_still() -> None:
    async def main(clock: VirtualClock) -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.readline()).upper())
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            async with asyncio.timeout(10):
                writer.write(b"hello\n")
                assert await reader.read() == b"HELLO\n"
            writer.close()
            await writer.wait_closed()
        assert clock.monotonic() == 0
        await clock.sleep(60)

    run_virtual(main)


def test_an_idle_socket_delays_a_jump_but_does_not_prevent_it() -> None:
    async def main(clock: VirtualClock) -> float:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs, pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.get_running_loop().sock_recv(ours, 1)
        return clock.monotonic()

    assert run_virtual(main, io_wait_s=0.001) == 3600


def test_with_endless_patience_time_waits_for_input() -> None:
    async def main(clock: VirtualClock) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        timer = threading.Timer(0.1, theirs.send, (b"x",))
        timer.start()
        with ours, theirs:
            async with asyncio.timeout(1):
                assert await asyncio.get_running_loop().sock_recv(ours, 1) == b"x"
            timer.join()
        assert clock.monotonic() == 0

    run_virtual(main, io_wait_s=math.inf)


def test_child_processes_are_waited_for_with_and_without_pipes() -> None:
    async def main(clock: VirtualClock) -> None:
        code = "import time; time.sleep(0.1); print('out')"
        async with asyncio.timeout(5):
            start = functools.partial(asyncio.create_subprocess_exec, sys.executable, "-c", code)
            silent = await start(stdout=subprocess.DEVNULL)
            assert await silent.wait() == 0
            loud = await start(stdout=subprocess.PIPE)
            assert (await loud.communicate())[0] == b"out\n"
        assert clock.monotonic() == 0

    run_virtual(main)


def test_signal_handlers_run_in_a_loop_that_never_idles() -> None:
    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        seen = asyncio.Event()
        loop.add_signal_handler(signal.SIGUSR1, seen.set)
        os.kill(os.getpid(), signal.SIGUSR1)
        for _ in range(10_000):
            await clock.sleep(1)
            if seen.is_set():
                break
        loop.remove_signal_handler(signal.SIGUSR1)
        assert seen.is_set()

    run_virtual(main)


CTRL_C = """
import asyncio, os, signal, threading
from holokube.base.loop import run_virtual

async def main(clock):
    if {busy}:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            if {busy}:
                await clock.sleep(1)
            else:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.to_thread(__import__("time").sleep, 0.1)
                await clock.sleep(1)
    finally:
        print("cleaned up", flush=True)

run_virtual(main)
"""


@pytest.mark.parametrize("busy", [True, False])
def test_ctrl_c_cancels_main_and_raises_keyboard_interrupt(busy: bool) -> None:
    program = CTRL_C.format(busy=busy)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout == "cleaned up\n"
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


# --- stalls


async def wait_for_nothing() -> None:
    await asyncio.Event().wait()


def test_a_stall_names_the_tasks_and_where_they_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep(7)
        waiting = asyncio.create_task(wait_for_nothing(), name="pump")
        await waiting

    with pytest.raises(StalledError) as caught:
        run_virtual(main)
    message = str(caught.value)
    assert "virtual time stalled at 2026-01-01T00:00:07+00:00" in message
    assert "2 tasks wait forever" in message
    line = wait_for_nothing.__code__.co_firstlineno + 1
    assert f"'pump' at base/test_loop.py:{line} in wait_for_nothing > asyncio/locks.py" in message
    assert "'main' at base/test_loop.py" in message
    assert "_until_limit" not in message
    assert "asyncio.timeout()" in caught.value.hint


def test_a_stall_cleans_its_tasks_up() -> None:
    cleaned: list[str] = []

    async def main(clock: VirtualClock) -> None:
        async def waiter() -> None:
            try:
                await wait_for_nothing()
            finally:
                await clock.sleep(1)
                cleaned.append("waiter")

        background = asyncio.create_task(waiter())
        try:
            await wait_for_nothing()
        finally:
            cleaned.append("main")
        await background

    with pytest.raises(StalledError):
        run_virtual(main)
    assert sorted(cleaned) == ["main", "waiter"]


def test_many_stalled_tasks_are_counted_not_all_listed() -> None:
    async def main(_clock: VirtualClock) -> None:
        await asyncio.gather(*(wait_for_nothing() for _ in range(100)))

    with pytest.raises(StalledError, match=r"101 tasks wait forever(?s:.)*\.\.\. and 81 more"):
        run_virtual(main)


def test_an_endless_sleep_alone_is_a_stall_and_beside_others_it_is_not() -> None:
    async def alone(clock: VirtualClock) -> None:
        await clock.sleep(math.inf)

    async def beside(clock: VirtualClock) -> float:
        task = asyncio.create_task(asyncio.sleep(math.inf))
        await clock.sleep(9)
        task.cancel()
        return clock.monotonic()

    with pytest.raises(StalledError, match=r"base/clock\.py"):
        run_virtual(alone)
    assert run_virtual(beside) == 9


def test_an_error_in_main_comes_out_and_background_tasks_are_cancelled() -> None:
    cancelled: list[bool] = []

    async def main(clock: VirtualClock) -> None:
        async def background() -> None:
            try:
                await clock.sleep(YEAR_S)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        task = asyncio.create_task(background())
        await clock.sleep(1)
        assert not task.done()
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run_virtual(main)
    assert cancelled == [True]


# --- limits


def test_until_lets_everything_due_happen_and_stops_there() -> None:
    clock = VirtualClock()
    beats: list[float] = []

    async def main(clock: VirtualClock) -> None:
        while True:
            await clock.sleep(10)
            beats.append(clock.monotonic())

    assert run_virtual(main, clock=clock, until=timedelta(seconds=30)) is None
    assert beats == [10, 20, 30]
    assert clock.monotonic() == 30
    run_virtual(main, clock=clock, until=datetime(2026, 1, 1, 0, 0, 45, tzinfo=UTC))
    assert beats == [10, 20, 30, 40]
    assert clock.monotonic() == 45


def test_until_reached_lets_main_clean_up_and_answer() -> None:
    async def main(clock: VirtualClock) -> str:
        try:
            await wait_for_nothing()
        except asyncio.CancelledError:
            await clock.sleep(5)
        return f"stopped at {clock.monotonic()}"

    assert run_virtual(main, until=timedelta(hours=1)) == "stopped at 3605.0"


def test_a_main_that_ends_before_the_limit_just_ends() -> None:
    async def main(clock: VirtualClock) -> float:
        await clock.sleep(1)
        return clock.monotonic()

    assert run_virtual(main, until=timedelta(days=1)) == 1


def test_a_cancellation_of_main_by_itself_is_not_taken_for_the_limit() -> None:
    async def main(_clock: VirtualClock) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_virtual(main, until=timedelta(days=1))


def test_a_limit_in_the_past_is_refused() -> None:
    with pytest.raises(ValueError, match="lies before the clock's time"):
        run_virtual(wait_for_nothing(), until=datetime(2025, 1, 1, tzinfo=UTC))


# --- misuse and debugging


def test_running_inside_a_running_loop_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="await the coroutine instead"):
            run_virtual(wait_for_nothing())

    asyncio.run(main())


def test_one_clock_cannot_be_driven_by_two_loops() -> None:
    clock = VirtualClock()
    loop = VirtualTimeLoop(clock)
    with pytest.raises(RuntimeError, match="already driven by another"):
        VirtualTimeLoop(clock)
    loop.close()
    VirtualTimeLoop(clock).close()


def test_a_closed_loop_takes_no_timers() -> None:
    loop = VirtualTimeLoop()
    loop.close()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)


def test_a_failing_callback_reaches_the_exception_handler_and_the_loop_goes_on() -> None:
    seen: list[str] = []

    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: seen.append(repr(context["exception"])))
        loop.call_later(1, lambda: 1 // 0)
        await clock.sleep(2)

    run_virtual(main)
    assert len(seen) == 1
    assert "ZeroDivisionError" in seen[0]


@pytest.mark.parametrize("is_timer", [False, True])
@pytest.mark.parametrize("begins_debugging", [False, True])
def test_a_callback_that_fails_is_told_of_as_by_any_loop(is_timer: bool, begins_debugging: bool) -> None:
    def tell(seen: list[tuple[str, str, str, bool]]) -> None:
        def fail(number: int) -> None:
            loop.stop()
            raise ValueError(number)

        loop.set_exception_handler(
            lambda _loop, told: seen.append(
                (
                    told["message"], repr(told["exception"]), type(told["handle"].cancelled()).__name__,
                    "source_traceback" in told,
                )
            )
        )  # fmt: skip
        loop.set_debug(begins_debugging)
        if is_timer:
            loop.call_later(0.001, fail, 7)
        else:
            loop.call_soon(fail, 7)
        loop.set_debug(False)
        loop.run_forever()

    found: list[list[tuple[str, str, str, bool]]] = [[], []]
    for seen, make in zip(found, (VirtualTimeLoop, asyncio.new_event_loop), strict=True):
        loop = make()
        try:
            tell(seen)
        finally:
            loop.close()
    assert len(found[0]) == 1
    # Whoever asked for it while debugging is remembered.
    assert found[0] == found[1] and found[0][0][3] == begins_debugging


def test_an_exit_in_a_callback_ends_the_loop() -> None:
    loop = VirtualTimeLoop()
    try:
        loop.call_soon(sys.exit, 3)
        with pytest.raises(SystemExit):
            loop.run_forever()
    finally:
        loop.close()


def test_debugging_may_begin_and_end_while_the_loop_runs(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        loop.slow_callback_duration = 0.01
        for is_debugging in (False, True, False):
            loop.set_debug(is_debugging)
            # From the next round on.
            await clock.sleep(0)
            time.sleep(0.02)  # noqa: ASYNC251 - a slow callback is what is wanted
            await clock.sleep(1)

    run_virtual(main)
    assert [record.getMessage().startswith("Executing") for record in caplog.records] == [True]


def test_a_stopped_loop_goes_on_where_it_was() -> None:
    loop = VirtualTimeLoop()
    told: list[str] = []
    try:
        loop.call_soon(told.append, "before")
        loop.call_soon(loop.stop)
        loop.call_soon(told.append, "in the same round")
        loop.call_soon(loop.call_soon, told.append, "in the next")
        loop.run_forever()
        assert told == ["before", "in the same round"]
        loop.call_later(5, loop.stop)
        loop.run_forever()
        assert told == ["before", "in the same round", "in the next"]
        assert loop.time() == 5.0
    finally:
        loop.close()


def test_debug_mode_works_and_measures_slow_callbacks_in_real_time(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()
        loop.slow_callback_duration = 0.01
        timer = loop.call_later(3600, time.sleep, 0.02)
        assert "test_loop.py" in repr(timer)
        await clock.sleep(7200)
        loop.call_later(1, print).cancel()

    run_virtual(main, debug=True)
    assert [record for record in caplog.records if "Executing" in record.getMessage()]


def test_the_wall_clock_runs_on_an_ordinary_loop_with_the_same_code() -> None:
    async def component(clock: WallClock | VirtualClock) -> float:
        before = clock.monotonic()
        await clock.sleep(0.01)
        return clock.monotonic() - before

    assert asyncio.run(component(WallClock())) >= 0.009
    assert run_virtual(component) == 0.01
