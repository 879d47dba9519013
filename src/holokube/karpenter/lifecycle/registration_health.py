"""Whether the nodes of a pool come: its last four launches, of which two failures are too many."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

RING: Final = 4
TOO_MANY_FAILURES: Final = 2


class Health(Enum):
    """What the last launches say."""

    UNKNOWN = "unknown"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"


class RegistrationHealth:
    """The last launches of every pool, by the pool's uid."""

    def __init__(self) -> None:
        self._rings: dict[str, deque[bool]] = {}

    def of(self, uid: str) -> Health:
        return _health(self._rings.get(uid, deque()))

    def after(self, uid: str, *, success: bool) -> Health:
        """What it would be after one more launch."""
        return _health(deque((*self._rings.get(uid, ()), success), maxlen=RING))

    def add(self, uid: str, *, success: bool) -> None:
        """One more launch."""
        self._rings.setdefault(uid, deque(maxlen=RING)).append(success)

    def reset(self, uid: str, health: Health) -> None:
        """Begins anew, with what is known from elsewhere."""
        known = {Health.UNKNOWN: (), Health.HEALTHY: (True,), Health.UNHEALTHY: (False,) * TOO_MANY_FAILURES}
        self._rings[uid] = deque(known[health], maxlen=RING)


def _health(ring: deque[bool]) -> Health:
    if not ring:
        return Health.UNKNOWN
    return Health.UNHEALTHY if ring.count(False) >= TOO_MANY_FAILURES else Health.HEALTHY
