"""Where suspended tasks wait: the words of a StalledError."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from types import FrameType
from typing import Any

_TASKS_SHOWN = 20
_FRAMES_SHOWN = 4


def describe_tasks(tasks: Sequence[asyncio.Task[Any]]) -> str:
    """Name each task and the places, outermost first, at which it is suspended."""
    if not tasks:
        return "the future that was to be completed has no task behind it"
    noun = "1 task waits" if len(tasks) == 1 else f"{len(tasks)} tasks wait"
    lines = [f"{noun} forever:"]
    lines += [f"  {task.get_name()!r} at {_where(task)}" for task in tasks[:_TASKS_SHOWN]]
    if len(tasks) > _TASKS_SHOWN:
        lines.append(f"  ... and {len(tasks) - _TASKS_SHOWN} more")
    return "\n".join(lines)


def _where(task: asyncio.Task[Any]) -> str:
    places = [_place(frame) for frame in _suspended_frames(task)]
    if not places:
        return "an unknown place"
    if len(places) > _FRAMES_SHOWN:
        places = [*places[: _FRAMES_SHOWN - 1], "...", places[-1]]
    return " > ".join(places)


def _suspended_frames(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    # Task.get_stack() stops at the outermost coroutine; what it awaits tells where the wait really is.
    awaited: Any = task.get_coro()
    while awaited is not None:
        for kind in ("cr", "gi", "ag"):
            frame = getattr(awaited, f"{kind}_frame", None)
            if frame is not None:
                # The wrapper around run_virtual's main tells nobody anything.
                if frame.f_globals.get("__name__") != "holokube.base.loop":
                    yield frame
                awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await", None)
                break
        else:
            return


def _place(frame: FrameType) -> str:
    # Two folders are enough to recognise a file, and keep the message the same on every machine.
    file = "/".join(PurePath(frame.f_code.co_filename).parts[-2:])
    return f"{file}:{frame.f_lineno} in {frame.f_code.co_qualname}"
