"""The CEL interpreter of the ``cel`` extra, where it is installed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final

_SHELL: Final = "cel.cli"


def interpreter() -> Any | None:
    """The package that compiles expressions, or nothing."""
    # The package brings its interactive shell along, whose import takes far longer than all that is needed here. An
    # empty module stands in for it meanwhile; whoever wants the shell imports it afterwards.
    stand_in = ModuleType(_SHELL)
    is_standing_in = sys.modules.setdefault(_SHELL, stand_in) is stand_in
    try:
        import cel
    except ImportError:
        return None
    finally:
        if is_standing_in:
            del sys.modules[_SHELL]
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
