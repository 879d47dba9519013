from __future__ import annotations

import gc

import pytest

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


def test_it_collects_rarely_for_a_while_and_as_before_then() -> None:
    before = gc.get_threshold()
    with collector.collecting_rarely():
        assert gc.get_threshold() == collector.RARE
    assert gc.get_threshold() == before


def test_whoever_lets_an_error_out_has_the_usual_collector_again() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="enough"), collector.collecting_rarely():
        raise ValueError("enough")
    assert gc.get_threshold() == before
