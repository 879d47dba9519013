"""Tallies tell whether anything has happened to some buckets."""

from __future__ import annotations

from pathlib import Path

from holokube.base.errors import StoreReadOnly
from holokube.store.journal import SqliteJournal
from holokube.store.store import Store


def test_a_tally_moves_with_every_write_to_its_buckets_and_with_no_other() -> None:
    store = Store()
    tally = store.tally(frozenset({"a", "b"}))
    counts = [tally.count]
    for write in (
        lambda: store.create("a", "k", {"metadata": {}}), lambda: store.update("a", "k", {"metadata": {}}),
        lambda: store.create("b", "k", {"metadata": {}}), lambda: store.delete("b", "k"),
    ):  # fmt: skip
        write()
        counts.append(tally.count)
        store.create("c", f"k{len(counts)}", {"metadata": {}})
        assert tally.count == counts[-1]
    assert counts == sorted(set(counts)) and len(counts) == 5


def test_the_same_buckets_have_one_tally() -> None:
    store = Store()
    assert store.tally(frozenset({"a", "b"})) is store.tally(frozenset({"b", "a"}))
    assert store.tally(frozenset({"a"})) is not store.tally(frozenset({"a", "b"}))


def test_a_tally_moves_when_a_write_is_shown_to_watchers(tmp_path: Path) -> None:
    with Store(journal=SqliteJournal(tmp_path)) as store:
        tally = store.tally(frozenset({"a"}))
        store.create("a", "k", {"metadata": {}})
        written = tally.count
        assert written > 0
        store.flush()
        assert tally.count > written


def test_a_tally_moves_when_a_write_is_taken_back(tmp_path: Path) -> None:
    with Store(journal=SqliteJournal(tmp_path)) as store:
        tally = store.tally(frozenset({"a"}))
        store.create("a", "k", {"metadata": {}})
        written = tally.count
        store._roll_back(StoreReadOnly("the disk is full"))
        assert tally.count > written and store.get("a", "k") is None
