"""The package that evaluates expressions is imported without the program that it brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("cel")

QUICKLY = """
import sys
from holokube.apiserver.expressions import interpreter, syntax_problem
found = interpreter()
assert found.compile("1 + 1").execute({}) == 2
assert syntax_problem("1 +") and not syntax_problem("1")
assert not {"cel.cli", "typer", "prompt_toolkit"} & {*sys.modules} and not hasattr(found, "cli")
assert interpreter() is found
import cel.cli
assert cel is found and cel.cli.__file__, "who wants the program gets it"
"""
AFTER_SOMEBODY_ELSE = """
import cel
from holokube.apiserver.expressions import interpreter
assert interpreter() is cel and cel.cli.__file__
"""
NOT_INSTALLED = """
import sys
sys.modules["cel"] = None
from holokube.apiserver.expressions import interpreter, syntax_problem
assert interpreter() is None and not syntax_problem("1 +")
del sys.modules["cel"]
assert interpreter() is not None
"""


@pytest.mark.parametrize("program", [QUICKLY, AFTER_SOMEBODY_ELSE, NOT_INSTALLED])
def test_the_interpreter_comes_alone(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)
