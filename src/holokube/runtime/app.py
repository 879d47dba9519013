"""Runs the components of a process: starts them, starts crashed ones again, stops all in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.runtime.health import HealthChecks
from holokube.runtime.metrics import Metrics
from holokube.runtime.ratelimit import exponential_delay_s
from holokube.runtime.stop import StopSignal

STOP_DEADLINE_S = 30.0
RESTART_BASE_S = 1.0
RESTART_MAX_S = 60.0
# A component that ran this long was well: its next crash counts as the first.
HEALTHY_AFTER_S = 120.0
# How long cancelled components may take to clean up before they are given up.
CANCEL_GRACE_S = 5.0


class Component(Protocol):
    """Anything that runs until it is told to stop."""

    @property
    def name(self) -> str: ...

    async def run(self, stop: StopSignal) -> None:
        """Returns soon after ``stop`` is set. Called again after a crash, so it must start from scratch."""


C = TypeVar("C", bound=Component)


class State(Enum):
    """What a component is doing."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    CRASHED = "crashed"
    FINISHED = "finished"


@dataclass(slots=True)
class ComponentStatus:
    """What is known of one component."""

    name: str
    state: State = State.NOT_STARTED
    restarts: int = 0
    failures_in_a_row: int = 0
    last_error: str = ""
    restart_at_s: float | None = None
    """When a crashed component is started again, on the monotonic clock."""


@dataclass(slots=True)
class _Entry:
    component: Component
    essential: bool
    status: ComponentStatus
    stop: StopSignal = field(default_factory=StopSignal)
    task: asyncio.Task[None] | None = None


class App:
    """A set of components with one life."""

    def __init__(
        self,
        clock: Clock,
        *,
        metrics: Metrics | None = None,
        checks: HealthChecks | None = None,
        stop_deadline_s: float = STOP_DEADLINE_S,
        restart_base_s: float = RESTART_BASE_S,
        restart_max_s: float = RESTART_MAX_S,
        healthy_after_s: float = HEALTHY_AFTER_S,
    ) -> None:
        self._clock = clock
        self.metrics = metrics if metrics is not None else Metrics()
        self.checks = checks if checks is not None else HealthChecks()
        self._stop_deadline_s = stop_deadline_s
        self._restart_base_s = restart_base_s
        self._restart_max_s = restart_max_s
        self._healthy_after_s = healthy_after_s
        self._entries: dict[str, _Entry] = {}
        self._started = False
        self._graceful = StopSignal()
        self._hard = StopSignal()
        self._fatal: Exception | None = None
        self._log = get_logger("holokube.runtime.app")

    def add(self, component: C, *, essential: bool = False) -> C:
        """Adds a component; they start in this order. The crash of an essential one ends the app."""
        if component.name in self._entries:
            raise ValueError(f"the app already has a component called {component.name!r}")
        if self._started:
            raise RuntimeError(f"component {component.name!r} comes too late: the app is running")
        entry = _Entry(component, essential, ComponentStatus(component.name))
        self._entries[component.name] = entry
        self.checks.add(component.name, lambda: self._problem(entry))
        return component

    def status(self) -> list[ComponentStatus]:
        """All components, in the order of their start."""
        return [entry.status for entry in self._entries.values()]

    def stop(self, reason: str = "") -> None:
        """Asks for a graceful stop; asked again, everything is cancelled at once."""
        if self._graceful.is_set():
            self._hard.set(reason)
        else:
            self._graceful.set(reason)

    async def run(self, *, handle_signals: bool = False) -> bool:
        """Runs until stopped, or until every component is finished.

        True when all ended by themselves, False when some had to be cancelled. With ``handle_signals`` the
        first SIGTERM or SIGINT stops gracefully, the second hard. Raises an essential component's error.
        """
        if self._started:
            raise RuntimeError("an app runs once; build a new one")
        self._started = True
        self.checks.add("shutdown", self._shutting_down)
        with self._signals() if handle_signals else nullcontext():
            try:
                for entry in self._entries.values():
                    entry.task = asyncio.create_task(self._supervise(entry), name=entry.component.name)
                if self._tasks():
                    await self._graceful.finishes_first(asyncio.wait(self._tasks()))
                clean = await self._stop_in_order()
            finally:
                await self._cancel_leftovers()
        if self._fatal is not None:
            raise self._fatal
        return clean

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [entry.task for entry in self._entries.values() if entry.task is not None]

    async def _supervise(self, entry: _Entry) -> None:
        """Runs one component, again after each crash, until its stop."""
        status = entry.status
        while not entry.stop.is_set():
            started_s = self._clock.monotonic()
            status.state, status.restart_at_s = State.RUNNING, None
            self.metrics.component_up(status.name, up=True)
            try:
                await entry.component.run(entry.stop)
            except asyncio.CancelledError as error:
                current = asyncio.current_task()
                if current is not None and current.cancelling():
                    status.state = State.FINISHED
                    raise
                # Nobody cancelled this task: the component let an inner cancellation escape.
                crash: BaseException = error
            except Exception as error:
                crash = error
            else:
                if not entry.stop.is_set():
                    self._log.info("Component is finished", component=status.name)
                break
            if not await self._after_crash(entry, crash, self._clock.monotonic() - started_s):
                return
        status.state = State.FINISHED
        self.metrics.component_up(status.name, up=False)

    async def _after_crash(self, entry: _Entry, error: BaseException, ran_s: float) -> bool:
        """Books the crash and waits for the restart; False when there will be none."""
        status = entry.status
        status.state = State.CRASHED
        status.last_error = f"{type(error).__name__}: {error}"
        status.failures_in_a_row = 1 if ran_s >= self._healthy_after_s else status.failures_in_a_row + 1
        self.metrics.component_up(status.name, up=False)
        if entry.stop.is_set():
            self._log.exception("Component crashed while stopping", exc=error, component=status.name)
            return False
        if entry.essential:
            if isinstance(error, HolokubeError):
                # It says itself what is wrong; where in the code it was noticed helps nobody.
                self._log.error("Essential component failed, stopping", component=status.name, error=str(error))
            else:
                self._log.exception("Essential component crashed, stopping", exc=error, component=status.name)
            self._fatal = error if isinstance(error, Exception) else RuntimeError(status.last_error)
            self._graceful.set(f"{status.name} crashed")
            return False
        delay_s = exponential_delay_s(
            status.failures_in_a_row - 1, self._restart_base_s, self._restart_max_s
        )
        status.restart_at_s = self._clock.monotonic() + delay_s
        self._log.exception(
            "Component crashed, starting it again", exc=error, component=status.name, delay_s=delay_s
        )
        if not await entry.stop.sleep(delay_s):
            status.restarts += 1
            self.metrics.component_restarted(status.name)
        return True

    async def _stop_in_order(self) -> bool:
        """Last started, first stopped, each waited for; True when all went in time."""
        if self._graceful.is_set():
            self._log.info("Stopping", reason=self._graceful.reason)
        try:
            async with asyncio.timeout(self._stop_deadline_s):
                return await self._hard.finishes_first(self._stop_each())
        except TimeoutError:
            late = [task.get_name() for task in self._tasks() if not task.done()]
            self._log.warning("Stop deadline passed", deadline_s=self._stop_deadline_s, components=late)
            return False

    async def _stop_each(self) -> None:
        for entry in reversed(self._entries.values()):
            entry.stop.set(self._graceful.reason)
            if entry.task is not None:
                await asyncio.wait([entry.task])

    async def _cancel_leftovers(self) -> None:
        leftovers = [task for task in reversed(self._tasks()) if not task.done()]
        for task in leftovers:
            task.cancel()
        if not leftovers:
            return
        _, stuck = await asyncio.wait(leftovers, timeout=CANCEL_GRACE_S)
        if stuck:
            names = sorted(task.get_name() for task in stuck)
            self._log.error("Components ignore their cancellation and are left behind", components=names)

    def _problem(self, entry: _Entry) -> str | None:
        status = entry.status
        if status.state is State.NOT_STARTED:
            return "not started yet"
        if status.state is not State.CRASHED:
            return None
        times = "once" if status.failures_in_a_row == 1 else f"{status.failures_in_a_row} times in a row"
        problem = f"crashed {times}, last: {status.last_error}"
        if status.restart_at_s is not None:
            problem += f"; starts again in {max(0.0, status.restart_at_s - self._clock.monotonic()):.1f} s"
        return problem

    def _shutting_down(self) -> str | None:
        return "process is shutting down" if self._graceful.is_set() else None

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        watched = (signal.SIGTERM, signal.SIGINT)
        for number in watched:
            loop.add_signal_handler(number, self.stop, number.name)
        try:
            yield
        finally:
            for number in watched:
                loop.remove_signal_handler(number)
