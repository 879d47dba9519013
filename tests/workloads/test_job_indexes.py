"""Indexes in the text form of the API."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holokube.workloads.job_indexes import format_indexes, parse_indexes


def test_runs_of_three_and_more_get_a_dash() -> None:
    assert format_indexes({1, 3, 4, 5, 7, 8}) == "1,3-5,7,8"
    assert format_indexes(()) == ""
    assert parse_indexes("1,3-5,7", 100) == {1, 3, 4, 5, 7}


def test_what_is_out_of_range_or_unreadable_is_left_out() -> None:
    assert parse_indexes("0,2-9,x,12", 5) == {0, 2, 3, 4}
    assert parse_indexes(None, 5) == set()


@given(st.sets(st.integers(0, 300)))
def test_formatting_and_parsing_are_inverse(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 301) == indexes
