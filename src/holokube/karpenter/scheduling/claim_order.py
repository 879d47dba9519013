"""The order in which open claims are tried: fewest pods first, and equal ones as upstream's sort leaves them.

Upstream sorts its list of claims anew before every pod. Between two sorts at most one claim got a pod or was added, so
that mostly one element has to be moved; how the rest of the sort would go about it is only gone through when the
elements that it looks at first include the one out of place.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from holokube.base.go_sort import sort_as_go

_BY_INSERTION_MAX = 12
_REPAIRED_MIN = 50


class ClaimOrder:
    """Numbers of claims with their pod counts, as of the last sort."""

    __slots__ = ("_claims", "_counts", "_moved")

    def __init__(self) -> None:
        self._claims: npt.NDArray[np.intp] = np.zeros(64, dtype=np.intp)
        self._counts: list[int] = []
        self._moved = -1
        """The place of the one element that may be out of place."""

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def claims(self) -> npt.NDArray[np.intp]:
        """The claims in order; a view that the next change makes invalid."""
        return self._claims[: len(self._counts)]

    def append(self, claim: int) -> None:
        """A new claim with its first pod; it stands last until the next sort."""
        assert self._moved < 0, "a claim changed before the last change was sorted"
        place = len(self._counts)
        if place == len(self._claims):
            self._claims = np.concatenate((self._claims, np.zeros(place, dtype=np.intp)))
        self._claims[place] = claim
        self._counts.append(1)
        self._moved = place

    def count(self, place: int) -> None:
        """The claim at a place has got a pod."""
        assert self._moved < 0, "a claim changed before the last change was sorted"
        self._counts[place] += 1
        self._moved = place

    def count_more(self, times: int) -> None:
        """The claim that was just counted gets more pods one by one; before each of them the order is sorted."""
        for _ in range(times):
            self.count(self.sort())

    def sort(self) -> int:
        """Sort as upstream does before it tries the next pod; where the claim is now that was counted since."""
        place, self._moved = self._moved, -1
        if place < 0:
            return place
        counts, length = self._counts, len(self._counts)
        if (place == 0 or counts[place - 1] <= counts[place]) and (
            place == length - 1 or counts[place] <= counts[place + 1]
        ):
            return place
        if _BY_INSERTION_MAX < length < _REPAIRED_MIN or (length >= _REPAIRED_MIN and self._shows_disorder()):
            return self._sort_fully(place)
        # The element is moved past those that it is out of order with, and no further: one that rose stops before its
        # equals, one that was added at the end behind them.
        claims = self._claims
        claim, count = claims[place], counts.pop(place)
        if place < length - 1:
            target = bisect_right(counts, count - 1, place)
            claims[place:target] = claims[place + 1 : target + 1]
        else:
            target = bisect_right(counts, count)
            claims[target + 1 : place + 1] = claims[target:place].copy()
        claims[target] = claim
        counts.insert(target, count)
        return target

    def _sort_fully(self, place: int) -> int:
        ordered = sort_as_go(range(len(self._counts)), self._counts.__getitem__)
        self._claims[: len(ordered)] = self._claims[ordered]
        self._counts = [self._counts[i] for i in ordered]
        return ordered.index(place)

    def _shows_disorder(self) -> bool:
        """Whether the elements that a pivot is chosen from are out of order."""
        counts = self._counts
        quarter = len(counts) // 4
        medians = []
        for middle in (quarter, 2 * quarter, 3 * quarter):
            low, mid, high = counts[middle - 1], counts[middle], counts[middle + 1]
            if mid < low or high < mid:
                return True
            medians.append(mid)
        return medians[1] < medians[0] or medians[2] < medians[1]
