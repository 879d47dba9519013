from __future__ import annotations

import gc
import weakref

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


def test_what_the_run_before_left_behind_goes_when_the_next_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cluster:
        def __init__(self) -> None:
            self.myself = self

    def left_over(left_behind: int) -> bool:
        monkeypatch.setattr(collector, "LEFT_BEHIND", left_behind)
        with collector.collecting_rarely():
            gone = weakref.ref(Cluster())
        others = [[number] for number in range(2000)]
        before = gc.get_threshold()
        gc.set_threshold(*collector.RARE)
        try:
            with collector.collecting_rarely():
                assert len(others) == 2000
                return gone() is not None
        finally:
            gc.set_threshold(*before)

    gc.collect()
    gc.disable()
    try:
        assert left_over(1_000_000), "a few objects are not worth a look"
        assert not left_over(1000)
    finally:
        gc.enable()
