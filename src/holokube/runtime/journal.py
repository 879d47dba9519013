"""The decision journal: what a component decided, about what, and why.

Events say what happened; the journal also says what did not, and for which reasons. It keeps the last entries in
memory and hands each one on, as a line of JSON, to whoever asked for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import orjson

from holokube.kube.timeformat import format_micro_time

ENTRIES_MAX = 10_000


class Entry(msgspec.Struct, frozen=True):
    """One decision."""

    now_s: float
    kind: str
    """What was decided about: ``scale-up``, ``pod``, ``group``, ``scale-down``, ``node``, ``turn``, ..."""
    subject: str
    decision: str
    reasons: tuple[str, ...] = ()
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The entry as plain values; facts stand beside the fixed keys."""
        return {
            "time": format_micro_time(self.now_s),
            "kind": self.kind, "subject": self.subject, "decision": self.decision,
            "reasons": list(self.reasons), **self.facts,
        }

    def line(self) -> str:
        """The entry as one line of JSON."""
        return orjson.dumps(self.as_json(), default=str, option=orjson.OPT_NON_STR_KEYS).decode()


class Journal:
    """The last decisions, oldest first."""

    def __init__(self, *, entries_max: int = ENTRIES_MAX, write: Callable[[str], None] | None = None) -> None:
        self._entries: deque[Entry] = deque(maxlen=entries_max)
        self._write = write
        self._subscribers: list[Callable[[Entry], None]] = []

    def note(self, now_s: float, kind: str, subject: str, decision: str,
             reasons: Iterable[str] = (), **facts: Any) -> None:
        """Remember a decision with its reasons."""
        entry = Entry(now_s, kind, subject, decision, tuple(reasons), facts)
        self._entries.append(entry)
        if self._write is not None:
            self._write(entry.line())
        for subscriber in tuple(self._subscribers):
            subscriber(entry)

    def subscribe(self, on_entry: Callable[[Entry], None]) -> Callable[[], None]:
        """Has ``on_entry`` called with each new entry; returns a function that ends it."""
        self._subscribers.append(on_entry)

        def end() -> None:
            if on_entry in self._subscribers:
                self._subscribers.remove(on_entry)

        return end

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def about(self, subject: str) -> list[Entry]:
        """Everything still remembered about one subject."""
        return [entry for entry in self._entries if entry.subject == subject]
