"""The work of a scale-down that goes on between the turns."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from holokube.base.log import get_logger

_log = get_logger("holokube.cluster_autoscaler.actuation")


class Tasks:
    """Tasks in the background: those that may be given up at any time, and those that must be let finish."""

    def __init__(self) -> None:
        self._cancellable: set[asyncio.Task[None]] = set()
        self._final: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._cancellable) + len(self._final)

    def spawn(self, work: Coroutine[Any, Any, None], name: str, *, final: bool = False) -> None:
        """Start work. ``final``: it has begun what cannot be undone, so a stop waits for it."""
        task = asyncio.create_task(work, name=name)
        kept = self._final if final else self._cancellable
        kept.add(task)
        task.add_done_callback(kept.discard)
        task.add_done_callback(_report)

    async def idle(self) -> None:
        """Wait until nothing is left to do."""
        while self._cancellable or self._final:
            await asyncio.wait(self._cancellable | self._final)

    async def stop(self) -> None:
        """Give up what may be given up, and wait for the rest."""
        while self._cancellable or self._final:
            for task in self._cancellable:
                task.cancel()
            await asyncio.wait(self._cancellable | self._final)


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("A deletion ended unexpectedly", task=task.get_name(), error=repr(error))
