"""The live page of ``holokube run``, as somebody at a terminal meets it."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import environment
from tests.dashboard.web_client import act, stream

SCENARIO = """\
apiVersion: holokube.dev/v1alpha1
kind: Scenario
metadata: {name: little}
spec:
  seed: 1
  duration: 10m
  policies: [{kind: none}]
"""
WITHIN_S = 60.0


class Terminal:
    """A program whose stderr is a terminal."""

    def __init__(self, tmp_path: Path) -> None:
        scenario = tmp_path / "scenario.yaml"
        scenario.write_text(SCENARIO)
        self._ours, theirs = pty.openpty()
        self.program = subprocess.Popen(
            [sys.executable, "-m", "holokube", "run", str(scenario), "-o", "csv", "--dashboard"],
            stdout=subprocess.PIPE, stderr=theirs, env=environment(tmp_path), text=True,
        )  # fmt: skip
        os.close(theirs)
        self.said = ""

    def read_until(self, pattern: str) -> re.Match[str]:
        while not (found := re.search(pattern, self.said)):
            assert select.select([self._ours], [], [], WITHIN_S)[0], f"{pattern} was not said: {self.said}"
            self.said += os.read(self._ours, 4096).decode()
        return found

    def close(self) -> None:
        self.program.kill()
        self.program.communicate()
        os.close(self._ours)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.close()


def test_a_run_on_a_terminal_waits_for_the_page_and_says_when_it_is_over(terminal: Terminal) -> None:
    url = terminal.read_until(r"Dashboard: (\S+)")[1]
    terminal.read_until("waits there for you to press Resume")
    with stream(url) as events:
        snapshot = next(data for kind, data in events if kind == "snapshot")
        assert snapshot["paused"] and snapshot["title"] == "little: none"
        assert act(url, "pace", {"speed": None, "paused": False}).code == 200
        *_, last = events
    assert last == ("empty", {"note": "the run is over"})
    out, _ = terminal.program.communicate(timeout=WITHIN_S)
    assert terminal.program.returncode == 0 and "little" in out


def test_ctrl_c_ends_a_run_that_waits(terminal: Terminal) -> None:
    terminal.read_until("waits there")
    terminal.program.send_signal(2)
    assert terminal.program.wait(WITHIN_S) == 130
