"""The parts of a parsed Go template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number, boolean or nil."""

    value: Any


@dataclass(frozen=True, slots=True)
class Path:
    """Fields of the dot, of a variable (``$x.a``) or of a pipeline in parentheses."""

    base: str | Pipeline | None
    """Name of the variable, with its ``$``; None is the dot."""
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Operand, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each of which gets the value of the one before as its last argument."""

    commands: tuple[Operand | Call, ...]
    variables: tuple[str, ...] = ()
    assigns: bool = False
    """``=`` rather than ``:=``."""


Operand = Literal | Path | Call


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Output:
    pipeline: Pipeline
    line: int


@dataclass(frozen=True, slots=True)
class Branch:
    """``if`` or ``with``."""

    word: str
    pipeline: Pipeline
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Loop:
    """``range``."""

    pipeline: Pipeline
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Jump:
    """``break`` or ``continue``."""

    word: str


Node = Text | Output | Branch | Loop | Jump
