"""When a snapshot was made, as far as its objects tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from holokube.kube.timeformat import TimeFormatError, parse_time
from holokube.kube.types import JsonObject

# Of what has happened. A deletionTimestamp or a notAfter is about what will.
_PAST: Final = frozenset({
    "creationTimestamp", "startTime", "completionTime", "startedAt", "finishedAt", "lastTransitionTime",
    "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime", "lastScheduleTime", "lastSuccessfulTime",
})  # fmt: skip
_READ: Final = ("metadata", "status")


def newest_time_s(objects: Iterable[JsonObject]) -> float | None:
    """Unix time of the last thing that happened to any of them, in whole seconds; None if none tells."""
    latest = ""
    for obj in objects:
        for part in _READ:
            for text in _times(obj.get(part)):
                # All are UTC and written alike, so that the later one is also the greater text.
                if text > latest and _is_time(text):
                    latest = text
    return math.ceil(parse_time(latest).timestamp()) if latest else None


def _times(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key in _PAST and isinstance(part, str):
                if part.endswith("Z"):
                    yield part
            elif isinstance(part, (dict, list)):
                yield from _times(part)
    elif isinstance(value, list):
        for part in value:
            yield from _times(part)


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except TimeFormatError:
        return False
    return True
