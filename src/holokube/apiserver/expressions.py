"""The CEL interpreter of the ``cel`` extra, where it is installed."""

from __future__ import annotations

from typing import Any


def interpreter() -> Any | None:
    """The package that compiles expressions, or nothing."""
    try:
        import cel
    except ImportError:
        return None
    return cel


def syntax_problem(expression: str) -> str:
    """Why an expression cannot be compiled; empty if it can, or if nobody here can tell."""
    found = interpreter()
    if found is None:
        return ""
    try:
        found.compile(expression)
    except ValueError as problem:
        return str(problem).rstrip()
    return ""
