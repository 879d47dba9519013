from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.go_sort import _Sorter, sort_as_go

_WORD = (1 << 64) - 1

# How many elements, how many different keys, which pattern, and the CRC-32 of the places from which Go 1.26's
# sort.Slice took the elements, as little-endian words.
_RECORDED = [
    (12, 2, 0, 3735627414),
    (12, 2, 3, 3564361355),
    (12, 3, 2, 1364202126),
    (12, 7, 1, 423041133),
    (12, 1000, 0, 2479683033),
    (12, 1000, 3, 799998895),
    (13, 2, 2, 1039448110),
    (13, 3, 1, 1320682618),
    (13, 7, 0, 1127037462),
    (13, 7, 3, 1317064747),
    (13, 1000, 2, 1555184029),
    (22, 2, 1, 3042366550),
    (22, 3, 0, 716314496),
    (22, 3, 3, 1987854929),
    (22, 7, 2, 3510857740),
    (22, 1000, 1, 259183637),
    (50, 2, 0, 2485435043),
    (50, 2, 3, 1785816156),
    (50, 3, 2, 72844248),
    (50, 7, 1, 2169105511),
    (50, 1000, 0, 2999414994),
    (50, 1000, 3, 2087310395),
    (150, 2, 2, 460215706),
    (150, 3, 1, 995647986),
    (150, 7, 0, 884363731),
    (150, 7, 3, 4223028609),
    (150, 1000, 2, 2357124292),
    (1000, 2, 1, 2953245978),
    (1000, 3, 0, 3547532304),
    (1000, 3, 3, 1978835027),
    (1000, 7, 2, 2470277871),
    (1000, 1000, 1, 2572766776),
]


def _keys(count: int, distinct: int, pattern: int) -> Iterator[int]:
    """Random keys, descending ones, a roof, and a saw with some teeth missing."""
    state = count * 1000 + distinct * 10 + pattern

    def draw() -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & _WORD
        return state >> 33

    for i in range(count):
        if pattern == 0:
            yield draw() % distinct
        elif pattern == 1:
            yield (count - i) * distinct // count
        elif pattern == 2:
            yield (count - i if i >= count // 2 else i) % distinct
        else:
            yield 0 if draw() % 20 == 0 else i % distinct


@pytest.mark.parametrize(("count", "distinct", "pattern", "checksum"), _RECORDED)
def test_equal_elements_come_out_as_go_leaves_them(count: int, distinct: int, pattern: int, checksum: int) -> None:
    keys = list(_keys(count, distinct, pattern))
    places = sort_as_go(range(count), keys.__getitem__)
    assert zlib.crc32(struct.pack(f"<{count}I", *places)) == checksum


def test_the_order_is_not_simply_a_stable_one() -> None:
    keys = list(_keys(150, 3, 0))
    assert sort_as_go(range(150), keys.__getitem__) != sorted(range(150), key=keys.__getitem__)


@given(st.lists(st.integers(-5, 5), max_size=200))
def test_whatever_comes_in_comes_out_sorted(keys: list[int]) -> None:
    places = sort_as_go(range(len(keys)), keys.__getitem__)
    assert sorted(places) == list(range(len(keys)))
    assert [keys[place] for place in places] == sorted(keys)


@given(st.lists(st.integers(0, 9), min_size=13, max_size=100))
def test_the_heap_that_ends_a_run_of_bad_splits_sorts_too(keys: list[int]) -> None:
    sorter = _Sorter(list(keys), list(range(len(keys))))
    sorter.sort(0, len(keys), 0)
    assert sorter.keys == sorted(keys)
    assert [keys[place] for place in sorter.items] == sorter.keys


@given(st.lists(st.integers(0, 3), max_size=12))
def test_a_few_elements_stay_in_their_order(keys: list[int]) -> None:
    assert sort_as_go(range(len(keys)), keys.__getitem__) == sorted(range(len(keys)), key=keys.__getitem__)
