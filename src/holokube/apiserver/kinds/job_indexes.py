"""The short notation for sets of completion indexes, such as ``1,3-5,7``."""

from __future__ import annotations

import re

from holokube.kube.quoting import go_quote

_number = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII).fullmatch


class IndexFormatError(ValueError):
    """A text is not a set of indexes."""


def parse_indexes(text: str, completions: int) -> list[tuple[int, int]]:
    """The intervals of a set, both ends included."""
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first, last = parse_interval(part, completions)
        if found and found[-1][1] >= first:
            raise IndexFormatError(f"non-increasing order, previous: {found[-1][1]}, current: {first}")
        found.append((first, last))
    return found


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a set has."""
    return sum(last - first + 1 for first, last in parse_indexes(text, completions))


def parse_interval(text: str, completions: int) -> tuple[int, int]:
    """One interval or a single index."""
    parts = text.split("-")
    if len(parts) > 2:
        raise IndexFormatError(
            f"the fragment {go_quote(text)} violates the requirement that an index interval can have at most "
            "two parts separated by '-'"
        )
    ends = [_index(part, completions) for part in parts]
    if len(ends) == 2 and ends[0] >= ends[1]:
        raise IndexFormatError(f"non-increasing order, previous: {ends[0]}, current: {ends[1]}")
    return ends[0], ends[-1]


def _index(text: str, completions: int) -> int:
    if not _number(text):
        raise IndexFormatError(f"cannot convert string to integer for index: {go_quote(text)}")
    number = int(text)
    if number >= completions:
        raise IndexFormatError(f"too large index: {go_quote(text)}")
    return number


def first_overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that is in both sets; intervals that cannot be read are passed over."""
    good = _readable(completed, completions)
    bad = _readable(failed, completions)
    i = j = 0
    while i < len(good) and j < len(bad):
        if good[i][0] <= bad[j][1] and bad[j][0] <= good[i][1]:
            return max(good[i][0], bad[j][0])
        if good[i][0] <= bad[j][0]:
            i += 1
        else:
            j += 1
    return None


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for part in text.split(",") if text else ():
        try:
            found.append(parse_interval(part, completions))
        except IndexFormatError:
            continue
    return found
