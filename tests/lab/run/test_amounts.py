"""Exact sums over time, and ranks."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from holokube.lab.run.amounts import Area, milliseconds, nearest_rank


def test_an_area_is_the_sum_of_amounts_times_how_long_they_held() -> None:
    area = Area()
    area.add(2, 1_000)
    area.add(3, 3_000)
    area.add(-5, 4_000)
    assert area.until(10_000) == 2 * 2_000 + 5 * 1_000
    assert area.amount == 0


def test_looking_at_an_area_changes_nothing() -> None:
    area = Area()
    area.add(1, 0)
    assert [area.until(10), area.until(5), area.until(10)] == [10, 5, 10]


def test_times_become_whole_milliseconds() -> None:
    assert milliseconds(0.1 + 0.2) == 300


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(1, 100))
def test_a_rank_is_the_least_value_that_enough_others_do_not_exceed(values: list[int], percent: int) -> None:
    values.sort()
    found = nearest_rank(values, percent)
    assert found is not None
    needed = math.ceil(len(values) * percent / 100)
    assert sum(value <= found for value in values) >= needed
    assert sum(value < found for value in values) < needed


def test_nothing_has_no_rank() -> None:
    assert nearest_rank([], 50) is None
