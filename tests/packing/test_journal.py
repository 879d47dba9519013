"""A journal tells the same to those who ask for a list and to those who ask for an array."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holokube.packing.journal import Journal


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(-1, 45), st.integers(0, 10))
def test_a_few_changes_are_the_changes_unless_there_are_too_many(rows: list[int], place: int, most: int) -> None:
    journal = Journal(keep=8)
    for row in rows:
        journal.append(row)
    place = min(place, journal.end)
    changed, few = journal.since(place), journal.few_since(place, most)
    if changed is None or journal.end - place > most:
        assert few is None
    else:
        assert few is not None and few == changed.tolist()
        assert sorted(set(few)) == sorted(set(rows[place:]))


@given(st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=8), st.integers(-1, 60))
def test_several_changes_noted_at_once_are_as_if_noted_one_by_one(notes: list[list[int]], place: int) -> None:
    at_once, single = Journal(keep=100), Journal(keep=100)
    for rows in notes:
        at_once.extend(rows)
        for row in rows:
            single.append(row)
    assert at_once.end == single.end
    place = min(place, single.end)
    changed, expected = at_once.since(place), single.since(place)
    assert (changed is None) == (expected is None)
    assert changed is None or expected is None or changed.tolist() == expected.tolist()


def test_of_many_changes_noted_at_once_the_oldest_are_forgotten() -> None:
    journal = Journal(keep=4)
    journal.extend(range(20))
    assert journal.end == 20
    assert journal.since(15) is None
    assert journal.few_since(17, 5) == [17, 18, 19]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 5))
def test_the_latest_row_is_the_last_that_was_noted(rows: list[int], keep: int) -> None:
    journal = Journal(keep)
    for row in rows:
        journal.append(row)
        assert journal.latest == row
        assert journal.few_since(journal.end - 1, 1) == [row]
