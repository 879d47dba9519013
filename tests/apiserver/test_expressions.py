"""The interpreter of expressions comes without its interactive shell."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKED = """
import sys
from holokube.apiserver.expressions import interpreter, syntax_problem
assert interpreter() is interpreter()
assert interpreter().compile("1 + 1").execute({}) == 2
assert syntax_problem("1 +") and not syntax_problem("1 + 1")
assert "cel.cli" not in sys.modules
import cel.cli
assert cel.cli.__file__
assert interpreter() is cel and sys.modules["cel.cli"] is cel.cli
"""


def test_the_shell_of_the_interpreter_is_imported_only_by_those_who_want_it() -> None:
    pytest.importorskip("cel")
    subprocess.run([sys.executable, "-c", ASKED], check=True)
