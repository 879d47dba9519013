"""When the next turn begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from holokube.base.clock import Clock
from holokube.client.informer import EventType, Informer
from holokube.cluster_autoscaler.objects import condition_of, is_finished, node_name_of, time_s
from holokube.kube.types import JsonObject
from holokube.runtime.singleton import IMMEDIATE_DELAY_S
from holokube.runtime.stop import StopSignal

RECENT_S = 10.0
"""A pod that became unschedulable longer ago than this is no news."""


class ScalingTimes(Protocol):
    """When something was last done."""

    @property
    def last_scale_up_s(self) -> float: ...

    @property
    def last_scale_down_s(self) -> float: ...


class Trigger:
    """Waits for the next turn: the scan interval, or less if there is something to do.

    After a turn that scaled the next one, and the one after that, follow at once; a pod that becomes unschedulable
    starts one too. Pods seen while a turn is under way start the next.
    """

    def __init__(self, clock: Clock, scan_interval_s: float, times: ScalingTimes, *, frequent: bool = True) -> None:
        self._clock = clock
        self._scan_interval_s = scan_interval_s
        self._times = times
        self._frequent = frequent
        self._pod_came = False
        self._wake: Callable[[], object] | None = None
        """Ends the waiting that is under way."""

    def watch(self, pods: Informer) -> Callable[[], None]:
        """Look out for pods; returns a function that ends it."""
        return pods.add_handler(self._on_pod)

    async def wait(self, last_run_s: float, stop: StopSignal) -> str:
        """Wait; returns why the turn begins. ``last_run_s`` is when the turn before the last one began."""
        if not self._frequent:
            await stop.sleep(self._scan_interval_s)
            return "timer"
        for what, at_s in (("up", self._times.last_scale_up_s), ("down", self._times.last_scale_down_s)):
            if at_s >= last_run_s:
                # On virtual time a turn may take no time, and all of them would share the moment of the first.
                await stop.sleep(IMMEDIATE_DELAY_S)
                return self._take(f"after a scale-{what}")
        return "timer" if await self._is_time_up(stop) else self._take("stopped")

    async def _is_time_up(self, stop: StopSignal) -> bool:
        """Waits for the scan interval, a pod or the stop; whether it was the first of them."""
        # A future and a timer cost a fraction of a task with a time-out, and this is done every few seconds.
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        is_time_up = False

        def end() -> None:
            if not over.done():
                over.set_result(None)

        def wake() -> None:
            # Whatever else happens at this moment comes first.
            loop.call_soon(end)

        def time_is_up() -> None:
            nonlocal is_time_up
            is_time_up = True
            wake()

        if self._pod_came:
            wake()
        self._wake = wake
        timer = loop.call_later(self._scan_interval_s, time_is_up)
        stop.add_callback(end)
        try:
            await over
        finally:
            self._wake = None
            timer.cancel()
            stop.remove_callback(end)
        return is_time_up

    def _take(self, otherwise: str) -> str:
        if self._pod_came:
            self._pod_came = False
            return "unschedulable pod"
        return otherwise

    def _on_pod(self, type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        del type, old
        # Most pods have a node; this is called for every change of every pod.
        if new is None or new["spec"].get("nodeName"):
            return
        if not self._pod_came and is_recent_unschedulable(new, self._clock.time()):
            self._pod_came = True
            if self._wake is not None:
                self._wake()


def is_recent_unschedulable(pod: JsonObject, now_s: float) -> bool:
    """Whether the scheduler has found no place for a pod, just now."""
    if is_finished(pod) or node_name_of(pod):
        return False
    condition = condition_of(pod, "PodScheduled")
    if condition is None or condition.get("status") != "False" or condition.get("reason") != "Unschedulable":
        return False
    return time_s(condition.get("lastTransitionTime")) + RECENT_S >= now_s
