from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from holokube.base.errors import CorruptData, RevisionTooOld, StoreError
from holokube.store import SqliteJournal, Store


def sample() -> Store:
    store = Store()
    store.create("pods", "b/web", {"kind": "Pod", "metadata": {"name": "wéb", "annotations": {"x": "a\nb"}}})
    store.create("pods", "a/web", {"kind": "Pod", "metadata": {"name": "web"}})
    store.create("nodes", "n1", {"kind": "Node", "metadata": {"name": "n1"}})
    store.update("pods", "b/web", {"kind": "Pod", "metadata": {"name": "wéb"}, "spec": {"n": 1.5}})
    store.create("pods", "a/gone", {})
    store.delete("pods", "a/gone")
    return store


def content(store: Store) -> dict[str, Any]:
    return {bucket: store.list(bucket).items for bucket in store.buckets()}


@pytest.mark.parametrize("name", ["state.jsonl", "state.jsonl.gz"])
def test_a_loaded_store_is_the_saved_one_with_its_revisions(tmp_path: Path, name: str) -> None:
    store = sample()
    store.save(tmp_path / name)
    loaded = Store.load(tmp_path / name)
    assert loaded.revision == store.revision == 7
    assert content(loaded) == content(store)
    assert loaded.create("pods", "a/new", {}).revision == 8
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_loaded_store_has_no_history(tmp_path: Path) -> None:
    sample().save(tmp_path / "state")
    loaded = Store.load(tmp_path / "state")
    with pytest.raises(RevisionTooOld):
        loaded.watch("pods", since=6)
    watch = loaded.watch("pods", since=7)
    loaded.create("pods", "a/new", {})
    assert [event.revision for event in watch.pop_all()] == [8]


def test_an_empty_store_can_be_saved_and_loaded(tmp_path: Path) -> None:
    Store().save(tmp_path / "state")
    loaded = Store.load(tmp_path / "state")
    assert (loaded.revision, loaded.buckets()) == (1, [])


def test_equal_states_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("one.gz", "one"):
        sample().save(tmp_path / name)
        Store.load(tmp_path / name).save(tmp_path / f"two-{name}")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"two-{name}").read_bytes()


def test_the_file_can_be_read_by_people(tmp_path: Path) -> None:
    path = tmp_path / "state"
    sample().save(path)
    lines = path.read_bytes().splitlines()
    assert lines[0] == b'{"format":"holokube-store","version":1,"revision":7,"count":3}'
    assert lines[1].startswith(b'{"bucket":"nodes","key":"n1","revision":4,"object":{"kind":"Node",')
    assert [orjson.loads(line)["key"] for line in lines[1:4]] == ["n1", "a/web", "b/web"]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["state", "state.gz"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    sample().save(path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CorruptData, match=r"line \d+: ") as caught:
            Store.load(path)
        assert caught.value.hint


@pytest.mark.parametrize("name", ["state", "state.gz"])
def test_a_changed_byte_anywhere_is_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    store = sample()
    store.save(path)
    whole = path.read_bytes()
    for index in range(len(whole)):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        try:
            loaded = Store.load(path)
        except CorruptData:
            continue
        # A few bits of a gzip header (its time stamp, the system it names) mean nothing.
        assert name.endswith(".gz")
        assert index < 10
        assert content(loaded) == content(store)


def rewritten(path: Path, lines: list[bytes]) -> None:
    """Writes lines with a checksum that fits, so that only what they say can be wrong."""
    body = b"".join(line + b"\n" for line in lines)
    end = orjson.dumps({"end": True, "sha256": hashlib.sha256(body).hexdigest()})
    path.write_bytes(body + end + b"\n")


HEADER = b'{"format":"holokube-store","version":1,"revision":7,"count":2}'
FIRST = b'{"bucket":"pods","key":"a","revision":2,"object":{"metadata":{"resourceVersion":"2"}}}'
SECOND = b'{"bucket":"pods","key":"b","revision":3,"object":{"metadata":{"resourceVersion":"3"}}}'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b'{"kind":"List"}'], "line 1: not a holokube snapshot"),
        ([b"[]"], "line 1: not a JSON object"),
        ([b"apiVersion: v1"], "line 1: not JSON"),
        ([HEADER.replace(b'"version":1', b'"version":2')], "line 1: format version 2"),
        ([HEADER.replace(b"7", b'"7"')], "line 1: revision and count must be integers"),
        ([HEADER.replace(b"7", b"0")], "line 1: revision 0 or count 2 is out of range"),
        ([HEADER, FIRST], "line 3: the file has fewer objects"),
        ([HEADER, FIRST, SECOND, SECOND], "line 4: the file has more objects"),
        ([HEADER, FIRST, FIRST], "line 3: pods 'a' comes twice"),
        ([HEADER, SECOND, FIRST], "line 3: pods 'a' comes twice or out of order"),
        ([HEADER, FIRST.replace(b'"revision":2', b'"revision":8')], "line 2: revision 8 is not between"),
        ([HEADER, FIRST.replace(b'"revision":2', b'"revision":4')], "line 2: metadata.resourceVersion is"),
        ([HEADER, FIRST.replace(b'"key":"a",', b"")], "line 2: an object needs bucket, key and revision"),
        ([HEADER, FIRST.replace(b'{"metadata"', b'{"meta"')], "line 2: not an object with metadata"),
    ],
)
def test_a_senseless_file_is_refused_with_the_line_that_is_wrong(
    tmp_path: Path, lines: list[bytes], message: str
) -> None:
    rewritten(tmp_path / "good", [HEADER, FIRST, SECOND])
    assert Store.load(tmp_path / "good").count("pods") == 2
    rewritten(tmp_path / "state", lines)
    with pytest.raises(CorruptData) as caught:
        Store.load(tmp_path / "state")
    assert message in str(caught.value)
    assert str(tmp_path / "state") in str(caught.value)


def test_something_after_the_end_is_refused(tmp_path: Path) -> None:
    sample().save(tmp_path / "state")
    with open(tmp_path / "state", "ab") as file:
        file.write(b"\n")
    with pytest.raises(CorruptData, match="line 6: something follows"):
        Store.load(tmp_path / "state")


def test_compression_is_recognised_by_content(tmp_path: Path) -> None:
    sample().save(tmp_path / "state.gz")
    (tmp_path / "state").write_bytes((tmp_path / "state.gz").read_bytes())
    assert Store.load(tmp_path / "state").revision == 7
    (tmp_path / "plain.gz").write_bytes(gzip.decompress((tmp_path / "state.gz").read_bytes()))
    assert Store.load(tmp_path / "plain.gz").revision == 7


def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    store = sample()
    store.save(path)
    before = path.read_bytes()
    store.create("pods", "a/new", {})

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space left"):
            store.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_file_is_the_usual_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Store.load(tmp_path / "none")


def test_a_snapshot_can_fill_a_new_data_directory_but_not_a_used_one(tmp_path: Path) -> None:
    store = sample()
    store.save(tmp_path / "state")
    with Store.load(tmp_path / "state", journal=SqliteJournal(tmp_path / "data")) as loaded:
        assert content(loaded) == content(store)
        loaded.create("pods", "a/new", {})
    with Store(journal=SqliteJournal(tmp_path / "data")) as reopened:
        assert reopened.revision == 8
        assert content(reopened) == content(loaded)
    with pytest.raises(StoreError, match=r"is not empty \(revision 8\)"):
        Store.load(tmp_path / "state", journal=SqliteJournal(tmp_path / "data"))
    with pytest.raises(FileNotFoundError):
        Store.load(tmp_path / "none", journal=SqliteJournal(tmp_path / "data"))
    SqliteJournal(tmp_path / "data").close()
