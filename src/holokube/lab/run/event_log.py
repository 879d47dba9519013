"""The event log: what happened to objects and what was decided, one line of JSON each, in the order of time.

Every line has ``at`` (seconds since the run began), ``kind``, ``name`` and ``what``; some have more.
"""

from __future__ import annotations

from typing import Any, TextIO

import orjson


class EventLog:
    """Writes lines; without anywhere to write them, does nothing."""

    def __init__(self, out: TextIO | None) -> None:
        self._out = out
        self.is_on = out is not None
        """Whether anybody reads it: whoever makes up many or expensive lines asks first."""

    def write(self, at_ms: int, kind: str, name: str, what: str, **more: Any) -> None:
        """One line."""
        if self._out is None:
            return
        line = {"at": at_ms / 1000, "kind": kind, "name": name, "what": what, **more}
        self._out.write(orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")
