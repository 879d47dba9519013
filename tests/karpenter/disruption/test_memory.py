from __future__ import annotations

from holokube.karpenter.disruption.memory import ConsolidationMark, Memory


def test_the_mark_stands_until_something_changes() -> None:
    mark = ConsolidationMark(100.0)
    before = mark.read(100.0)
    assert mark.read(399.0) == before
    assert mark.move(150.0) != before


def test_two_changes_at_the_same_instant_are_told_apart() -> None:
    mark = ConsolidationMark(100.0)
    assert mark.move(100.0) != mark.move(100.0)


def test_the_mark_moves_by_itself_after_five_minutes() -> None:
    mark = ConsolidationMark(100.0)
    before = mark.read(100.0)
    after = mark.read(400.0)
    assert after != before
    assert mark.read(699.0) == after


def test_a_method_that_found_nothing_is_settled_until_the_mark_moves() -> None:
    mark = ConsolidationMark(0.0)
    memory = Memory()
    assert not memory.is_settled(mark.read(0.0))
    memory = memory.settled(mark.read(0.0))
    assert memory.is_settled(mark.read(10.0))
    mark.move(11.0)
    assert not memory.is_settled(mark.read(12.0))
