"""Several things done at once, and most often there is only one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def act_on_each(
    items: Sequence[T], act: Callable[[T], Awaitable[None]], *, one_by_one: bool = False
) -> list[BaseException | None]:
    """What came of each item, None or the error: as ``asyncio.gather`` with ``return_exceptions`` tells it.

    ``one_by_one`` is for those who need not wait for what they ask for (``Client.answers_at_once``): nothing is gained
    by doing several things side by side then, and a task for each costs more than most of what is done.
    """
    if len(items) != 1 and not one_by_one:
        return await asyncio.gather(*(act(item) for item in items), return_exceptions=True)
    # Nor is there a task for a single one. Others get their turns in between as they would beside tasks: before they
    # begin, when they have ended, and when that was told.
    await TURN
    came: list[BaseException | None] = []
    for item in items:
        try:
            await act(item)
        except Exception as problem:
            came.append(problem)
        else:
            came.append(None)
    await TURN
    await TURN
    return came


class _Turn:
    """Lets everybody else run who is ready."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield


TURN = _Turn()
