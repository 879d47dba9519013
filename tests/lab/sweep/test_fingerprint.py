"""Hashes that are the same everywhere for the same values, and differ for others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

from holokube.lab.sweep.fingerprint import fingerprint


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    x: int
    y: Any = None


class Record(msgspec.Struct):
    x: int


class Plain:
    __slots__ = ("x", "y")

    def __init__(self, x: int) -> None:
        self.x = x


class Open:
    def __init__(self, x: int) -> None:
        self.x = x


DIFFERENT: list[Any] = [
    None, True, False, 0, 1, 1.0, "1", "", b"1", [1], [], {}, {"a": 1}, {"a": 2}, {"b": 1}, [[1], 2], [1, [2]], [1, 2],
    {1, 2}, {12}, Point(1), Point(2), Point(1, Point(1)), Record(1), Record(2), Plain(1), Plain(2), Open(1), Open(2),
    np.array([1, 2]), np.array([1.0, 2.0]), np.array([[1], [2]]), ["ab", "c"], ["a", "bc"],
]  # fmt: skip


def test_different_values_have_different_hashes() -> None:
    assert len({fingerprint(value) for value in DIFFERENT}) == len(DIFFERENT)


def test_equal_values_have_equal_hashes_whatever_their_order_in_mappings_and_sets() -> None:
    assert fingerprint({"a": 1, "b": (1, 2)}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint({"x", "y", "z"}) == fingerprint({"z", "y", "x"})
    assert fingerprint(Point(1, {"k": 1})) == fingerprint(Point(1, {"k": 1}))
    assert fingerprint(1, 2) != fingerprint(2, 1)


@pytest.mark.parametrize("value", [len, lambda: 1, int])
def test_what_has_no_value_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="no value that could be hashed"):
        fingerprint([value])
