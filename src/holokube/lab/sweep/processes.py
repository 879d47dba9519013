"""Runs over processes of this machine. A worker that dies takes only its own run with it, which is tried again."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final

from holokube.base.errors import HolokubeError
from holokube.lab.sweep.tasks import RunTask, Task

TRIES: Final = 3
"""A run whose worker died is tried twice more."""
_STOP_WITHIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that is over."""

    number: int
    """Its place among the tasks."""
    result: bytes = b""
    error: str = ""
    """Why there is no result."""
    tries: int = 1


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    number: int | None = None
    """Of the task that it has."""


class ProcessRunner:
    """Runs tasks on ``jobs`` processes that are started anew, not forked: nothing of this one leaks into a run."""

    def __init__(self, jobs: int, run: RunTask) -> None:
        self._jobs = jobs
        self._run = run
        self._context = multiprocessing.get_context("spawn")

    def run(
        self, tasks: Sequence[Task], on_start: Callable[[int], None] = lambda _: None
    ) -> Generator[Finished, None, None]:
        """Results as they come. When the iterator is closed or interrupted, the workers are stopped."""
        waiting = deque(range(len(tasks)))
        tries = [0] * len(tasks)
        workers: list[_Worker] = []
        try:
            while waiting or any(worker.number is not None for worker in workers):
                self._fill(workers, waiting, tasks, tries, on_start)
                for worker in self._heard_of(workers):
                    number = worker.number
                    finished = self._hear(worker, tries)
                    if finished is not None:
                        yield finished
                    elif number is not None:
                        # Behind the others: if it takes a worker down again, these are done at least.
                        waiting.append(number)
                workers = [worker for worker in workers if worker.process.is_alive() and not worker.connection.closed]
        finally:
            self._stop(workers)

    def _fill(
        self, workers: list[_Worker], waiting: deque[int], tasks: Sequence[Task], tries: list[int],
        on_start: Callable[[int], None],
    ) -> None:  # fmt: skip
        idle = sum(worker.number is None for worker in workers)
        while len(workers) < self._jobs and idle < len(waiting):
            workers.append(self._start())
            idle += 1
        for worker in workers:
            if worker.number is None and waiting:
                number = waiting.popleft()
                tries[number] += 1
                worker.number = number
                on_start(number)
                try:
                    worker.connection.send(tasks[number])
                except (BrokenPipeError, ConnectionResetError):
                    # It has died before it got anything; its end is noticed by whoever waits for it.
                    continue

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._run), daemon=True, name="holokube-sweep")
        with _deaf_to_interrupts():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _heard_of(self, workers: Sequence[_Worker]) -> list[_Worker]:
        ready = set(wait([worker.connection for worker in workers if worker.number is not None]))
        return [worker for worker in workers if worker.connection in ready]

    def _hear(self, worker: _Worker, tries: list[int]) -> Finished | None:
        """What a worker has to say; None if it has died and its run is to be tried again."""
        number = worker.number
        assert number is not None
        try:
            result, error = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            worker.connection.close()
            worker.process.join(_STOP_WITHIN_S)
            worker.number = None
            if tries[number] < TRIES:
                return None
            return Finished(number, error=_death(worker.process.exitcode, tries[number]), tries=tries[number])
        worker.number = None
        return Finished(number, result, error, tries[number])

    def _stop(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            if worker.number is not None:
                worker.process.terminate()
            worker.connection.close()
        for worker in workers:
            worker.process.join(_STOP_WITHIN_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started here never hear Ctrl-C, not even while Python starts; this one does afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(exit_code: int | None, tries: int) -> str:
    if exit_code is not None and exit_code < 0:
        how = f"was killed by {signal.Signals(-exit_code).name}"
        memory = ", perhaps for want of memory" if exit_code == -signal.SIGKILL else ""
        return f"its worker {how}{memory}, {tries} times"
    return f"its worker ended with code {exit_code}, {tries} times"


def _work(connection: Connection, run: RunTask) -> None:
    """A worker's life. Ctrl-C is the parent's business, which then stops the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            answer = (run(task), "")
        except HolokubeError as error:
            answer = (b"", error.message)
        except Exception as error:
            answer = (b"", f"{type(error).__name__}: {error}")
        try:
            connection.send(answer)
        except BrokenPipeError:
            return
