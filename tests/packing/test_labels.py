"""A column of a label: what it counts is what its nodes have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holokube.packing.labels import LabelColumn


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([None, "", "a", "b"])), max_size=30))
def test_a_column_knows_how_many_nodes_have_the_label(notes: list[tuple[int, str | None]]) -> None:
    column, values = LabelColumn("zone", 5), dict.fromkeys(range(5))
    for row, value in notes:
        column.set(row, value)
        values[row] = value
        assert column.labelled == sum(each is not None for each in values.values())
        assert [column.values[number] for number in column.ids] == list(values.values())
