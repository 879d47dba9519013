from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.workloads.garbage_graph import NOTHING, Effects, Identity, Node, OwnershipGraph, owners_of

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


def test_objects_that_share_their_references_have_the_same_owners_and_others_do_not() -> None:
    graph = OwnershipGraph()
    one, other = obj("one", ref("owner")), obj("other")
    other["metadata"]["ownerReferences"] = one["metadata"]["ownerReferences"]
    orphan = obj("orphan")
    del orphan["metadata"]["ownerReferences"]
    for each in (obj("owner"), one, other, obj("third", ref("one")), orphan, obj("last", ref("owner"))):
        graph.observe(None, each)
    dependents = {uid: list(node.dependents) for uid in ("owner", "one", "other") if (node := graph.get(uid))}
    assert dependents == {"owner": ["one", "other", "last"], "one": ["third"], "other": []}
    found = graph.get("orphan")
    assert found is not None and found.owners == ()


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


def test_an_owner_in_the_foreground_is_looked_at_at_once_only_if_nothing_holds_it_back() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    for blocks, at_once in ((True, ["child"]), (False, ["child", "owner"])):
        graph = OwnershipGraph()
        owner, child = obj("owner"), obj("child", ref("owner", blocks=blocks))
        graph.observe(None, owner)
        graph.observe(None, child)
        assert list(graph.observe(owner, obj("owner", **leaving)).to_delete) == at_once
        assert list(graph.observe(child, None).to_delete) == ["owner"]


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


UIDS = st.sampled_from("abcd")
STEPS = st.lists(
    st.tuples(
        UIDS, st.booleans(),
        st.lists(
            st.tuples(UIDS, st.booleans(), st.sampled_from(["", "", "", "other"])),
            max_size=2, unique_by=lambda each: each[0],
        ),
        st.booleans(), st.sampled_from([(), ("foregroundDeletion",), ("orphan",), ("other",)]),
    ), max_size=25,
)  # fmt: skip


class LongWay(OwnershipGraph):
    """Looks at the owners and at the finalizers whatever has changed, and tells it in effects of its own."""

    def observe(self, old: Any, new: Any) -> Effects:
        effects = Effects()
        if new is None:
            self._forget(old["metadata"]["uid"], effects)
            return effects
        uid = new["metadata"]["uid"]
        node = self._nodes.get(uid)
        if node is None:
            node = self._nodes[uid] = Node(Identity.of(new), owners_of(new))
            self._link(node, node.owners, effects)
        else:
            if node.virtual:
                self._materialise(node, Identity.of(new), effects)
            self._take_owners(node, owners_of(new), effects)
        if new["metadata"].get("deletionTimestamp"):
            node.being_deleted = True
            self._transitions(node, old, new, effects)
        return effects


def shown(graph: OwnershipGraph) -> dict[str, Any]:
    return {
        uid: (
            node.identity, node.owners, list(node.dependents), node.virtual, node.being_deleted,
            node.deleting_dependents,
        )
        for uid, node in graph._nodes.items()
    }  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(STEPS)
def test_the_short_way_to_a_graph_leads_where_the_long_one_does(steps: list[Any]) -> None:
    short, long, live = OwnershipGraph(), LongWay(), dict[str, JsonObject]()
    given_out: list[tuple[Effects, Effects]] = []
    for uid, goes, owners, leaving, finalizers in steps:
        old = live.pop(uid, None)
        if goes and old is None:
            continue
        meta: JsonObject = {"finalizers": list(finalizers)} if finalizers else {}
        if leaving or (old is not None and old["metadata"].get("deletionTimestamp")):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        references = [ref(owner, name=name, blocks=blocks) for owner, blocks, name in owners if owner != uid]
        new = None if goes else obj(uid, *references, **meta)
        if new is not None:
            live[uid] = new
        effects = short.observe(old, new)
        given_out.append((effects, long.observe(old, new)))
        assert shown(short) == shown(long)
    # What was given out stays as it was, whatever came later.
    assert all(effects == expected for effects, expected in given_out)
    assert Effects() == NOTHING
