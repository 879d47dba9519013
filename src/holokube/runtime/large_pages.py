"""Memory in large pages, for processes that go back and forth between millions of small objects.

A processor remembers where a few thousand pages are and has to look up all others, which takes it longer than what it
does there. Of 4 KiB each, these are a few megabytes; a cluster of 1,000 nodes has hundreds. Linux (6.1 and newer) puts
what lies in 512 small pages into one large one when asked to. Nothing else changes by that: where it cannot be done, or
not now, things go on as they are.

Whoever comes upon a page that is being moved has to wait for it, a few milliseconds in a virtual machine. What is there
early is used for long and worth that; so memory is looked after soon at first, and at longer and longer intervals then.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE_BYTES = 2 << 20
FIRST_AFTER_S = 2.0
"""Of real time, until memory is looked after for the first time; from look to look it takes twice as long."""
_MAPS = Path("/proc/self/maps")
_MADV_COLLAPSE = 25

Range = tuple[int, int]
"""Addresses: the first one, and the one behind the last."""
Advise = Callable[[int, int], None]
"""Asks for large pages at an address, for so many bytes."""


def whole_pages(maps: Iterable[str]) -> list[Range]:
    """The large pages that lie within this process's own memory, by the lines of ``/proc/self/maps``."""
    found = []
    for line in maps:
        addresses, permissions, _offset, _device, inode, *name = line.split(maxsplit=5)
        # What belongs to files, to stacks or to the kernel is left alone.
        is_ours = not name or name[0].startswith(("[heap]", "[anon:"))
        if permissions != "rw-p" or inode != "0" or not is_ours:
            continue
        first, end = (int(address, 16) for address in addresses.split("-"))
        begin, end = -(-first // PAGE_BYTES) * PAGE_BYTES, end // PAGE_BYTES * PAGE_BYTES
        if begin < end:
            found.append((begin, end))
    return found


class LargePages:
    """Asks for large pages where memory has come or grown since it was last asked for."""

    def __init__(self, advise: Advise) -> None:
        self._advise = advise
        self._known: dict[int, int] = {}

    def look(self, maps: Iterable[str]) -> None:
        """Asks for what is new by the lines of ``/proc/self/maps``."""
        known, self._known = self._known, dict(whole_pages(maps))
        for begin, end in self._known.items():
            # Memory grows at its end, if it is the heap, or by whole ranges that come before what is there: only what
            # was added is asked for, for to be asked about a page again costs the kernel a look at it.
            before = next((was for was in known.items() if begin <= was[0] and was[1] <= end), None)
            for part_begin, part_end in ((begin, end),) if before is None else ((begin, before[0]), (before[1], end)):
                if part_begin < part_end:
                    self._advise(part_begin, part_end - part_begin)


@contextmanager
def in_large_pages(*, first_after_s: float = FIRST_AFTER_S) -> Iterator[None]:
    """Meanwhile, memory is brought into large pages: by a thread, since the kernel needs a while to move it."""
    advise = _advise()
    if advise is None:
        yield
        return
    pages, is_over = LargePages(advise), threading.Event()

    def look_after() -> None:
        wait_s = first_after_s
        while not is_over.wait(wait_s):
            with _MAPS.open() as maps:
                pages.look(maps)
            wait_s *= 2

    thread = threading.Thread(target=look_after, name="large pages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _advise() -> Advise | None:
    """How to ask; None where it is not known how."""
    if sys.platform != "linux" or not _MAPS.exists():
        return None
    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if madvise is None:
        return None
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def advise(address: int, size: int) -> None:
        # Whether it was done is of no interest: an older kernel says no, and one that is busy does a part of it.
        madvise(address, size, _MADV_COLLAPSE)

    return advise
