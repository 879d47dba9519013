"""The launcher's side of the supervisor: processes that cannot outlive the one that asked for them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from holokube.base.errors import HolokubeError
from holokube.testing import supervisor

_ANSWER_WITHIN_S = 30.0


class ProcessError(HolokubeError):
    """A process could not be started, or ended when it should not have."""

    def __init__(self, message: str, *, name: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.name = name


class Processes:
    """A group of processes in one working folder; at most one group per lock file lives at a time.

    ``stop_grace_s`` is short because an apiserver with an open watch would otherwise wait a minute for its
    client, and nothing that a test's control plane could still save is wanted.
    """

    def __init__(self, lock_file: Path, folder: Path, *, stop_grace_s: float = 3.0) -> None:
        self.pids: dict[str, int] = {}
        self._stop_grace_s = stop_grace_s
        self._pending_output = b""
        self._events: list[dict[str, Any]] = []
        # A session of its own: Ctrl-C in the terminal reaches the launcher, which then stops things in order,
        # and not every process at once.
        arguments = [str(lock_file.absolute()), str(os.getpid()), str(stop_grace_s)]
        self._popen = subprocess.Popen(  # noqa: S603 - this interpreter, this package's own file
            [sys.executable, "-I", "-S", supervisor.__file__, *arguments],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._answer("supervising")
        except BaseException:
            self.stop()
            if self._popen.returncode == supervisor.LOCK_IS_TAKEN:
                raise ProcessError(
                    f"another control plane runs in {folder}",
                    hint="Stop that one first, or give this one another folder.",
                ) from None
            raise

    @property
    def supervisor_pid(self) -> int:
        """The process to send SIGTERM to once the group is detached."""
        return self._popen.pid

    def start(self, name: str, argv: list[str], log: Path) -> None:
        """Start a process that writes both its outputs to ``log``."""
        self._order({"start": name, "argv": argv, "log": str(log.absolute())})
        self.pids[name] = self._answer("started", name)["pid"]

    def wait(self, timeout_s: float) -> None:
        """Wait until a process ends, at most ``timeout_s``; raise ProcessError for one that has."""
        if not self._events:
            self._receive(timeout_s)
        for event in self._events:
            if "exited" in event:
                raise _exit_error(event)
        self._events.clear()

    def detach(self) -> None:
        """Let the processes live on when this process ends."""
        self._order({"detach": True})
        self._answer("detached")
        self._close_pipes()
        # The supervisor is no child to wait for any more: without this, Popen warns that it still runs.
        self._popen.returncode = 0

    def stop(self) -> None:
        """Stop the processes in the reverse order of their start, and do not return before they are gone."""
        self._close_pipes()
        try:
            # The supervisor grants each process its grace, one after the other, and kills what is left.
            self._popen.wait((len(self.pids) + 1) * self._stop_grace_s)
        finally:
            # Time-out, or a second Ctrl-C: the supervisor leads the process group that all the others are in.
            if self._popen.poll() is None:
                os.killpg(self._popen.pid, signal.SIGKILL)
                self._popen.wait()
        self.pids.clear()

    def _close_pipes(self) -> None:
        for pipe in (self._popen.stdin, self._popen.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _order(self, order: dict[str, Any]) -> None:
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            # A supervisor that is gone is noticed, and told, where its answer is awaited.
            self._popen.stdin.write(json.dumps(order).encode() + b"\n")
            self._popen.stdin.flush()

    def _answer(self, kind: str, name: str | None = None) -> dict[str, Any]:
        while True:
            for position, event in enumerate(self._events):
                if kind in event and name in (None, event[kind]):
                    return self._events.pop(position)
                if "exited" in event and event["exited"] == name:
                    raise _exit_error(event)
            if not self._receive(_ANSWER_WITHIN_S):
                raise ProcessError(f"the supervisor did not answer within {_ANSWER_WITHIN_S:.0f} s")

    def _receive(self, timeout_s: float) -> bool:
        assert self._popen.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._popen.stdout, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                return False
        data = os.read(self._popen.stdout.fileno(), 65536)
        if not data:
            raise ProcessError("the supervisor has ended unexpectedly")
        *lines, self._pending_output = (self._pending_output + data).split(b"\n")
        self._events += [json.loads(line) for line in lines]
        return True


def stop_detached(lock_file: Path) -> bool:
    """Stop a detached group; False if none runs there."""
    pid = running_supervisor(lock_file)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    with lock_file.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
    return True


def running_supervisor(lock_file: Path) -> int | None:
    """The process id of the supervisor that holds the lock, or None if nobody does."""
    try:
        with lock_file.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read() or 0) or None
    except FileNotFoundError:
        pass
    return None


def _exit_error(event: dict[str, Any]) -> ProcessError:
    name, status = event["exited"], event["status"]
    if "reason" in event:
        return ProcessError(f"{name} cannot be started: {event['reason']}", name=name)
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    return ProcessError(f"{name} {how}", name=name)
