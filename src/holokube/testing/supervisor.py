"""A small process that owns the processes of a control plane, so that none is ever left behind.

Run as ``python -I -S supervisor.py LOCK_FILE PARENT_PID STOP_GRACE_S``; it needs nothing but the standard
library. The launcher writes one JSON order per line to its standard input and reads one JSON event per line
from its standard output::

                                                          {"supervising": 4710}
    {"start": "etcd", "argv": [...], "log": "..."}   ->   {"started": "etcd", "pid": 4711}
    {"detach": true}                                 ->   {"detached": true}
                                                          {"exited": "etcd", "status": -9}

When its input ends, the launcher has stopped or died, by whatever signal: the children are then stopped in
the reverse order of their start. That order matters, for an apiserver whose etcd is gone hangs for minutes.
Why not ``PR_SET_PDEATHSIG`` in the launcher alone: it exists on Linux only, it fires when the *thread* that
forked ends, even though its process lives on, and it kills everything at once. Here it is the second line of
defence: this process has one thread, and should somebody kill it with SIGKILL, its children go with it.

After ``detach`` the children live on without the launcher, until SIGTERM. The lock on LOCK_FILE, which also
holds this process's id, lasts exactly as long as this process: whoever can take the lock knows that nothing
runs.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

LOCK_IS_TAKEN = 3
# Copies of the launcher made by fork() keep its end of the pipe open; the parent's id tells all the same.
_PARENT_CHECK_EVERY_S = 0.5
_PR_SET_PDEATHSIG = 1


class Supervisor:
    """Starts what it is told to, reports what ends, and stops all of it in the end."""

    def __init__(self, parent_pid: int, stop_grace_s: float) -> None:
        self._parent_pid = parent_pid
        self._stop_grace_s = stop_grace_s
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._detached = False
        self._stopping = False
        self._pending_input = b""

    def run(self) -> None:
        """Serve until the input ends, the parent is gone, or a signal says so; then stop the children."""
        woken, waker = os.pipe()
        for end in (woken, waker):
            os.set_blocking(end, False)
        self._tell({"supervising": os.getpid()})
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_stop_signal)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector = selectors.DefaultSelector()
        selector.register(woken, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while not self._stopping:
            for key, _ in selector.select(None if self._detached else _PARENT_CHECK_EVERY_S):
                if key.fd == woken:
                    os.read(woken, 4096)
                elif not self._read_orders():
                    selector.unregister(0)
                    self._stopping = not self._detached
            self._report_exits()
            if not self._detached and os.getppid() != self._parent_pid:
                self._stopping = True
        self._stop_children()

    def _on_stop_signal(self, *_: object) -> None:
        self._stopping = True

    def _read_orders(self) -> bool:
        data = os.read(0, 65536)
        *lines, self._pending_input = (self._pending_input + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "start" in order:
                self._start(order["start"], order["argv"], order["log"])
            elif "detach" in order:
                self._detached = True
                self._tell({"detached": True})
        return bool(data)

    def _start(self, name: str, argv: list[str], log: str) -> None:
        try:
            with open(log, "ab") as output:
                self._children[name] = subprocess.Popen(  # noqa: S603 - the launcher composes the argv
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    preexec_fn=_die_with_parent(),
                )
        except OSError as error:
            self._tell({"exited": name, "status": 127, "reason": str(error)})
        else:
            self._tell({"started": name, "pid": self._children[name].pid})

    def _report_exits(self) -> None:
        for name, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[name]
                self._tell({"exited": name, "status": child.returncode})

    def _stop_children(self) -> None:
        for child in reversed(self._children.values()):
            child.terminate()
            try:
                child.wait(self._stop_grace_s)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _tell(self, event: dict[str, Any]) -> None:
        try:
            os.write(1, json.dumps(event).encode() + b"\n")
        except OSError:
            # Nobody listens any more; what has to follow from that follows from the end of the input.
            return


def _die_with_parent() -> Callable[[], None] | None:
    """Return what a child does before exec to be killed by the kernel when this process dies (Linux only)."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    supervisor_pid = os.getpid()

    def before_exec() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor_pid:
            # The supervisor died between fork and prctl: the signal would never come.
            os._exit(1)

    return before_exec


def main() -> int:
    """Take the lock, say who holds it, and supervise."""
    lock_file, parent_pid, stop_grace_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return LOCK_IS_TAKEN
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    Supervisor(parent_pid, stop_grace_s).run()
    # The lock ends with the process; the file stays, for somebody may be opening it at this moment.
    os.ftruncate(lock, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
