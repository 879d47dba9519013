"""What is the same object is known without a look at it."""

from __future__ import annotations

from holokube.base.identity import are_same


def test_only_the_very_same_objects_in_the_same_order_are_the_same() -> None:
    one, other, like_one = [1], [2], [1]
    assert are_same((), [])
    assert are_same([one, other], (one, other))
    assert not are_same([one, other], [other, one])
    assert not are_same([one], [like_one])
    assert not are_same([one], [one, other])
    assert not are_same([one, other], [one])
