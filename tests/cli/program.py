"""Runs the real program, as a user does."""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from holokube.cli import main as cli

PROGRAM = (sys.executable, "-m", "holokube")
TIMEOUT_S = 30.0


def environment(home: Path, **extra: str) -> dict[str, str]:
    """Deaf to the configuration of whoever runs the tests."""
    foreign = ("KUBE", "XDG_", "HOLOKUBE", "NO_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "HOME": str(home), **extra}


def run(home: Path, *arguments: str, stdin: bytes = b"", **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
        env=environment(home, **extra),
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Returns when a program listens there, however long a busy machine takes to start it."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while process.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline_s, "it does not listen"
        time.sleep(0.02)


class Inside:
    """Runs commands in the process of the test, which spares the start of Python for each."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        self._capture.readouterr()
        code = cli.run(arguments)
        captured = self._capture.readouterr()
        return subprocess.CompletedProcess(arguments, code, captured.out, captured.err)


@contextmanager
def untouched_logging() -> Iterator[None]:
    """A command takes over the logging of its process, and writes to a stream that is gone after the test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@dataclass
class Up:
    """A running ``holokube up``."""

    process: subprocess.Popen[bytes]
    announced: dict[str, str]

    @property
    def kubeconfig(self) -> Path:
        return Path(self.announced["KUBECONFIG"])

    @property
    def server(self) -> str:
        return self.announced["HOLOKUBE_SERVER"]

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; returns the exit code and what was said on stderr."""
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, stderr.decode()


@contextmanager
def up(home: Path, *arguments: str, **extra: str) -> Iterator[Up]:
    """Start a server and wait until it says that it is ready; whatever happens, it is gone at the end."""
    with subprocess.Popen(
        [*PROGRAM, "up", *arguments],
        bufsize=0,  # or a line already read into a buffer would never wake the selector
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, **extra),
    ) as process:
        try:
            assert process.stdout is not None
            yield Up(process, _announcement(process, process.stdout))
        finally:
            if process.poll() is None:
                process.kill()


def _announcement(process: subprocess.Popen[bytes], stdout: IO[bytes]) -> dict[str, str]:
    found: dict[str, str] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while "HOLOKUBE_SERVER" not in found:
            assert selector.select(TIMEOUT_S), "holokube up does not say that it is ready"
            line = stdout.readline().decode()
            if not line:
                assert process.stderr is not None
                raise AssertionError(f"holokube up ended: {process.stderr.read().decode()}")
            name, _, value = line.strip().partition("=")
            found[name] = value
    return found


def assert_two_lines(stderr: str) -> tuple[str, str]:
    """An error says what and what to do, in two lines and no traceback."""
    lines = stderr.splitlines()
    assert len(lines) == 2, stderr
    assert lines[0].startswith("Error: "), stderr
    assert lines[1].startswith("Hint:  "), stderr
    return lines[0].removeprefix("Error: "), lines[1].removeprefix("Hint:  ")
