"""Progress of commands that take their time."""

from __future__ import annotations

import pytest

from holokube.cli.progress import ProgressLine


def test_without_a_terminal_there_is_a_line_now_and_then_and_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine()
    for took_s in (0.5, 5.0, 10.0, 10.5, 19.0, 20.25, 21.0):
        line.show(f"after {took_s} s", took_s)
    line.show("of a command that does not say how long it takes")
    line.done("done")
    assert capsys.readouterr().err.splitlines() == ["after 10.0 s", "after 20.25 s", "done"]
