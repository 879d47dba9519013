from __future__ import annotations

import gc

from holokube.runtime import collector


def test_it_collects_seldom_and_leaves_alone_what_is_there() -> None:
    before = gc.get_threshold()
    try:
        collector.relax()
        assert gc.get_threshold() == collector.THRESHOLDS
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
