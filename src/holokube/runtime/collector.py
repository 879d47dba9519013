"""Python's garbage collector in processes that hold many objects for long."""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 20, 100)
"""Objects of a cluster live long and hold no cycles. At Python's defaults (700, 10, 10) the collector walks through all
of them over and over: with 60,000 pods in the process more than half of all time went there."""


def relax() -> None:
    """Collect seldom. What is there by now, modules and tables above all, is never looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
