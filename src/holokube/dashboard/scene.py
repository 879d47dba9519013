"""What a dashboard looks at: a view with the loop it lives on, and what may be done there.

Everything here may be called from any thread; the work itself happens on the cluster's own loop, between two of its
callbacks, so that nothing has to be locked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from holokube.base.errors import HolokubeError, UsageError
from holokube.base.pace import Pace
from holokube.dashboard.view import ClusterView

T = TypeVar("T")

CLOSED_CHECK_S = 1.0
"""A loop that is closed answers nothing, and tells nobody so."""

NAMES_SAID = 3

Act = Callable[[Sequence[str], Sequence[str]], Awaitable["Outcome"]]
"""Does something to nodes of these names: kinds of faults to bring or to take away."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action went."""

    done: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """A running cluster as a dashboard sees it."""

    view: ClusterView
    loop: asyncio.AbstractEventLoop
    title: str = ""
    """What runs: the policy or the scenario."""
    is_virtual: bool = False
    pace: Pace | None = None
    """How fast virtual time passes; without one there is nothing to control."""
    break_nodes: Act | None = None
    heal_nodes: Act | None = None
    """Without these two, the page only looks on."""

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Call a function on the cluster's thread. It leaves no task behind if the loop ends first."""
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except Exception as error:
                    future.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(work)
        except RuntimeError as error:
            raise self._stopped() from error
        return future

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the cluster's loop."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError as error:
            work.close()
            raise self._stopped() from error

    async def answer(self, future: Future[T]) -> T:
        """Wait, on another loop, for what was called or run; an error if the cluster's loop ends first."""
        waiting = asyncio.wrap_future(future)
        try:
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=CLOSED_CHECK_S)
                if self.loop.is_closed() and not waiting.done():
                    raise self._stopped()
            return waiting.result()
        finally:
            waiting.cancel()

    def status(self) -> dict[str, Any]:
        """What stands beside the data: clock, pace and powers. The time may lie between two events."""
        pace, clock = self.pace, self.view.clock
        now_s, elapsed_s = clock.time(), clock.monotonic()
        speed = pace.speed if pace is not None else 1.0
        return {
            "now": now_s if pace is None else now_s + pace.shown_s(elapsed_s) - elapsed_s,
            "title": self.title,
            "virtual": self.is_virtual,
            "paused": pace is not None and pace.is_paused,
            # JSON has no infinity.
            "speed": None if speed == float("inf") else speed,
            "can": {"pace": pace is not None, "faults": self.break_nodes is not None},
        }

    async def act(self, verb: str, target: dict[str, Any], kinds: Sequence[str]) -> Outcome:
        """Break or heal what a target names; on the cluster's loop."""
        deed = {"break": self.break_nodes, "heal": self.heal_nodes}.get(verb)
        if deed is None:
            raise UsageError(f"nobody here can {verb} nodes", hint="This run is only to look at.")
        return await deed(self.names(target), kinds)

    def names(self, target: dict[str, Any]) -> list[str]:
        """The nodes that a target names: some, or those of a zone or group."""
        view = self.view
        if isinstance(target.get("zone"), str):
            names = view.names(zone=target["zone"])
        elif isinstance(target.get("group"), str):
            names = view.names(group=target["group"])
        else:
            names = [name for name in target.get("nodes") or () if isinstance(name, str) and view.has(name)]
        if not names:
            raise UsageError(f"there is no node of {_words(target)}", hint="It may be gone by now; choose another.")
        return names

    @property
    def last_words(self) -> str:
        """What is said when there is no more to come."""
        return "the run is over" if self.is_virtual else "the cluster has stopped"

    def _stopped(self) -> HolokubeError:
        return HolokubeError(self.last_words, hint="Start it again.")


def _words(target: dict[str, Any]) -> str:
    """A target as a person would say it, the first few names of many."""
    for by in ("zone", "group"):
        if isinstance(target.get(by), str):
            return f"the {by} {target[by]}" if target[by] else f"no {by}"
    names = [str(name) for name in target.get("nodes") or ()]
    if not names:
        return "any name"
    return f"the name {', '.join(names[:NAMES_SAID])}{', ...' if len(names) > NAMES_SAID else ''}"
