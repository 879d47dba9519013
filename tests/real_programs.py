"""Our programs as processes beside a real control plane, and how tests wait for what they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holokube.testing.controlplane import ControlPlane

LIMIT_S = 240.0


@contextmanager
def program(plane: ControlPlane, log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of our programs on the cluster; ended in good order unless the test has killed it."""
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "holokube", *arguments, f"--kubeconfig={plane.kubeconfig}"],
            stdout=stream, stderr=stream, env={**os.environ, "POD_NAMESPACE": "kube-system"},
        )  # fmt: skip
    try:
        yield process
        assert process.poll() in (None, -signal.SIGKILL), log.read_text()[-3000:]
    finally:
        if process.poll() is None:
            process.terminate()
            assert process.wait(timeout=60) == 0, log.read_text()[-3000:]


def kill(process: subprocess.Popen[bytes]) -> None:
    """Without a word, as a node that loses power does."""
    process.kill()
    process.wait()


def until(
    what: str, found: Callable[[], Any], wanted: Callable[[Any], bool], *, by: subprocess.Popen[bytes] | None = None
) -> Any:
    """Look again and again; returns what was wanted. Not for longer than the program ``by`` lives."""
    deadline_s = time.monotonic() + LIMIT_S
    while True:
        value = found()
        if wanted(value):
            return value
        assert time.monotonic() < deadline_s, f"waited in vain until {what}; at the end: {value}"
        assert by is None or by.poll() is None, f"the program ended before {what}; at the end: {value}"
        time.sleep(1.0)
