"""Sorting in exactly the order in which Go's ``sort.Slice`` leaves things.

It is not stable: of elements that compare equal, which come first depends on how a pattern-defeating quicksort moves
them about. It does so without chance, and upstream programs decide by that order, so the moves are made here in the
same way: up to twelve elements by insertion; medians of three, or of nine from fifty elements on; runs of equal
elements split off; a few elements scattered after a lopsided split; a heap sort after too many of those.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

_BY_INSERTION_MAX = 12
_MEDIAN_MIN = 8
_NINTHER_MIN = 50
_SHIFT_MIN = 50
_SHIFTS_MAX = 5
_ALL_SWAPPED = 12
_WORD = (1 << 64) - 1


def sort_as_go(items: Sequence[T], key: Callable[[T], float]) -> list[T]:
    """The items by ascending key, equal ones as ``sort.Slice`` leaves them."""
    keys = [key(item) for item in items]
    if all(keys[i - 1] <= keys[i] for i in range(1, len(keys))):
        # It notices order from the start, and moves nothing.
        return list(items)
    sorter = _Sorter(keys, list(items))
    sorter.sort(0, len(keys), len(keys).bit_length())
    return sorter.items


class _Sorter(Generic[T]):
    """Keys and items, moved together. Ranges include their start and exclude their end."""

    def __init__(self, keys: list[float], items: list[T]) -> None:
        self.keys = keys
        self.items = items

    def sort(self, start: int, end: int, bad_splits_left: int) -> None:
        is_balanced = was_split_already = True
        while end - start > _BY_INSERTION_MAX:
            length = end - start
            if not bad_splits_left:
                self._sort_by_heap(start, end)
                return
            if not is_balanced:
                self._scatter(start, end)
                bad_splits_left -= 1
            pivot, swaps = self._choose_pivot(start, end)
            if swaps == _ALL_SWAPPED:
                self._reverse(start, end)
                pivot, swaps = end - 1 - (pivot - start), 0
            if is_balanced and was_split_already and not swaps and self._repair(start, end):
                return
            if start and self.keys[start - 1] >= self.keys[pivot]:
                # Nothing here is less than what stands before, so all that equals the pivot is in its place.
                start = self._split_off_equal(start, end, pivot)
                continue
            middle, was_split_already = self._split(start, end, pivot)
            if middle - start < end - middle:
                is_balanced = middle - start >= length // 8
                self.sort(start, middle, bad_splits_left)
                start = middle + 1
            else:
                is_balanced = end - middle >= length // 8
                self.sort(middle + 1, end, bad_splits_left)
                end = middle
        self._sort_by_insertion(start, end)

    def _swap(self, i: int, j: int) -> None:
        keys, items = self.keys, self.items
        keys[i], keys[j] = keys[j], keys[i]
        items[i], items[j] = items[j], items[i]

    def _sort_by_insertion(self, start: int, end: int) -> None:
        for i in range(start + 1, end):
            self._sink(i, start)

    def _sink(self, i: int, lowest: int) -> None:
        """Move an element down to where it belongs."""
        keys, items = self.keys, self.items
        key, to = keys[i], i
        while to > lowest and key < keys[to - 1]:
            to -= 1
        if to < i:
            # All at once what swaps of neighbours would do.
            keys.insert(to, keys.pop(i))
            items.insert(to, items.pop(i))

    def _choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """A pivot, and how many comparisons on the way found elements the wrong way round."""
        quarter = (end - start) // 4
        low, middle, high = start + quarter, start + 2 * quarter, start + 3 * quarter
        if end - start < _MEDIAN_MIN:
            return middle, 0
        swaps = 0
        if end - start >= _NINTHER_MIN:
            low, more = self._median(low - 1, low, low + 1)
            swaps += more
            middle, more = self._median(middle - 1, middle, middle + 1)
            swaps += more
            high, more = self._median(high - 1, high, high + 1)
            swaps += more
        middle, more = self._median(low, middle, high)
        return middle, swaps + more

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        keys, swaps = self.keys, 0
        if keys[b] < keys[a]:
            a, b, swaps = b, a, swaps + 1
        if keys[c] < keys[b]:
            b, swaps = c, swaps + 1
        if keys[b] < keys[a]:
            b, swaps = a, swaps + 1
        return b, swaps

    def _reverse(self, start: int, end: int) -> None:
        self.keys[start:end] = self.keys[start:end][::-1]
        self.items[start:end] = self.items[start:end][::-1]

    def _repair(self, start: int, end: int) -> bool:
        """Put a few elements of a nearly sorted range right; whether that was all there was to do."""
        keys, i = self.keys, start + 1
        for _ in range(_SHIFTS_MAX):
            while i < end and keys[i] >= keys[i - 1]:
                i += 1
            if i == end:
                return True
            if end - start < _SHIFT_MIN:
                return False
            self._swap(i, i - 1)
            if i - start >= 2:
                # Down to the very beginning, not to that of the range; nothing before it is greater.
                self._sink(i - 1, 0)
            if end - i >= 2:
                j = i + 1
                while j < end and keys[j] < keys[j - 1]:
                    self._swap(j, j - 1)
                    j += 1
        return False

    def _split(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Put what is less than the pivot before it; where it ends up, and whether nothing else had to be moved."""
        self._swap(start, pivot)
        keys, value, was_split_already = self.keys, self.keys[start], True
        i, j = start + 1, end - 1
        while True:
            while i <= j and keys[i] < value:
                i += 1
            while i <= j and keys[j] >= value:
                j -= 1
            if i > j:
                self._swap(j, start)
                return j, was_split_already
            self._swap(i, j)
            i, j, was_split_already = i + 1, j - 1, False

    def _split_off_equal(self, start: int, end: int, pivot: int) -> int:
        """Put what equals the pivot first; where the rest begins."""
        self._swap(start, pivot)
        keys, value = self.keys, self.keys[start]
        i, j = start + 1, end - 1
        while True:
            while i <= j and keys[i] <= value:
                i += 1
            while i <= j and keys[j] > value:
                j -= 1
            if i > j:
                return i
            self._swap(i, j)
            i, j = i + 1, j - 1

    def _scatter(self, start: int, end: int) -> None:
        """Swap three elements around the middle with others, by an xorshift seeded with the length."""
        length = end - start
        draw, mask = length, (1 << length.bit_length()) - 1
        middle = start + length // 4 * 2
        for i in range(middle - 1, middle + 2):
            draw ^= draw << 13 & _WORD
            draw ^= draw >> 7
            draw ^= draw << 17 & _WORD
            other = draw & mask
            self._swap(i, start + (other - length if other >= length else other))

    def _sort_by_heap(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, length: int, start: int) -> None:
        keys = self.keys
        while (child := 2 * root + 1) < length:
            if child + 1 < length and keys[start + child] < keys[start + child + 1]:
                child += 1
            if keys[start + root] >= keys[start + child]:
                return
            self._swap(start + root, start + child)
            root = child
