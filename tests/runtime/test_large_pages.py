"""Large pages: what is asked for, and that nothing else changes."""

from __future__ import annotations

import mmap
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.runtime.large_pages import PAGE_BYTES, LargePages, in_large_pages, whole_pages

LARGE = PAGE_BYTES


def line(begin: int, end: int, permissions: str = "rw-p", inode: str = "0", name: str = "") -> str:
    return f"{begin:x}-{end:x} {permissions} 00000000 00:00 {inode} {name}".rstrip() + "\n"


def test_only_memory_of_its_own_is_moved() -> None:
    maps = [
        line(0 * LARGE, 1 * LARGE, inode="4711", name="/usr/lib/libc.so.6"),
        line(2 * LARGE, 4 * LARGE, name="[heap]"),
        line(5 * LARGE, 6 * LARGE, "r--p"),
        line(7 * LARGE, 8 * LARGE, "rw-s"),
        line(9 * LARGE, 11 * LARGE),
        line(11 * LARGE, 12 * LARGE, name="[anon:cpython:pymalloc]"),
        line(13 * LARGE, 14 * LARGE, name="[stack]"),
        line(15 * LARGE, 16 * LARGE, inode="9", name="/a file (deleted)"),
    ]
    assert whole_pages(maps) == [(2 * LARGE, 4 * LARGE), (9 * LARGE, 11 * LARGE), (11 * LARGE, 12 * LARGE)]


@given(st.integers(0, 5 * LARGE), st.integers(1, 5 * LARGE))
def test_pages_lie_wholly_within_what_is_there(begin: int, size: int) -> None:
    end = begin + size
    expected = [at for at in range(0, 11 * LARGE, LARGE) if begin <= at and at + LARGE <= end]
    found = [at for first, last in whole_pages([line(begin, end)]) for at in range(first, last, LARGE)]
    assert found == expected


def test_memory_is_asked_for_once_and_what_has_grown_by_what_has_grown() -> None:
    asked: list[tuple[int, int]] = []
    pages = LargePages(lambda address, size: asked.append((address, size)))
    pages.look([line(2 * LARGE, 4 * LARGE), line(6 * LARGE, 7 * LARGE)])
    pages.look([line(2 * LARGE, 4 * LARGE), line(6 * LARGE, 7 * LARGE)])
    assert asked == [(2 * LARGE, 2 * LARGE), (6 * LARGE, LARGE)]
    pages.look([line(1 * LARGE, 5 * LARGE), line(6 * LARGE, 7 * LARGE)])
    assert asked[2:] == [(1 * LARGE, LARGE), (4 * LARGE, LARGE)]


def test_memory_that_was_given_back_and_has_come_again_is_asked_for_again() -> None:
    asked: list[tuple[int, int]] = []
    pages = LargePages(lambda address, size: asked.append((address, size)))
    pages.look([line(2 * LARGE, 4 * LARGE)])
    pages.look([])
    pages.look([line(2 * LARGE, 4 * LARGE)])
    assert asked == [(2 * LARGE, 2 * LARGE)] * 2


RANGES = st.lists(st.integers(0, 12), min_size=0, max_size=8, unique=True).map(
    lambda edges: [(a * LARGE, b * LARGE) for a, b in zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False)]
)


@given(st.lists(RANGES, min_size=1, max_size=4))
def test_every_page_that_was_not_there_before_is_asked_for_and_none_that_is_not_there(
    looks: list[list[tuple[int, int]]],
) -> None:
    asked: list[tuple[int, int]] = []
    pages = LargePages(lambda address, size: asked.append((address, size)))
    before: set[int] = set()
    for ranges in looks:
        asked.clear()
        pages.look([line(begin, end) for begin, end in ranges])
        there = {at for begin, end in ranges for at in range(begin, end, LARGE)}
        wanted = {at for begin, size in asked for at in range(begin, begin + size, LARGE)}
        assert there - before <= wanted <= there
        before = there


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_what_is_in_memory_stays_as_it_is_and_the_thread_ends() -> None:
    with mmap.mmap(-1, 4 * LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        text = bytes(range(256)) * (len(memory) // 256)
        memory[:] = text
        with in_large_pages(first_after_s=0.001):
            threading.Event().wait(0.05)
            others = [thread.name for thread in threading.enumerate()]
        assert "large pages" in others
        assert "large pages" not in [thread.name for thread in threading.enumerate()]
        assert memory[:] == text


def test_where_nobody_can_be_asked_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("holokube.runtime.large_pages._MAPS", tmp_path / "maps")
    with in_large_pages(first_after_s=0.001):
        assert "large pages" not in [thread.name for thread in threading.enumerate()]
