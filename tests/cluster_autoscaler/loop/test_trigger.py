"""When the next turn begins."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.cluster_autoscaler.loop.trigger import Trigger, is_recent_unschedulable
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.stop import StopSignal
from tests.builders import pod


@dataclass
class Times:
    last_scale_up_s: float = float("-inf")
    last_scale_down_s: float = float("-inf")


def unschedulable(at_s: float, **more: object) -> JsonObject:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                 "lastTransitionTime": format_time(at_s), **more}
    return {**pod(), "status": {"phase": "Pending", "conditions": [condition]}}


def test_without_news_it_waits_for_the_scan_interval() -> None:
    clock = VirtualClock()

    async def main() -> None:
        trigger = Trigger(clock, 10.0, Times())
        assert await trigger.wait(clock.time(), StopSignal()) == "timer"
        assert clock.monotonic() == 10.0

    run_virtual(main(), clock=clock)


def test_after_something_was_done_it_goes_on_almost_at_once_for_two_turns() -> None:
    clock = VirtualClock()

    async def main() -> None:
        times = Times()
        trigger, stop = Trigger(clock, 10.0, times), StopSignal()
        times.last_scale_up_s = previous_s = last_s = clock.time()
        reasons = []
        for _ in range(3):
            reasons.append(await trigger.wait(previous_s, stop))
            previous_s, last_s = last_s, clock.time()
        assert reasons == ["after a scale-up", "after a scale-up", "timer"]
        times.last_scale_down_s = clock.time()
        assert await trigger.wait(previous_s, stop) == "after a scale-down"

    run_virtual(main(), clock=clock)


def test_a_pod_that_finds_no_place_starts_a_turn_even_if_it_came_during_the_last() -> None:
    clock = VirtualClock()

    async def main() -> None:
        trigger, stop = Trigger(clock, 10.0, Times()), StopSignal()
        trigger._on_pod("ADDED", None, unschedulable(clock.time()))
        assert await trigger.wait(clock.time(), stop) == "unschedulable pod"
        assert clock.monotonic() == 0.0
        assert await trigger.wait(clock.time(), stop) == "timer", "it is no news any more"

    run_virtual(main(), clock=clock)


def test_with_frequent_loops_off_it_only_waits() -> None:
    clock = VirtualClock()

    async def main() -> None:
        trigger = Trigger(clock, 10.0, Times(last_scale_up_s=clock.time()), frequent=False)
        trigger._on_pod("ADDED", None, unschedulable(clock.time()))
        assert await trigger.wait(clock.time(), StopSignal()) == "timer" and clock.monotonic() == 10.0

    run_virtual(main(), clock=clock)


def test_a_stop_ends_the_wait() -> None:
    clock = VirtualClock()

    async def main() -> None:
        stop = StopSignal()
        stop.set()
        assert await Trigger(clock, 10.0, Times()).wait(clock.time(), stop) == "stopped"
        assert clock.monotonic() == 0.0

    run_virtual(main(), clock=clock)


def test_only_fresh_verdicts_of_the_scheduler_count() -> None:
    now_s = VirtualClock().time()
    assert is_recent_unschedulable(unschedulable(now_s - 10), now_s)
    assert not is_recent_unschedulable(unschedulable(now_s - 11), now_s)
    assert not is_recent_unschedulable(unschedulable(now_s, reason="SchedulingGated"), now_s)
    assert not is_recent_unschedulable(unschedulable(now_s, status="True"), now_s)
    assert not is_recent_unschedulable(pod(), now_s)
    bound = unschedulable(now_s)
    bound["spec"]["nodeName"] = "n"
    assert not is_recent_unschedulable(bound, now_s)
    done = unschedulable(now_s)
    done["status"]["phase"] = "Failed"
    assert not is_recent_unschedulable(done, now_s)


def test_a_pod_that_comes_while_it_waits_ends_that() -> None:
    clock = VirtualClock()

    async def main() -> None:
        trigger, stop, loop = Trigger(clock, 10.0, Times()), StopSignal(), asyncio.get_running_loop()
        loop.call_later(3.0, lambda: trigger._on_pod("ADDED", None, unschedulable(clock.time())))
        loop.call_later(4.0, lambda: trigger._on_pod("DELETED", unschedulable(clock.time()), None))
        assert await trigger.wait(clock.time(), stop) == "unschedulable pod" and clock.monotonic() == 3.0
        assert await trigger.wait(clock.time(), stop) == "timer" and clock.monotonic() == 13.0
        loop.call_later(2.0, stop.set)
        assert await trigger.wait(clock.time(), stop) == "stopped" and clock.monotonic() == 15.0

    run_virtual(main(), clock=clock)


def test_a_pod_that_comes_when_the_time_is_up_starts_the_turn_after_that() -> None:
    clock = VirtualClock()

    async def main() -> None:
        trigger, stop, loop = Trigger(clock, 10.0, Times()), StopSignal(), asyncio.get_running_loop()
        loop.call_later(10.0, lambda: trigger._on_pod("ADDED", None, unschedulable(clock.time())))
        assert await trigger.wait(clock.time(), stop) == "timer" and clock.monotonic() == 10.0
        assert await trigger.wait(clock.time(), stop) == "unschedulable pod" and clock.monotonic() == 10.0

    run_virtual(main(), clock=clock)
