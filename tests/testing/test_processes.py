from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from holokube.testing.processes import ProcessError, Processes, running_supervisor, stop_detached

# Says when it can be stopped, and notes when it is.
RECORDER = """
trap 'echo "$0" >> stopped; exit 0' TERM
echo ready > "ready-$0"
while :; do sleep 0.05; done
"""
STUBBORN = """
trap '' TERM
echo ready > "ready-$0"
while :; do sleep 0.05; done
"""
# A launcher of its own, so that it can be killed: tells the ids of everything it has started, then waits.
LAUNCHER = """
import json, sys, threading, time
from pathlib import Path
from holokube.testing.processes import Processes
folder = Path(sys.argv[1])
group = Processes(folder / "lock", folder)
for name in ("first", "second"):
    group.start(name, ["/bin/sleep", "600"], folder / "log")
print(json.dumps([group.supervisor_pid, *group.pids.values()]), flush=True)
time.sleep(600)
"""


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def start_script(group: Processes, folder: Path, name: str, script: str) -> None:
    group.start(name, ["/bin/sh", "-c", script, name], folder / "log")
    wait_until((folder / f"ready-{name}").exists, f"{name} is ready")


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path / "lock", tmp_path, stop_grace_s=0.5)
    yield processes
    processes.stop()


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process that has started two others, and the ids of its supervisor and of those two."""
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            pids = json.loads(process.stdout.readline())
            assert not any(is_gone(pid) for pid in pids)
            yield process, pids
        finally:
            process.kill()


def test_what_was_started_last_is_stopped_first(group: Processes, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        start_script(group, tmp_path, name, RECORDER)
    pids = list(group.pids.values())
    group.stop()
    assert (tmp_path / "stopped").read_text().split() == ["three", "two", "one"]
    assert all(is_gone(pid) for pid in pids)


def test_a_process_that_ignores_sigterm_is_killed(group: Processes, tmp_path: Path) -> None:
    start_script(group, tmp_path, "polite", RECORDER)
    start_script(group, tmp_path, "stubborn", STUBBORN)
    pids = list(group.pids.values())
    group.stop()
    assert all(is_gone(pid) for pid in pids)
    assert (tmp_path / "stopped").read_text().split() == ["polite"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_its_launcher(
    launcher: tuple[subprocess.Popen[str], list[int]], number: signal.Signals
) -> None:
    process, pids = launcher
    process.send_signal(number)
    wait_until(lambda: all(is_gone(pid) for pid in pids), f"all are gone after {number.name}")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PR_SET_PDEATHSIG is Linux's")
def test_nothing_outlives_its_supervisor(launcher: tuple[subprocess.Popen[str], list[int]]) -> None:
    _, pids = launcher
    os.kill(pids[0], signal.SIGKILL)
    wait_until(lambda: all(is_gone(pid) for pid in pids), "the supervisor's death has killed the others")


def test_processes_live_on_when_the_thread_that_started_them_has_ended(
    group: Processes, tmp_path: Path
) -> None:
    def start() -> None:
        start_script(group, tmp_path, "one", RECORDER)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    group.wait(0.1)
    assert not is_gone(group.pids["one"])


def test_a_fork_of_the_launcher_does_not_keep_the_processes_alive(tmp_path: Path) -> None:
    script = LAUNCHER.replace("time.sleep(600)", "import os\nif os.fork() == 0: time.sleep(600)\nos._exit(0)")
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        pids = json.loads(process.stdout.readline())
        try:
            wait_until(lambda: all(is_gone(pid) for pid in pids), "all are gone although the fork lives")
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_process_that_ends_is_reported(group: Processes, tmp_path: Path) -> None:
    group.start("brief", ["/bin/sh", "-c", "echo bye; exit 7"], tmp_path / "log")
    with pytest.raises(ProcessError, match="brief ended with status 7") as caught:
        group.wait(30)
    assert caught.value.name == "brief"
    assert (tmp_path / "log").read_text() == "bye\n"


def test_a_process_that_is_killed_is_reported_with_the_signal(group: Processes, tmp_path: Path) -> None:
    group.start("victim", ["/bin/sleep", "600"], tmp_path / "log")
    os.kill(group.pids["victim"], signal.SIGKILL)
    with pytest.raises(ProcessError, match="victim was killed by SIGKILL"):
        group.wait(30)


def test_a_program_that_does_not_exist_is_reported(group: Processes, tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match=r"absent cannot be started: .*No such file"):
        group.start("absent", [str(tmp_path / "absent")], tmp_path / "log")


def test_two_groups_cannot_share_a_lock(group: Processes, tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="another control plane runs in"):
        Processes(tmp_path / "lock", tmp_path)
    group.stop()
    Processes(tmp_path / "lock", tmp_path).stop()


def test_a_detached_group_lives_on_until_it_is_stopped(tmp_path: Path) -> None:
    script = LAUNCHER.replace("time.sleep(600)", "group.detach()")
    command = [sys.executable, "-c", script, str(tmp_path)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    pids = json.loads(output.stdout)
    # Longer than the supervisor takes to notice that its parent is gone.
    time.sleep(0.7)
    assert not any(is_gone(pid) for pid in pids)
    assert running_supervisor(tmp_path / "lock") == pids[0]
    assert stop_detached(tmp_path / "lock")
    assert all(is_gone(pid) for pid in pids[1:])
    wait_until(lambda: is_gone(pids[0]), "the supervisor, which has let go of the lock, is gone too")
    assert running_supervisor(tmp_path / "lock") is None
    assert not stop_detached(tmp_path / "lock")


def test_stopping_twice_is_fine(group: Processes) -> None:
    group.stop()
    group.stop()
