"""Changes that can be taken back: every change notes how to undo it, as long as somebody may want to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holokube.packing.errors import PackingError


class Experiments:
    """What can be experimented with."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._forks: list[int] = []

    def fork(self) -> None:
        """Begin an experiment: everything from here on can be taken back. Experiments nest."""
        self._forks.append(len(self._undo))

    def commit(self) -> None:
        """Keep what happened since the last ``fork``; an outer experiment can still take it back."""
        self._last_fork("commit")
        if not self._forks:
            self._undo.clear()

    def rollback(self) -> None:
        """Take back what happened since the last ``fork``, at the cost of the changes alone."""
        begin = self._last_fork("rollback")
        outer, self._forks = self._forks, []
        try:
            while len(self._undo) > begin:
                undo, arguments = self._undo.pop()
                undo(*arguments)
        finally:
            self._forks = outer

    @contextmanager
    def trial(self) -> Iterator[None]:
        """An experiment that is always taken back."""
        self.fork()
        try:
            yield
        finally:
            self.rollback()

    def _last_fork(self, verb: str) -> int:
        if not self._forks:
            raise PackingError(f"nothing to {verb}", hint="Call fork() first.")
        return self._forks.pop()

    def _note(self, undo: Callable[..., object], *arguments: Any) -> None:
        if self._forks:
            self._undo.append((undo, arguments))
