"""A history that stays small."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.dashboard.history import History


@given(gaps=st.lists(st.floats(0.01, 5000), max_size=400), window_s=st.none() | st.floats(10, 5000))
def test_it_is_bounded_ordered_and_current(gaps: list[float], window_s: float | None) -> None:
    history, now_s = History(window_s=window_s, points_max=20), 0.0
    for number, gap_s in enumerate(gaps):
        now_s += gap_s
        history.add((now_s, float(number)))
        assert len(history) <= 20
        assert history.last == (now_s, float(number)), "the end is always current"
    times = [point[0] for point in history.points()]
    assert times == sorted(times)


def test_without_a_window_the_beginning_is_kept() -> None:
    history = History(points_max=20)
    for second in range(100_000):
        history.add((float(second), 1.0))
    assert history.points()[0][0] == 0.0 and history.compactions > 0
    gaps = [after[0] - before[0] for before, after in zip(history.points()[:-2], history.points()[1:-1], strict=True)]
    assert max(gaps) <= 4 * min(gaps), "points stay evenly spread"


def test_with_a_window_what_is_older_falls_off() -> None:
    history = History(window_s=100.0, points_max=50)
    for second in range(10_000):
        history.add((float(second), 1.0))
    first, last = history.points()[0][0], history.points()[-1][0]
    assert last == 9999.0 and 60 <= last - first <= 110


def test_points_that_come_too_soon_replace_the_last() -> None:
    history = History()
    for tenth in range(25):
        history.add((tenth / 10, float(tenth)))
    assert [point[0] for point in history.points()] == [0.0, 1.0, 2.0, 2.4]


def test_one_point_is_no_history() -> None:
    with pytest.raises(ValueError, match="two points"):
        History(points_max=1)
