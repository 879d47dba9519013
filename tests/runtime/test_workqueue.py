from __future__ import annotations

import asyncio
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.runtime.metrics import Metrics
from holokube.runtime.ratelimit import ExponentialBackoff, TokenBucket, default_limiter
from holokube.runtime.workqueue import QueueShutDown, WorkQueue


def drain(queue: WorkQueue[str]) -> list[str]:
    items = []
    while (item := queue.try_get()) is not None:
        items.append(item)
        queue.done(item)
    return items


def test_an_item_added_twice_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    for item in ("a", "b", "a"):
        queue.add(item)
    assert drain(queue) == ["a", "b"]


def test_an_item_added_while_it_is_processed_comes_again_only_after_done() -> None:
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    queue.add("a")
    assert queue.try_get() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.try_get() is None
    assert (len(queue), queue.depth, queue.processing) == (0, 1, 1)
    queue.done("a")
    assert drain(queue) == ["a"]


def test_done_without_get_is_an_error() -> None:
    queue: WorkQueue[str] = WorkQueue(VirtualClock(), "nodes")
    queue.add("a")
    with pytest.raises(ValueError, match=r"'nodes': done\('a'\) without a get"):
        queue.done("a")


def test_a_delayed_item_comes_when_its_time_has_come() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("late", 5)
    queue.add_after("soon", 1)
    assert drain(queue) == []
    clock.advance(1)
    assert drain(queue) == ["soon"]
    clock.advance(4)
    assert drain(queue) == ["late"]


def test_of_several_delays_the_earliest_counts() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 9)
    clock.advance(2)
    assert drain(queue) == ["a"]
    clock.advance(100)
    assert drain(queue) == []


def test_no_delay_or_a_negative_one_adds_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    queue.add_after("a", 0)
    queue.add_after("b", -3)
    assert drain(queue) == ["a", "b"]


def test_superseded_delays_do_not_pile_up() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    for _ in range(10_000):
        queue.add_after("a", 1000)
        queue.add_after("a", 0.001)
        clock.advance(0.001)
        drain(queue)
    assert len(queue._heap) < 200


def test_higher_priority_goes_first_and_a_second_add_can_raise_it() -> None:
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    queue.add("low", priority=-5)
    queue.add("a")
    queue.add("b")
    queue.add("high", priority=7)
    queue.add("b", priority=7)
    queue.add("high")
    assert drain(queue) == ["high", "b", "a", "low"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from("abcdef"), st.integers(-2, 2))), max_size=40))
def test_the_highest_priority_goes_first_and_of_equal_ones_the_first_to_get_it(
    plan: list[tuple[str, int] | None]
) -> None:
    """Against a list that is sorted for each item taken."""
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    waiting: list[tuple[int, str]] = []
    for step in [*plan, *[None] * 7]:
        if step is None:
            waiting.sort(key=lambda one: -one[0])
            expected = waiting.pop(0)[1] if waiting else None
            assert queue.try_get() == expected
            if expected is not None:
                queue.done(expected)
        else:
            item, priority = step
            known = next((one for one in waiting if one[1] == item), None)
            if known is None or known[0] < priority:
                waiting = [one for one in waiting if one is not known]
                waiting.append((priority, item))
            queue.add(item, priority=priority)
        assert queue.ready == len(waiting)


def test_an_item_raised_while_processed_comes_back_with_that_priority() -> None:
    queue: WorkQueue[str] = WorkQueue(VirtualClock())
    queue.add("a")
    assert queue.try_get() == "a"
    queue.add("b")
    queue.add("a")
    queue.add("a", priority=3)
    queue.done("a")
    assert drain(queue) == ["a", "b"]


def test_failures_wait_five_milliseconds_doubling_up_to_a_thousand_seconds() -> None:
    clock = VirtualClock()
    backoff = ExponentialBackoff()
    delays = [backoff.next_delay_s("a") for _ in range(100)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[17] == pytest.approx(655.36)
    assert set(delays[18:]) == {1000.0}
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    assert queue.num_requeues("a") == 2
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    clock.advance(0.005)
    assert drain(queue) == ["a"]


def test_the_overall_bucket_lets_a_hundred_through_then_ten_per_second() -> None:
    clock = VirtualClock()
    limiter = default_limiter(clock, overall_bucket=True)
    delays = [limiter.next_delay_s(str(n)) for n in range(103)]
    assert set(delays[:100]) == {0.005}
    assert delays[100:] == pytest.approx([0.1, 0.2, 0.3])


def test_a_token_bucket_refills_with_time_up_to_its_burst() -> None:
    clock = VirtualClock()
    bucket = TokenBucket(clock, per_s=1 / 300, burst=2)
    assert [bucket.try_take() for _ in range(3)] == [True, True, False]
    clock.advance(300)
    assert [bucket.try_take() for _ in range(2)] == [True, False]
    clock.advance(1e6)
    assert [bucket.try_take() for _ in range(3)] == [True, True, False]


def test_get_waits_and_one_timer_serves_all() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[int] = WorkQueue(clock)
        taken: list[tuple[float, int]] = []

        async def worker() -> None:
            while True:
                try:
                    item = await queue.get()
                except QueueShutDown:
                    return
                taken.append((clock.monotonic(), item))
                await clock.sleep(0.5)
                queue.done(item)

        workers = [asyncio.create_task(worker()) for _ in range(3)]
        await clock.sleep(0)
        before = len(asyncio.all_tasks())
        for n in range(100):
            queue.add_after(n, 10.0 + n)
        assert len(asyncio.all_tasks()) == before
        assert queue.delayed == 100
        await clock.sleep(200)
        assert taken == [(10.0 + n, n) for n in range(100)]
        queue.shut_down()
        await asyncio.gather(*workers)

    run_virtual(main)


def test_an_earlier_item_moves_the_timer_of_a_waiting_worker_forward() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock)
        getter = asyncio.create_task(queue.get())
        await clock.sleep(0)
        queue.add_after("late", 50)
        queue.add_after("early", 3)
        assert await getter == "early"
        assert clock.monotonic() == 3.0

    run_virtual(main)


def test_a_wake_up_that_hits_a_cancelled_worker_is_passed_on() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock)
        first = asyncio.create_task(queue.get())
        second = asyncio.create_task(queue.get())
        await clock.sleep(0)
        queue.add("a")
        first.cancel()
        assert await second == "a"
        assert first.cancelled()

    run_virtual(main)


def test_who_withdraws_after_the_wake_up_leaves_it_to_the_next() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock)
        loop = asyncio.get_running_loop()
        # Who came last was busy last, and goes on first.
        third, second, first = (queue.arrival(loop) for _ in range(3))
        queue.add("a")
        assert [one.done() for one in (first, second, third)] == [True, False, False]
        queue.withdraw(first)
        assert [one.done() for one in (second, third)] == [True, False]
        # Whoever was not woken takes nothing along.
        queue.withdraw(third)
        assert third.cancelled()
        assert queue.try_get() == "a"
        queue.add_after("b", 5)
        assert queue._timer is None

    run_virtual(main)


def test_a_queue_serves_those_who_wait_in_another_loop_later() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)

    async def main(_clock: VirtualClock) -> str:
        queue.add_after("a", 3)
        item = await queue.get()
        queue.done(item)
        # It waits with a timer set when the loop ends.
        queue.add_after("b", 3)
        waiting = asyncio.create_task(queue.get())
        await clock.sleep(1)
        waiting.cancel()
        await asyncio.wait([waiting])
        return item

    async def again(_clock: VirtualClock) -> str:
        return await queue.get()

    assert run_virtual(main, clock=clock) == "a"
    assert run_virtual(again, clock=clock) == "b"
    assert clock.monotonic() == 6.0


def test_a_cancelled_worker_leaves_no_timer_behind() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock)
        queue.add_after("a", 100)
        getter = asyncio.create_task(queue.get())
        await clock.sleep(0)
        getter.cancel()
        await asyncio.wait([getter])
        assert queue._timer is None

    run_virtual(main)


def test_after_shut_down_queued_items_still_come_and_new_ones_do_not() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock, "pods")
        queue.add("a")
        queue.add_after("delayed", 1)
        queue.shut_down()
        queue.add("b")
        queue.add_after("c", 1)
        assert await queue.get() == "a"
        with pytest.raises(QueueShutDown, match="pods"):
            await queue.get()
        await clock.sleep(5)
        assert queue.try_get() is None

    run_virtual(main)


def test_shut_down_wakes_every_waiting_worker() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock)
        getters = [asyncio.create_task(queue.get()) for _ in range(3)]
        await clock.sleep(0)
        queue.shut_down()
        results = await asyncio.gather(*getters, return_exceptions=True)
        assert [type(result) for result in results] == [QueueShutDown] * 3

    run_virtual(main)


def test_draining_waits_until_everything_is_worked_off() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock)
        queue.add("a")
        queue.add("b")
        assert await queue.get() == "a"
        queue.add("a")
        drained = asyncio.create_task(queue.shut_down_with_drain())
        await clock.sleep(0)
        queue.done("a")
        for expected in ("b", "a"):
            await clock.sleep(1)
            assert not drained.done()
            assert await queue.get() == expected
            queue.done(expected)
        await drained

    run_virtual(main)


def test_a_plain_shut_down_ends_the_draining() -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[str] = WorkQueue(clock)
        queue.add("stuck")
        await queue.get()
        drained = asyncio.create_task(queue.shut_down_with_drain())
        await clock.sleep(10)
        assert not drained.done()
        queue.shut_down()
        await drained

    run_virtual(main)


def test_metrics_have_the_names_and_values_of_client_go() -> None:
    clock = VirtualClock()
    metrics = Metrics()
    queue: WorkQueue[str] = WorkQueue(clock, "pods", metrics=metrics)

    def value(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"workqueue_{name}", {"name": "pods"})

    queue.add("a")
    queue.add("a")
    queue.add("b")
    clock.advance(2)
    assert queue.try_get() == "a"
    queue.add("a")
    clock.advance(3)
    assert (value("adds_total"), value("depth")) == (3, 2)
    assert (value("unfinished_work_seconds"), value("longest_running_processor_seconds")) == (3, 3)
    assert (value("queue_duration_seconds_count"), value("queue_duration_seconds_sum")) == (1, 2)
    queue.done("a")
    assert (value("work_duration_seconds_count"), value("work_duration_seconds_sum")) == (1, 3)
    queue.add_rate_limited("c")
    assert value("retries_total") == 1
    assert value("unfinished_work_seconds") == 0


class QueueMachine(RuleBasedStateMachine):
    """The queue against a naive model: a list of ready items, two sets, and a dict of deadlines."""

    items = st.integers(0, 4)

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.queue: WorkQueue[int] = WorkQueue(self.clock)
        self.ready: list[int] = []
        self.dirty: set[int] = set()
        self.processing: set[int] = set()
        self.delayed: dict[int, float] = {}

    def model_add(self, item: int) -> None:
        if item not in self.dirty:
            self.dirty.add(item)
            if item not in self.processing:
                self.ready.append(item)

    def model_promote(self) -> None:
        now_s = self.clock.monotonic()
        for item, due_s in sorted(self.delayed.items(), key=lambda entry: entry[1]):
            if due_s <= now_s:
                del self.delayed[item]
                self.model_add(item)

    @rule(item=items)
    def add(self, item: int) -> None:
        self.model_add(item)
        self.queue.add(item)

    @rule(item=items, delay_s=st.integers(1, 5))
    def add_after(self, item: int, delay_s: int) -> None:
        due_s = self.clock.monotonic() + delay_s
        # Equal deadlines are handed out in the order they were set, which a dict kept in order models too.
        if item not in self.delayed or due_s < self.delayed[item]:
            self.delayed.pop(item, None)
            self.delayed[item] = due_s
        self.queue.add_after(item, delay_s)

    @rule(seconds=st.integers(1, 4))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.model_promote()

    @rule()
    def get(self) -> None:
        expected = None
        if self.ready:
            expected = self.ready.pop(0)
            self.dirty.remove(expected)
            assert expected not in self.processing
            self.processing.add(expected)
        assert self.queue.try_get() == expected

    @precondition(lambda self: self.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(sorted(self.processing)))
        self.processing.remove(item)
        if item in self.dirty:
            self.ready.append(item)
        self.queue.done(item)

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.queue) == len(self.ready)
        assert self.queue.depth == len(self.dirty)
        assert self.queue.processing == len(self.processing)
        assert self.queue.delayed == len(self.delayed)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_the_queue_behaves_like_its_model = QueueMachine.TestCase


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(-2, 2)), max_size=60))
def test_workers_lose_nothing_and_never_share_an_item(plan: list[tuple[int, int, int]]) -> None:
    async def main(clock: VirtualClock) -> None:
        queue: WorkQueue[int] = WorkQueue(clock)
        seen: Counter[int] = Counter()
        busy: set[int] = set()
        last_done_s: dict[int, float] = {}

        async def worker() -> None:
            while True:
                try:
                    item = await queue.get()
                except QueueShutDown:
                    return
                assert item not in busy
                busy.add(item)
                seen[item] += 1
                started_s = clock.monotonic()
                await clock.sleep(1)
                busy.remove(item)
                last_done_s[item] = started_s
                queue.done(item)

        workers = [asyncio.create_task(worker()) for _ in range(3)]
        last_add_s: dict[int, float] = {}
        for item, delay_s, priority in plan:
            queue.add_after(item, delay_s, priority=priority)
            last_add_s[item] = max(last_add_s.get(item, 0.0), clock.monotonic())
            await clock.sleep(0.25)
        await clock.sleep(200)
        assert set(seen) == {item for item, _, _ in plan}
        # Whatever was asked for has been started after it was asked for.
        assert all(last_done_s[item] >= asked_s for item, asked_s in last_add_s.items())
        queue.shut_down()
        await asyncio.gather(*workers)

    run_virtual(main)


def test_a_delayed_item_that_can_wait_wakes_nobody_until_it_cannot() -> None:
    clock, waits, asked = VirtualClock(), {"calm": [5.0, 5.0], "wild": list[float]()}, list[tuple[str, float]]()

    def postpone(item: str) -> float | None:
        asked.append((item, clock.monotonic()))
        return waits[item].pop(0) if waits[item] else None

    queue: WorkQueue[str] = WorkQueue(clock, postpone=postpone)
    start_s = clock.monotonic()
    queue.add_after("calm", 1)
    queue.add_after("wild", 1)
    clock.advance(1)
    assert drain(queue) == ["wild"]
    assert queue.delayed == 1
    clock.advance(5)
    assert drain(queue) == []
    clock.advance(5)
    assert drain(queue) == ["calm"]
    assert [(item, at_s - start_s) for item, at_s in asked] == [
        ("calm", 1.0), ("wild", 1.0), ("calm", 6.0), ("calm", 11.0)
    ]  # fmt: skip
    queue.add("calm")
    assert drain(queue) == ["calm"], "what somebody adds is handed out, whatever could wait"


def test_an_item_of_which_nobody_can_tell_whether_it_can_wait_is_not_lost() -> None:
    clock = VirtualClock()

    def postpone(item: str) -> float | None:
        if item == "odd":
            raise KeyError("status")
        return None

    queue: WorkQueue[str] = WorkQueue(clock, postpone=postpone)
    for item in ("odd", "even"):
        queue.add_after(item, 1)
    clock.advance(1)
    assert drain(queue) == ["odd", "even"]


def test_a_wait_too_short_to_be_one_is_none() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock, postpone=lambda _: 1e-9)
    queue.add_after("a", 1)
    clock.advance(1)
    assert drain(queue) == ["a"]


def test_what_can_wait_for_ever_is_forgotten_until_somebody_adds_it() -> None:
    clock, waits = VirtualClock(), [math.inf, math.inf]
    queue: WorkQueue[str] = WorkQueue(clock, postpone=lambda _: waits.pop() if waits else None)
    for _ in range(2):
        queue.add_after("a", 1)
        clock.advance(1000)
        assert drain(queue) == []
        assert queue.delayed == 0
    queue.add_after("a", 1)
    clock.advance(1)
    assert drain(queue) == ["a"]


def test_an_item_may_be_added_at_a_time_of_the_clock_and_of_several_the_earliest_counts() -> None:
    clock = VirtualClock()
    clock.advance(100)
    queue: WorkQueue[str] = WorkQueue(clock)
    for at_s in (130, 110, 120):
        queue.add_at("a", at_s)
    queue.add_at("past", 90)
    assert drain(queue) == ["past"]
    clock.advance(9)
    assert drain(queue) == []
    clock.advance(1)
    assert drain(queue) == ["a"]
    clock.advance(100)
    assert drain(queue) == []
    queue.shut_down()
    queue.add_at("late", 300)
    assert queue.delayed == 0


def test_a_worker_that_waits_gets_an_item_that_was_postponed_when_its_time_has_come() -> None:
    async def main(clock: VirtualClock) -> None:
        waits = [3.0, 4.0]
        queue: WorkQueue[str] = WorkQueue(clock, postpone=lambda _: waits.pop(0) if waits else None)
        queue.add_after("a", 2)
        assert await queue.get() == "a"
        assert clock.monotonic() == 9.0

    run_virtual(main)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 6), st.integers(-2, 2)), max_size=30),
    st.integers(1, 3),
)
def test_who_takes_what_is_ready_without_waiting_gets_what_who_waits_gets(
    plan: list[tuple[str, int, int]], workers: int
) -> None:
    def taken(way: str) -> list[tuple[str, float, int]]:
        seen: list[tuple[str, float, int]] = []

        async def main(clock: VirtualClock) -> None:
            queue: WorkQueue[str] = WorkQueue(clock)
            loop = asyncio.get_running_loop()

            async def work(number: int) -> None:
                while True:
                    item = None
                    if way != "get":
                        item = queue.try_get()
                    if item is None and way == "arrival":
                        if queue.shutting_down:
                            return
                        await queue.arrival(loop)
                        continue
                    if item is None:
                        try:
                            item = await queue.get()
                        except QueueShutDown:
                            return
                    seen.append((item, clock.monotonic(), number))
                    await clock.sleep(1)
                    queue.done(item)

            tasks = [asyncio.create_task(work(number)) for number in range(workers)]
            for item, delay_s, priority in plan:
                queue.add_after(item, delay_s, priority=priority)
                await clock.sleep(0.25)
            await clock.sleep(100)
            queue.shut_down()
            await asyncio.gather(*tasks)

        run_virtual(main)
        return seen

    assert taken("get") == taken("try_get") == taken("arrival")


def test_an_item_that_has_become_due_goes_before_a_lesser_one_that_is_ready() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    queue.add("lesser")
    queue.add_after("urgent", 1, priority=5)
    clock.advance(1)
    assert queue.ready == 1
    assert drain(queue) == ["urgent", "lesser"]
    assert queue.ready == 0
