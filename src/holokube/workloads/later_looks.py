"""Later looks that a controller asked for and that have become pointless meanwhile."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from holokube.runtime.result import Result


class LaterLooks:
    """Keeps later looks from happening that the last look at a key did not ask for any more.

    Whoever waits for something asks for a look in case nobody tells of it. As a rule somebody does: it is looked at
    then, and all is well. Nothing that is told of has changed since, so that another look would find the same.
    """

    def __init__(self, reconcile: Callable[[str], Awaitable[Result | None]]) -> None:
        self._reconcile = reconcile
        self._wanted: set[str] = set()
        """What asked for a later look the last time, or failed, or is being looked at."""

    async def reconcile(self, key: str) -> Result | None:
        self._wanted.add(key)
        result = await self._reconcile(key)
        if result is None:
            self._wanted.discard(key)
        return result

    def postpone(self, key: str) -> float | None:
        """For how long a look at a key that is due can wait; None if it cannot."""
        return None if key in self._wanted else math.inf
