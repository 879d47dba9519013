"""Several things done at once, and most often there is only one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def act_on_each(items: Sequence[T], act: Callable[[T], Awaitable[None]]) -> list[BaseException | None]:
    """What came of each item, None or the error: as ``asyncio.gather`` with ``return_exceptions`` tells it."""
    if len(items) != 1:
        return await asyncio.gather(*(act(item) for item in items), return_exceptions=True)
    # A task for a single one, and somebody who waits for it, cost more than most of what is done. Others get their
    # turns in between as they would beside a task: before it begins, when it has ended, and when that was told.
    await TURN
    error: BaseException | None = None
    try:
        await act(items[0])
    except Exception as problem:
        error = problem
    await TURN
    await TURN
    return [error]


class _Turn:
    """Lets everybody else run who is ready."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield


TURN = _Turn()
