"""Python's garbage collector in processes that hold many objects for long."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 100)
"""Objects of a cluster live long and hold no cycles. At Python's defaults (700, 10, 10) the collector walks through all
of them over and over: with 60,000 pods in the process more than half of all time went there."""
RARE = (10_000_000, 10, 10)
"""For a run of a cluster on virtual time: a day of 1,000 nodes leaves some ten thousand objects behind that only the
collector can find, among two million that stay, and to look through those takes most of a second. Ten million more than
there were, and something else is the matter."""
LEFT_BEHIND = 500_000
"""Where a run finds so many objects of which the collector does not know yet whether they stay, another run was in the
same process before it, and its cluster may go."""


def relax() -> None:
    """Collect seldom. What is there by now, modules and tables above all, is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def collect_rarely() -> None:
    """Collect next to never: the process runs clusters on virtual time, and ends then."""
    gc.set_threshold(*RARE)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """The same for a while."""
    if gc.get_count()[0] > LEFT_BEHIND:
        gc.collect()
    usual = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*usual)
