from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holokube.base.errors import ConfigError, CorruptData, DataDirInUse, RevisionTooOld, StoreReadOnly
from holokube.store import SqliteJournal, Store


def opened(path: Path, **kwargs: Any) -> Store:
    return Store(journal=SqliteJournal(path), **kwargs)


def content(store: Store) -> dict[str, Any]:
    return {bucket: store.list(bucket).items for bucket in store.buckets()}


def sql(path: Path, statement: str) -> None:
    database = sqlite3.connect(path / "store.db")
    with database:
        database.execute(statement)
    database.close()


def test_reopening_restores_objects_and_revision(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as store:
        store.create("pods", "a/x", {"spec": {"é": [1, None]}})
        store.create("pods", "a/gone", {})
        store.flush()
        store.update("pods", "a/x", {"spec": 2})
        store.delete("pods", "a/gone")
        store.create("nodes", "back", {})
        store.delete("nodes", "back")
        store.create("nodes", "back", {"again": True})
        store.create("nodes", "short", {})
        store.delete("nodes", "short")
    with opened(tmp_path / "data") as again:
        assert again.revision == again.durable_revision == 10
        assert content(again) == content(store)
        assert again.get("nodes", "back").obj["again"]  # type: ignore[union-attr]  # it is there
        assert again.create("pods", "a/new", {}).revision == 11


def test_history_starts_empty_at_the_reopened_revision(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        assert store.watch("pods", since=0).pop_all() == []
        store.create("pods", "a", {})
    with opened(tmp_path) as store:
        with pytest.raises(RevisionTooOld):
            store.watch("pods", since=1)
        watch = store.watch("pods", since=2)
        store.create("pods", "b", {})
        store.flush()
        assert [event.revision for event in watch.pop_all()] == [3]


def test_the_database_really_flushes_every_commit(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path)
    assert journal._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert journal._database.execute("PRAGMA synchronous").fetchone() == (2,)
    journal.close()


def test_two_openers_exclude_each_other_with_a_clear_error(tmp_path: Path) -> None:
    with opened(tmp_path):
        with pytest.raises(DataDirInUse, match=f"in use by process {os.getpid()}") as caught:
            SqliteJournal(tmp_path)
        assert "Stop that process" in caught.value.hint
        program = (
            "import sys\n"
            "from holokube.base.errors import DataDirInUse\n"
            "from holokube.store import SqliteJournal\n"
            "try:\n    SqliteJournal(sys.argv[1])\n"
            "except DataDirInUse:\n    sys.exit(7)\n"
        )
        assert subprocess.run([sys.executable, "-c", program, tmp_path], check=False).returncode == 7
    opened(tmp_path).close()


def test_only_the_owner_may_look_into_the_directory(tmp_path: Path) -> None:
    with opened(tmp_path / "deep" / "data") as store:
        store.create("secrets", "a/x", {})
        store.flush()
        assert (tmp_path / "deep" / "data").stat().st_mode & 0o077 == 0
        for file in (tmp_path / "deep" / "data").iterdir():
            assert file.stat().st_mode & 0o077 == 0, file


def test_a_place_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot use the data directory .*file"):
        SqliteJournal(tmp_path / "file")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE meta SET value = 'other' WHERE name = 'format'", "not a holokube store"),
        ("UPDATE meta SET value = 2 WHERE name = 'version'", "has format version 2, this holokube reads"),
        ("UPDATE meta SET value = 'x' WHERE name = 'revision'", "its revision is 'x'"),
        ("UPDATE meta SET value = 2 WHERE name = 'revision'", "pods 'b' has revision 3 of 2"),
        ("DROP TABLE meta", "no such table: meta"),
        ("DROP TABLE objects", "no such table: objects"),
        ("UPDATE objects SET obj = '{' WHERE key = 'a'", "pods 'a': "),
        ("UPDATE objects SET obj = '{}' WHERE key = 'a'", "pods 'a': not an object with metadata"),
        ("UPDATE objects SET revision = 3 WHERE key = 'a'", "pods 'a': metadata.resourceVersion is '2'"),
    ],
)
def test_a_damaged_directory_is_refused_and_unlocked_again(
    tmp_path: Path, statement: str, message: str
) -> None:
    with opened(tmp_path) as store:
        store.create("pods", "a", {})
        store.create("pods", "b", {})
    sql(tmp_path, statement)
    for _ in range(2):
        with pytest.raises(CorruptData) as caught:
            opened(tmp_path)
        assert message in str(caught.value)
        assert str(tmp_path) in str(caught.value)
        assert "away" in caught.value.hint


def test_garbage_in_place_of_the_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"garbage " * 1000)
    with pytest.raises(CorruptData, match="not a database"):
        SqliteJournal(tmp_path)


def test_a_page_of_garbage_inside_the_database_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in range(2000):
            store.create("pods", f"{number}", {"text": "x" * 100})
    database = tmp_path / "store.db"
    whole = bytearray(database.read_bytes())
    whole[40 * 4096 : 41 * 4096] = b"\xff" * 4096
    database.write_bytes(whole)
    with pytest.raises(CorruptData, match="is damaged"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("key", "obj"),
    [("a/\ud800", {}), ("a/x", {"x": {1, 2}}), ("a/x", {"x": 2**70}), ("a/x", {"x": "\ud800"})],
)
def test_what_could_never_be_written_is_refused_at_once_and_harms_nobody(
    tmp_path: Path, key: str, obj: dict[str, Any]
) -> None:
    with opened(tmp_path) as store:
        store.create("pods", "a/good", {})
        with pytest.raises((TypeError, ValueError)):
            store.create("pods", key, obj)
        assert (store.revision, store.count("pods")) == (2, 1)
        store.create("pods", "a/after", {})
    with opened(tmp_path) as again:
        assert [key for key, _ in again.list("pods").items] == ["a/after", "a/good"]


def test_a_full_disk_fails_the_writes_it_cannot_take_and_loses_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = SqliteJournal(tmp_path)
    store = Store(journal=journal)
    watch = store.watch("pods", since=1)
    store.create("pods", "a/first", {})
    store.create("pods", "a/kept", {})
    store.flush()
    journal._database.execute("PRAGMA max_page_count = 1")  # No less than the pages there are.
    store.update("pods", "a/first", {"big": "x" * 100_000})
    store.delete("pods", "a/kept")
    store.create("nodes", "n", {})
    assert store.revision == 6
    with pytest.raises(StoreReadOnly, match=r"cannot write to the data directory .* is full") as caught:
        store.flush()
    assert "nothing that was acknowledged is lost" in caught.value.hint
    assert "the store is read-only from now on" in caplog.text
    assert store.revision == store.durable_revision == 3
    assert [(key, stored.revision) for key, stored in store.list("pods").items] == [
        ("a/first", 2), ("a/kept", 3),
    ]
    assert store.buckets() == ["pods"]
    assert [event.revision for event in watch.pop_all()] == [2, 3]
    for _ in range(2):
        with pytest.raises(StoreReadOnly, match="is full"):
            store.create("pods", "a/more", {})
        with pytest.raises(StoreReadOnly, match="is full"):
            store.flush()
    store.save(tmp_path / "rescued")
    assert content(Store.load(tmp_path / "rescued")) == content(store)
    store.close()
    with opened(tmp_path) as again:
        assert again.revision == 3
        assert content(again) == content(store)
        again.create("pods", "a/more", {})


def test_appending_to_a_closed_journal_is_reported(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path)
    store = Store(journal=journal)
    journal.close()
    journal.close()
    assert journal.commit() == 1
    store.create("pods", "a", {})
    with pytest.raises(StoreReadOnly, match="is closed"):
        store.flush()
    assert store.revision == 1
    store.close()
