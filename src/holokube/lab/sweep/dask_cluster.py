"""Runs on an existing Dask cluster. Its workers need this program and nothing else: scenarios are sent along."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from holokube.base.errors import HolokubeError, UsageError
from holokube.lab.sweep.processes import TRIES, Finished
from holokube.lab.sweep.tasks import RunTask, Task

_CONNECT_WITHIN_S: Final = 10


class DaskRunner:
    """Runs tasks on the workers of a scheduler, such as ``tcp://10.0.0.1:8786``."""

    def __init__(self, address: str, run: RunTask, *, connect_within_s: float = _CONNECT_WITHIN_S) -> None:
        self._address = address
        self._run = run
        self._connect_within_s = connect_within_s

    def run(self, tasks: Sequence[Task], on_start: Callable[[int], None] = lambda _: None) -> Iterator[Finished]:
        """Results as they come. A worker that dies has its runs done by others; Dask sees to that."""
        distributed = _distributed()
        client = self._connect(distributed)
        try:
            futures: dict[Any, int] = {}
            for number, task in enumerate(tasks):
                # A name of its own: Dask would take equal calls for one, and results of earlier sweeps for this one's.
                future = client.submit(_guarded, self._run, task, pure=False)
                futures[future] = number
                on_start(number)
            for future in distributed.as_completed(list(futures), loop=client.loop):
                yield _finished(futures[future], future)
                # The result is ours now; the cluster need not keep it.
                future.release()
        finally:
            client.close()

    def _connect(self, distributed: Any) -> Any:
        try:
            return distributed.Client(self._address, timeout=self._connect_within_s, set_as_default=False)
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"--dask {self._address}: no scheduler answers ({type(error).__name__})",
                hint="Give the address that `dask scheduler` prints, such as tcp://host:8786.",
            ) from error


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise UsageError(
            "--dask needs the package distributed, which is not installed",
            hint="Install it with `pip install 'holokube[dask]'`, or leave --dask out to use this machine.",
        ) from error


def _guarded(run: RunTask, task: Task) -> tuple[bytes, str]:
    """A mistake in a run is an answer, not a failure of the cluster."""
    try:
        return run(task), ""
    except HolokubeError as error:
        return b"", error.message


def _finished(number: int, future: Any) -> Finished:
    try:
        result, error = future.result()
    except ModuleNotFoundError as problem:
        return Finished(number, error=f"a worker lacks a module: {problem}; install holokube on all of them")
    except Exception as problem:
        if type(problem).__name__ == "KilledWorker":
            return Finished(number, error="its workers died again and again, perhaps for want of memory", tries=TRIES)
        return Finished(number, error=f"{type(problem).__name__}: {problem}")
    return Finished(number, result, error)
