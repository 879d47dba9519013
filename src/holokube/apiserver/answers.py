"""What the registry answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holokube.store.values import Stored

Warnings = list[str]
"""Texts that ``kubectl`` shows as ``Warning:``; filled along the way."""


@dataclass(frozen=True, slots=True)
class ListResult:
    """A page of objects, all of one revision; revision 0 means that they are not stored."""

    items: Sequence[Stored]
    revision: int
    continue_: str = ""
    remaining: int | None = None


@dataclass(slots=True)
class WriteResult:
    """What a write answers: the object, whether it was created, and warnings for the user."""

    stored: Stored
    created: bool = False
    warnings: list[str] = field(default_factory=list)
