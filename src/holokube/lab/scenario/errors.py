"""What can be wrong with a scenario file: everything at once, each with its place and a remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from holokube.base.errors import UsageError

HINT: Final = "docs/scenario.md lists every field."


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a file, or what else a value came from."""

    source: str
    line: int = 0
    """Counted from 1; 0 if there are no lines."""
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake."""

    mark: Mark
    field: str
    """Its path, such as ``spec.workloads[0].curve.high``; empty for the file as a whole."""
    what: str
    remedy: str

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        return f"{self.mark}: {field}{self.what}. {self.remedy}"


class ScenarioError(UsageError):
    """A scenario cannot be used; the message has a line for each mistake."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)), hint=HINT)

    @property
    def mistakes(self) -> tuple[str, ...]:
        return tuple(map(str, self.problems))


class Wrong(Exception):
    """A value is not what is expected; whoever knows its place makes a :class:`Problem` of it."""

    def __init__(self, what: str, remedy: str, field: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.field = field
        """Below the value that was read, if the mistake is there."""


class Told(Exception):
    """A value cannot be had, and why is told already."""


def meant(name: str, known: Iterable[str]) -> str:
    """The known name that is nearest to one that is not; empty if none is near."""
    choices = sorted(known)
    lowered = {choice.lower(): choice for choice in reversed(choices)}
    folded = name.lower().replace("_", "").replace("-", "")
    by_fold = {choice.lower().replace("-", ""): choice for choice in reversed(choices)}
    if folded in by_fold:
        return by_fold[folded]
    near = difflib.get_close_matches(name.lower(), sorted(lowered), n=1)
    return lowered[near[0]] if near else ""


def choose_among(name: str, known: Iterable[str]) -> str:
    """A remedy: the nearest name, else all of them."""
    choices = sorted(known)
    near = meant(name, choices)
    if near:
        return f"Did you mean {near}?"
    return f"Use {one_of(choices)}." if choices else "Leave it out."


def choose_near(name: str, names: Iterable[str]) -> str:
    """A remedy for a name among so many that nobody wants to see them all."""
    known = list(names)
    found = choose_among(name, known)
    return found if found.startswith("Did") else f"Use one such as {known[0]}."


def one_of(words: Sequence[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
