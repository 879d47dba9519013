"""Cuts a byte stream into lines, wherever the network happened to cut it into chunks."""

from __future__ import annotations


class LineTooLongError(Exception):
    """A line grew over the limit before it ended."""


class LineSplitter:
    """Collects chunks until a line is complete.

    A line may be of any length up to ``limit_bytes``. Each byte is looked at once: a large object arriving in
    many small chunks costs no more than in one.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._pending: list[bytes] = []
        self._pending_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends; empty lines are left out."""
        *complete, rest = chunk.split(b"\n")
        if complete and self._pending:
            self._pending.append(complete[0])
            complete[0] = b"".join(self._pending)
            self._pending, self._pending_bytes = [], 0
        if rest:
            self._pending.append(rest)
            self._pending_bytes += len(rest)
        longest = max([self._pending_bytes, *map(len, complete)])
        if longest > self._limit_bytes:
            raise LineTooLongError(f"a line of {longest} bytes or more; the limit is {self._limit_bytes}")
        return [line for line in complete if line.strip()]

    def rest(self) -> bytes:
        """What came after the last line end."""
        return b"".join(self._pending).strip()
