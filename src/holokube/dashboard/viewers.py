"""Who looks on, and what each is still to be sent: never more than a bounded amount.

Whoever falls behind loses the deltas that wait for him and gets a snapshot instead, once he is ready to read again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

BATCHES_MAX: Final = 40
BYTES_MAX: Final = 8 * 1024 * 1024


class Viewer:
    """One open page."""

    def __init__(
        self, *, batches_max: int = BATCHES_MAX, bytes_max: int = BYTES_MAX, wanted: asyncio.Event | None = None
    ) -> None:
        """``wanted`` is set when he begins to wait for a snapshot."""
        self._batches: deque[bytes] = deque()
        self._bytes = 0
        self._batches_max = batches_max
        self._bytes_max = bytes_max
        self._wake = asyncio.Event()
        self._is_lost = True
        self._is_waiting = False
        self._wanted = wanted
        self.resets = 0
        """How often he fell behind."""
        self.is_ended = False
        """Whether what is queued is the last."""

    @property
    def wants_snapshot(self) -> bool:
        """Whether he has to begin anew, and would read it at once: for one who does not read, none is made."""
        return self._is_lost and self._is_waiting

    @property
    def queued_bytes(self) -> int:
        return self._bytes

    def offer(self, batch: bytes) -> None:
        """Queue a delta, unless he has lost the thread already or loses it now."""
        if self._is_lost:
            return
        if len(self._batches) >= self._batches_max or self._bytes + len(batch) > self._bytes_max:
            self._batches.clear()
            self._bytes = 0
            self._is_lost = True
            self.resets += 1
            return
        self._put(batch)

    def begin(self, snapshot: bytes) -> None:
        """Queue a snapshot, from which deltas go on."""
        self._batches.clear()
        self._bytes = 0
        self._is_lost = False
        self._put(snapshot)

    def end(self, last: bytes) -> None:
        """Queue the last thing there is to tell, in place of all else."""
        self.begin(last)
        self.is_ended = True

    def lose(self) -> None:
        """Forget what waits: it belongs to another cluster."""
        self._batches.clear()
        self._bytes = 0
        self._is_lost = True

    def _put(self, batch: bytes) -> None:
        self._batches.append(batch)
        self._bytes += len(batch)
        self._wake.set()

    async def take(self) -> bytes:
        """What is to be sent next; waits for it."""
        while not self._batches:
            self._wake.clear()
            self._is_waiting = True
            if self._is_lost and self._wanted is not None:
                self._wanted.set()
            try:
                await self._wake.wait()
            finally:
                self._is_waiting = False
        batch = self._batches.popleft()
        self._bytes -= len(batch)
        return batch


class Viewers:
    """All open pages."""

    def __init__(self) -> None:
        self._viewers: set[Viewer] = set()
        self.wanted = asyncio.Event()
        """Set when somebody begins to wait for a snapshot."""

    def join(self) -> Viewer:
        viewer = Viewer(wanted=self.wanted)
        self._viewers.add(viewer)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        self._viewers.discard(viewer)

    def __len__(self) -> int:
        return len(self._viewers)

    @property
    def want_snapshot(self) -> bool:
        return any(viewer.wants_snapshot for viewer in self._viewers)

    def send(self, delta: bytes, snapshot: bytes | None) -> None:
        """Give each what he needs. The snapshot already holds what the delta tells."""
        for viewer in self._viewers:
            if snapshot is not None and viewer.wants_snapshot:
                viewer.begin(snapshot)
            else:
                viewer.offer(delta)

    def lose(self) -> None:
        """Another cluster is shown from now on."""
        for viewer in self._viewers:
            viewer.lose()

    def end(self, last: bytes) -> None:
        """There is nothing more to come after this."""
        for viewer in self._viewers:
            viewer.end(last)
