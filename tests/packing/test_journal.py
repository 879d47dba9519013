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
