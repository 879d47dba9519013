"""The CEL interpreter of the ``cel`` extra, where it is installed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

_SHELL: Final = "cel.cli"
"""A program for the command line that the package brings along: it takes a fifth of a second to import, most of it for
libraries that draw on terminals, and nothing here needs it."""


def interpreter() -> Any | None:
    """The package that compiles expressions, or nothing."""
    if "cel" not in sys.modules and _SHELL not in sys.modules:
        _import_without_shell()
    try:
        import cel
    except ImportError:
        return None
    return cel


def _import_without_shell() -> None:
    """Import the package with nothing in the place of its program; whoever asks for that later gets it. Where it cannot
    be imported so, it is left to be imported as it is."""
    nothing = sys.modules[_SHELL] = ModuleType(_SHELL)
    try:
        import cel
    except (ImportError, AttributeError):
        pass
    else:
        if getattr(cel, "cli", None) is nothing:
            del cel.cli
    finally:
        del sys.modules[_SHELL]


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
