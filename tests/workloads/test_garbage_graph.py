from __future__ import annotations

from typing import Any

from holokube.workloads.garbage_graph import Identity, OwnershipGraph

JsonObject = dict[str, Any]


def obj(uid: str, *owners: JsonObject, namespace: str = "default", **meta: Any) -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": uid, "namespace": namespace, "uid": uid, "ownerReferences": list(owners), **meta},
    }  # fmt: skip


def ref(uid: str, *, name: str = "", blocks: bool = False) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name or uid, "uid": uid, "blockOwnerDeletion": blocks}


def test_an_owner_that_is_known_raises_no_question() -> None:
    graph = OwnershipGraph()
    graph.observe(None, obj("owner"))
    assert list(graph.observe(None, obj("child", ref("owner"))).to_delete) == []


def test_an_owner_only_heard_of_is_looked_at_and_forgotten_with_its_last_dependent() -> None:
    graph = OwnershipGraph()
    child = obj("child", ref("owner"))
    assert list(graph.observe(None, child).to_delete) == ["owner"]
    shadow = graph.get("owner")
    assert shadow is not None and shadow.virtual
    graph.observe(child, None)
    assert len(graph) == 0


def test_a_late_owner_takes_the_place_of_its_shadow() -> None:
    graph = OwnershipGraph()
    graph.observe(None, obj("child", ref("owner")))
    assert list(graph.observe(None, obj("owner")).to_delete) == []
    owner = graph.get("owner")
    assert owner is not None and not owner.virtual and list(owner.dependents) == ["child"]


def test_the_end_of_an_owner_concerns_its_dependents() -> None:
    graph = OwnershipGraph()
    owner = obj("owner")
    graph.observe(None, owner)
    graph.observe(None, obj("a", ref("owner")))
    graph.observe(None, obj("b", ref("owner")))
    assert list(graph.observe(owner, None).to_delete) == ["a", "b"]


def test_an_owner_in_the_foreground_is_looked_at_when_a_dependent_stops_blocking_it() -> None:
    graph = OwnershipGraph()
    leaving = obj("owner", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["foregroundDeletion"])
    graph.observe(None, leaving)
    before, after = obj("child", ref("owner", blocks=True)), obj("child", ref("owner"))
    assert list(graph.observe(None, before).to_delete) == ["child"]
    assert list(graph.observe(before, after).to_delete) == ["owner"]
    assert list(graph.observe(after, None).to_delete) == ["owner"]


def test_orphaning_is_asked_for_once() -> None:
    graph = OwnershipGraph()
    before = obj("owner")
    leaving = obj("owner", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["orphan"])
    graph.observe(None, before)
    assert list(graph.observe(before, leaving).to_orphan) == ["owner"]
    assert list(graph.observe(leaving, {**leaving, "data": {"a": "b"}}).to_orphan) == []


def test_dependents_that_disagree_about_a_uid_are_heard_one_after_the_other() -> None:
    graph = OwnershipGraph()
    graph.observe(None, obj("a", ref("owner", name="x")))
    assert list(graph.observe(None, obj("b", ref("owner", name="y"))).to_delete) == ["b"]
    absent = Identity("v1", "ConfigMap", "default", "x", "owner")
    assert list(graph.found_absent(absent).to_delete) == ["a", "owner"]
    shadow = graph.get("owner")
    assert shadow is not None and shadow.identity.name == "y"


def test_an_object_known_under_another_name_does_not_vanish_by_hearsay() -> None:
    graph = OwnershipGraph()
    graph.observe(None, obj("owner"))
    graph.observe(None, obj("a", ref("owner", name="wrong")))
    absent = Identity("v1", "ConfigMap", "default", "wrong", "owner")
    assert list(graph.found_absent(absent).to_delete) == ["a"]
    assert graph.get("owner") is not None
