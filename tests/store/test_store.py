from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.errors import (
    KeyExists,
    KeyMissing,
    RevisionInFuture,
    RevisionMismatch,
    RevisionTooOld,
    StoreReadOnly,
)
from holokube.store import Store


def pod(**extra: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, **extra}


def keys(store: Store, *args: Any, **kwargs: Any) -> list[str]:
    return [key for key, _ in store.list("pods", *args, **kwargs).items]


def test_every_write_moves_the_one_revision_by_one() -> None:
    store = Store()
    assert store.revision == 1
    assert store.create("pods", "a/web", pod()).revision == 2
    assert store.create("nodes", "n1", pod()).revision == 3
    assert store.update("pods", "a/web", pod()).revision == 4
    assert store.delete("nodes", "n1").revision == 5
    assert store.revision == 5


def test_the_store_stamps_its_own_copy_and_leaves_the_callers_object_alone() -> None:
    store = Store()
    given_obj = pod()
    given_obj["metadata"]["resourceVersion"] = "77"
    stored = store.create("pods", "a/web", given_obj)
    assert stored.obj["metadata"]["resourceVersion"] == "2"
    assert given_obj["metadata"]["resourceVersion"] == "77"
    assert stored.obj["metadata"]["labels"] is given_obj["metadata"]["labels"]
    assert store.get("pods", "a/web") is stored


@pytest.mark.parametrize("metadata", [{}, {"metadata": None}, {"metadata": {}}])
def test_an_object_without_metadata_gets_some(metadata: dict[str, Any]) -> None:
    assert Store().create("pods", "a/web", metadata).obj == {"metadata": {"resourceVersion": "2"}}


def test_a_deletion_returns_the_last_state_with_its_own_revision() -> None:
    store = Store()
    store.create("pods", "a/web", pod(spec={"x": 1}))
    gone = store.delete("pods", "a/web")
    assert gone.revision == 3
    assert gone.obj["metadata"]["resourceVersion"] == "3"
    assert gone.obj["spec"] == {"x": 1}
    assert store.get("pods", "a/web") is None


def test_a_deletion_can_show_watchers_another_final_state() -> None:
    store = Store()
    created = store.create("pods", "a/web", pod(phase="Running"))
    watch = store.watch("pods", since=store.revision)
    store.delete("pods", "a/web", final=pod(phase="Succeeded"))
    (event,) = watch.pop_all()
    assert (event.type, event.stored.obj["phase"], event.stored.revision) == ("DELETED", "Succeeded", 3)
    assert event.previous is created


def test_create_refuses_a_taken_key() -> None:
    store = Store()
    store.create("pods", "a/web", pod())
    with pytest.raises(KeyExists, match="pods 'a/web' exists already, at revision 2"):
        store.create("pods", "a/web", pod())
    assert store.revision == 2


def test_update_and_delete_refuse_a_missing_key() -> None:
    store = Store()
    with pytest.raises(KeyMissing):
        store.update("pods", "a/web", pod())
    store.create("pods", "a/other", pod())
    with pytest.raises(KeyMissing):
        store.delete("pods", "a/web")
    assert store.revision == 2


def test_a_stale_writer_is_refused_and_changes_nothing() -> None:
    store = Store()
    store.create("pods", "a/web", pod())
    newest = store.update("pods", "a/web", pod(), expected=2)
    with pytest.raises(RevisionMismatch, match="at revision 3, not at 2"):
        store.update("pods", "a/web", pod(), expected=2)
    with pytest.raises(RevisionMismatch):
        store.delete("pods", "a/web", expected=2)
    assert store.get("pods", "a/web") is newest
    store.delete("pods", "a/web", expected=3)
    assert store.revision == 4


def test_raw_is_the_objects_json_encoded_once() -> None:
    stored = Store().create("pods", "a/web", pod())
    assert orjson.loads(stored.raw) == stored.obj
    assert stored.raw is stored.raw


def test_a_namespace_listing_holds_that_namespace_only_in_byte_order() -> None:
    store = Store()
    for key in ("b/z", "a/é", "a/z", "a-b/x", "a/A", "a0/x", "a/a", "a/a-b", "a/a.b"):
        store.create("pods", key, pod())
    assert keys(store, "a/") == ["a/A", "a/a", "a/a-b", "a/a.b", "a/z", "a/é"]
    assert keys(store) == sorted(keys(store), key=str.encode)
    assert keys(store, "c/") == []
    assert store.list("nodes").items == []
    assert (store.count("pods"), store.count("pods", "a/"), store.count("nodes")) == (9, 6, 0)


def test_a_namespace_listing_does_not_scan_the_other_namespaces() -> None:
    looked_at = 0

    class Counting(str):
        __slots__ = ()

        def __lt__(self, other: str) -> bool:
            nonlocal looked_at
            looked_at += 1
            return str.__lt__(self, other)

        def startswith(self, *args: Any) -> bool:
            nonlocal looked_at
            looked_at += 1
            return str.startswith(self, *args)

    store = Store()
    for number in range(5000):
        store.create("pods", Counting(f"other/{number:04}"), pod())
    assert len(keys(store)) == 5000
    store.create("pods", "a/web", pod())
    looked_at = 0
    assert keys(store, "a/") == ["a/web"]
    assert 0 < looked_at < 100


@given(st.lists(st.text(max_size=4), unique=True), st.text(max_size=2))
def test_a_prefix_listing_is_what_startswith_says(names: list[str], prefix: str) -> None:
    store = Store()
    for name in names:
        store.create("pods", name, {})
    wanted = sorted(name for name in names if name.startswith(prefix))
    assert keys(store, prefix) == wanted
    assert store.count("pods", prefix) == len(wanted)


def test_the_last_code_point_there_is_can_be_a_prefix() -> None:
    store = Store()
    for key in ("a", "\U0010ffff", "\U0010ffffb", "b\U0010ffffc", "c"):
        store.create("pods", key, {})
    assert keys(store, "\U0010ffff") == ["\U0010ffff", "\U0010ffffb"]
    assert keys(store, "b\U0010ffff") == ["b\U0010ffffc"]


@pytest.mark.parametrize("changes", [3, 1000])
def test_the_order_stays_right_through_few_and_many_changes_between_listings(changes: int) -> None:
    store = Store()
    for number in range(2000):
        store.create("pods", f"a/{number * 7919 % 2000:04}", {})
    assert len(keys(store)) == 2000
    for number in range(changes):
        store.delete("pods", f"a/{number:04}")
        store.create("pods", f"a/{number:04}-new", {})
    store.create("pods", "a/0000", {})
    store.create("pods", "a/gone", {})
    store.delete("pods", "a/gone")
    found = keys(store)
    assert found == sorted(found)
    assert len(found) == 2001
    assert found[:3] == ["a/0000", "a/0000-new", "a/0001-new"]


def test_pages_of_an_old_revision_fit_together_although_the_store_moves_on() -> None:
    store = Store()
    for number in range(10):
        store.create("pods", f"a/{number}", {"n": number})
    first = store.list("pods", "a/", limit=4)
    assert (first.more, first.remaining, first.revision) == (True, 6, 11)
    store.delete("pods", "a/5")
    store.update("pods", "a/6", {"n": "changed"})
    store.create("pods", "a/55", {})
    store.create("pods", "b/0", {})
    store.delete("pods", "a/7")
    store.create("pods", "a/7", {"n": "again"})
    last = first.items[-1][0]
    second = store.list("pods", "a/", at_revision=first.revision, start_after=last, limit=4)
    assert [(key, stored.obj["n"]) for key, stored in second.items] == [
        ("a/4", 4), ("a/5", 5), ("a/6", 6), ("a/7", 7),
    ]
    assert (second.more, second.remaining, second.revision) == (True, 2, 11)
    third = store.list("pods", "a/", at_revision=first.revision, start_after="a/7", limit=4)
    assert [key for key, _ in third.items] == ["a/8", "a/9"]
    assert (third.more, third.remaining) == (False, 0)


def test_the_history_window_is_exact_and_counts_all_buckets() -> None:
    store = Store(history=3)
    for number in range(4):
        store.create("pods" if number % 2 else "nodes", f"{number}", {})
    assert (store.revision, store.compacted_revision) == (5, 2)
    with pytest.raises(RevisionTooOld, match=r"revision 1 has left the history window.* is 2"):
        store.watch("pods", since=1)
    with pytest.raises(RevisionTooOld):
        store.list("pods", at_revision=1)
    assert [event.revision for event in store.watch("pods", since=2).pop_all()] == [3, 5]
    assert [event.revision for event in store.watch("nodes", since=2).pop_all()] == [4]
    assert keys(store, at_revision=2) == []
    assert keys(store, at_revision=3) == ["1"]


def test_nothing_is_too_old_before_the_window_is_full() -> None:
    store = Store(history=3)
    for number in range(3):
        store.create("pods", f"{number}", {})
    assert len(store.watch("pods", since=0).pop_all()) == 3
    assert keys(store, at_revision=1) == []


def test_a_store_without_history_serves_the_present_only() -> None:
    store = Store(history=0)
    store.create("pods", "a", {})
    watch = store.watch("pods", since=2)
    with pytest.raises(RevisionTooOld):
        store.watch("pods", since=1)
    store.create("pods", "b", {})
    assert [event.key for event in watch.pop_all()] == ["b"]


def test_a_revision_that_does_not_exist_yet_is_refused() -> None:
    store = Store()
    with pytest.raises(RevisionInFuture, match="revision 2 does not exist yet, the newest is 1"):
        store.watch("pods", since=2)
    with pytest.raises(RevisionInFuture):
        store.list("pods", at_revision=2)


def test_buckets_names_those_that_hold_something() -> None:
    store = Store()
    store.create("pods", "a", {})
    store.create("nodes", "a", {})
    store.create("leases", "a", {})
    store.delete("leases", "a")
    store.watch("events", since=store.revision)
    assert store.buckets() == ["nodes", "pods"]


def test_a_closed_store_reads_but_neither_writes_nor_watches() -> None:
    with Store() as store:
        store.create("pods", "a", {})
    store.close()
    assert store.get("pods", "a") is not None
    for forbidden in (
        lambda: store.create("pods", "b", {}),
        lambda: store.update("pods", "a", {}),
        lambda: store.delete("pods", "a"),
        lambda: store.watch("pods", since=2),
    ):
        with pytest.raises(StoreReadOnly, match="closed"):
            forbidden()
    assert store.revision == 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Store(history=-1),
        lambda: Store().list("pods", limit=-1),
        lambda: Store().watch("pods", since=1, buffer=0),
    ],
)
def test_senseless_numbers_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        wrong()
