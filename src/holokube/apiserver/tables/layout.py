"""What every table is made of: columns, and a function that turns an object into their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holokube.kube.timeformat import TimeFormatError, format_age, parse_time
from holokube.kube.types import JsonObject

UNKNOWN = "<unknown>"
NONE = "<none>"
UNSET = "<unset>"


class Ages:
    """How long ago things happened, seen from one moment.

    Many objects share the second of their creation, so answers are kept.
    """

    __slots__ = ("_known", "_now")

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._known: dict[str, str] = {}

    def since(self, moment: str | None) -> str:
        """``5m3s`` since an RFC 3339 time; ``<unknown>`` for none."""
        if not moment:
            return UNKNOWN
        found = self._known.get(moment)
        if found is None:
            try:
                found = format_age((self._now - parse_time(moment)).total_seconds())
            except TimeFormatError:
                found = "<invalid>"
            self._known[moment] = found
        return found

    def of(self, obj: JsonObject) -> str:
        """The age of an object."""
        return self.since((obj.get("metadata") or {}).get("creationTimestamp"))


Cells = Callable[[JsonObject, Ages], list[Any]]


@dataclass(frozen=True, slots=True)
class Layout:
    """The table of one resource."""

    columns: Sequence[JsonObject]
    cells: Cells
    conditions: Callable[[JsonObject], list[JsonObject] | None] | None = None
    """Conditions of a row, such as a completed pod; kubectl prints such rows dimmed where it can."""
    order: Callable[[JsonObject], Any] | None = None
    """Sort key of rows, for the few resources that are not listed by name."""


def column(
    name: str, description: str, *, type: str = "string", format: str = "", priority: int = 0
) -> JsonObject:
    return {"name": name, "type": type, "format": format, "description": description, "priority": priority}


def wide(name: str, description: str, *, type: str = "string", format: str = "") -> JsonObject:
    """A column that only ``-o wide`` shows."""
    return column(name, description, type=type, format=format, priority=1)


NAME = column("Name", "Name of the object.", format="name")
AGE = column("Age", "Time since the object was created.")
CREATED_AT = column("Created At", "When the object was created.", type="date")
CONTAINERS = wide("Containers", "Names of the containers in the pod template.")
IMAGES = wide("Images", "Images of the containers in the pod template.")
SELECTOR = wide("Selector", "Which pods belong to the object.")
