from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from holokube.report.columns import NEVER, StringTable, floats, integers, pack, tick_s, ticks, unpack

WHOLE = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(WHOLE), st.lists(st.floats(width=32, allow_nan=False)))
def test_columns_come_back_as_they_were(whole: list[int], real: list[float]) -> None:
    header, columns = unpack(pack({"a": 1}, {"whole": integers(whole), "real": floats(real)}))
    assert header == {"a": 1}
    assert columns == {"whole": whole, "real": real}


@given(st.lists(st.none() | st.floats(0, 1e6)))
def test_times_come_back_to_the_tick(times: list[float | None]) -> None:
    _, columns = unpack(pack({}, {"times": ticks(times, 0.01)}))
    for known, packed in zip(times, columns["times"], strict=True):
        assert packed == NEVER if known is None else abs(packed * 0.01 - known) <= 0.00501


def test_a_run_of_a_year_still_fits_into_the_ticks() -> None:
    year_s = 366 * 86400.0
    unit_s = tick_s(year_s)
    _, columns = unpack(pack({}, {"times": ticks([0.0, year_s], unit_s)}))
    assert columns["times"] == [0, year_s / unit_s]
    assert tick_s(86400) < 0.1


def test_what_is_not_a_number_stays_a_gap() -> None:
    _, columns = unpack(pack({}, {"real": floats([1.0, math.nan, 2.0])}))
    assert columns["real"][0] == 1 and math.isnan(columns["real"][1]) and columns["real"][2] == 2


def test_sorted_times_take_far_less_room_than_their_numbers() -> None:
    block = pack({}, {"times": ticks([60.0 * step for step in range(10_000)], 0.01)})
    assert len(block) < 1_000


def test_a_string_stands_in_the_table_once() -> None:
    table = StringTable()
    column = table.column(["b", "a", "b", "</script>"])
    assert table.strings() == ["b", "a", "</script>"]
    assert column.values.tolist() == [0, 1, 0, 2]
    assert "<" not in pack({"strings": table.strings()}, {"column": column})
