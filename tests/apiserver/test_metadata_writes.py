"""Metadata changed by the short way ends where the long way ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import CREATE_OR_UPDATE, PODS, Attributes, Caller, Plugin
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.metadata_writes import MetadataWrites, changed_parts
from holokube.apiserver.options import DeleteOptions, WriteOptions
from holokube.apiserver.resources import Served
from holokube.kube.errors import ApiError, Conflict
from holokube.store.values import Stored
from tests.apiserver.crds.steps import LAB, define, definition, widget, with_spec
from tests.apiserver.test_settled import STRATEGIC, job
from tests.apiserver.test_status_writes import the_long_way
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import deployment, node, pod

GROUPS = {"jobs": "batch", "pods": "", "deployments": "apps", "nodes": "", "widgets": LAB}
DELETED = "$deleteFromPrimitiveList/finalizers"
NAMES = ["a.io/one", "a.io/two", "a.io/three", "foregroundDeletion"]
PLURALS = st.sampled_from(sorted(GROUPS))
LISTS = st.lists(st.sampled_from([*NAMES, "x", 1, None]), max_size=3)
MAPS = st.dictionaries(
    st.sampled_from(["app", "a.io/b", "bad key", "c", ""]), st.sampled_from(["j", "", "b", None, 1, "no/label", {}]),
    max_size=3,
)  # fmt: skip
OWNER = {"apiVersion": "a.io/v1", "kind": "A", "name": "a", "uid": "u"}
OWNERS = st.lists(
    st.sampled_from([
        OWNER, {**OWNER, "blockOwnerDeletion": True}, {**OWNER, "controller": False}, {**OWNER, "name": ""},
        {**OWNER, "controller": 1}, {**OWNER, "x": "y"}, {"uid": "v", **OWNER, "controller": True}, {"uid": "u"}, None,
    ]),
    max_size=2,
)  # fmt: skip
METADATA = st.fixed_dictionaries({}, optional={
    "finalizers": st.one_of(LISTS, st.none()), DELETED: LISTS, "uid": st.sampled_from(["own", "u"]),
    "resourceVersion": st.sampled_from(["own", "1", "", 1]), "labels": st.one_of(MAPS, st.none()),
    "annotations": st.one_of(MAPS, st.none()), "name": st.just("j"), "ownerReferences": st.one_of(OWNERS, st.none()),
}).flatmap(lambda asked: st.permutations([*asked.items()]).map(dict))  # fmt: skip
TAINT = st.fixed_dictionaries(
    {"key": st.sampled_from(["a.io/t", "b", "", "no key", None]), "effect": st.sampled_from(["NoSchedule", "x", ""])},
    optional={"value": st.sampled_from(["v", "", "no value", 1, None]), "timeAdded": st.just("2026-01-01T00:00:00Z")},
)  # fmt: skip
USUAL_TAINT = st.sampled_from([
    {"key": "a.io/t", "effect": "NoSchedule"}, {"effect": "NoExecute", "key": "a.io/t"},
    {"key": "b", "value": "v", "effect": "NoSchedule"},
])  # fmt: skip
SPEC = st.fixed_dictionaries({}, optional={
    "taints": st.one_of(st.lists(st.one_of(USUAL_TAINT, TAINT, st.none()), max_size=3), st.none(), st.just("x")),
    "unschedulable": st.sampled_from([True, False, None, 1]), "podCIDR": st.sampled_from(["", "10.0.0.0/24", None]),
    "providerID": st.sampled_from(["p", "", "q"]),
})  # fmt: skip
WAYS = st.sampled_from([MERGE, STRATEGIC])
STEPS = st.lists(
    st.one_of(
        st.tuples(PLURALS, METADATA, WAYS, st.sampled_from("ab")),
        st.tuples(st.just("nodes"), METADATA, WAYS, st.sampled_from("ab"), st.one_of(SPEC, st.none())),
        st.tuples(PLURALS, st.just("delete"), st.sampled_from(["", "Foreground"]), st.just("a")),
    ),
    max_size=12,
)  # fmt: skip


async def make_all(world: World, finalizers: list[str], *, is_told_of: bool = True) -> None:
    """One of each; ``is_told_of`` if the custom one has a status."""
    await define(world, definition(with_spec(size={"type": "integer"}), subresources={"status": {}}))
    plain = {
        "jobs": job(), "pods": pod("j"), "deployments": deployment("j"), "nodes": node("j"), "widgets": widget("j"),
    }  # fmt: skip
    for plural, obj in plain.items():
        meta = {**obj["metadata"], "labels": {"app": "j"}, "annotations": {"c": "d"}, "finalizers": finalizers}
        await world.create(plural, {**obj, "metadata": meta}, GROUPS[plural], field_manager="a")
    if is_told_of:
        await world.patch("widgets", "j", {"status": {}}, LAB, subresource="status")


NOT_SAID: Any = object()


async def done(world: World, plural: str, asked: Any, how: str, manager: str, spec: Any = NOT_SAID) -> Any:
    served = world.served(plural, GROUPS[plural])
    namespace = "default" if served.namespaced else ""
    try:
        if asked == "delete":
            options = DeleteOptions(propagation=how or None)
            return await world.registry.delete(served, namespace, "j", options)
        meta = world.get(plural, "j", GROUPS[plural])["metadata"]
        patch = {"metadata": {key: meta[key] if value == "own" else value for key, value in asked.items()}}
        if spec is not NOT_SAID:
            patch["spec"] = spec
        result = await world.registry.patch(
            served, namespace, "j", how, patch, WriteOptions(field_manager=manager, field_validation="Warn")
        )
    except ApiError as problem:
        return problem.to_status()
    return result.stored.raw, result.stored.settled, result.warnings


def outcomes(steps: list[Any], finalizers: list[str], *, tracks: bool, is_told_of: bool) -> list[Any]:
    async def body(world: World) -> list[Any]:
        world.registry.tracks_managed_fields = tracks
        await make_all(world, finalizers, is_told_of=is_told_of)
        found: list[Any] = []
        for step in steps:
            found.append(await done(world, *step))
            await world.clock.sleep(1)
        return found

    return in_world(body)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=STEPS, finalizers=st.lists(st.sampled_from(NAMES[:3]), min_size=1, max_size=3, unique=True),
    tracks=st.booleans(), is_told_of=st.booleans(),
)  # fmt: skip
@example(
    steps=[("widgets", {"$deleteFromPrimitiveList/finalizers": [NAMES[0]]}, STRATEGIC, "a")], finalizers=[NAMES[0]],
    tracks=False, is_told_of=False,
)  # fmt: skip
def test_metadata_is_changed_as_it_is_the_long_way(
    monkeypatch: pytest.MonkeyPatch, steps: list[Any], finalizers: list[str], tracks: bool, is_told_of: bool
) -> None:
    short = outcomes(steps, finalizers, tracks=tracks, is_told_of=is_told_of)
    with monkeypatch.context() as patched:
        patched.setattr(MetadataWrites, "patch", the_long_way)
        assert short == outcomes(steps, finalizers, tracks=tracks, is_told_of=is_told_of)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, finalizers=st.lists(st.sampled_from(NAMES[:3]), min_size=1, max_size=3, unique=True))
def test_what_is_done_at_once_is_what_is_done_otherwise(
    monkeypatch: pytest.MonkeyPatch, steps: list[Any], finalizers: list[str]
) -> None:
    async def at_once(
        self: MetadataWrites, served: Served, old: Stored, how: str, body: Any, options: WriteOptions, caller: Caller
    ) -> WriteResult | None:
        meta = old.obj["metadata"]
        stored = self.patch_at_once(served, meta.get("namespace", ""), meta["name"], how, body, options, caller)
        return None if stored is None else WriteResult(stored)

    def written(found: list[Any]) -> list[Any]:
        return [one[:2] if isinstance(one, tuple) else one for one in found]

    usual = outcomes(steps, finalizers, tracks=False, is_told_of=True)
    with monkeypatch.context() as patched:
        patched.setattr(MetadataWrites, "patch", at_once)
        assert written(outcomes(steps, finalizers, tracks=False, is_told_of=True)) == written(usual)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.just("nodes"),
            st.fixed_dictionaries({}, optional={
                "labels": st.sampled_from([{"app": "b"}, {"x/y": "z"}]), "uid": st.just("own"),
                "finalizers": st.sampled_from([["a.io/one"], [], ["x"]]), "ownerReferences": OWNERS,
                "resourceVersion": st.sampled_from(["own", "own", "1"]),
            }).flatmap(lambda asked: st.permutations([*asked.items()]).map(dict)),
            st.just(MERGE), st.sampled_from("ab"),
            st.fixed_dictionaries(
                {}, optional={
                    "taints": st.one_of(st.lists(USUAL_TAINT, max_size=2), st.none()),
                    "unschedulable": st.sampled_from([True, False, None]),
                }
            ),
        ), min_size=1, max_size=6,
    ),
    tracks=st.booleans(), is_twice_there=st.booleans(),
)  # fmt: skip
def test_taints_are_changed_as_they_are_the_long_way(
    monkeypatch: pytest.MonkeyPatch, steps: list[Any], tracks: bool, is_twice_there: bool
) -> None:
    def outcome() -> Any:
        async def body(world: World) -> list[Any]:
            world.registry.tracks_managed_fields = tracks
            plain = node("j")
            address = {"type": "InternalIP", "address": "10.0.0.1"}
            status = {**plain.get("status", {}), "addresses": [address] * (2 if is_twice_there else 1)}
            meta = {**plain["metadata"], "labels": {"app": "j"}}
            await world.create("nodes", {**plain, "metadata": meta, "status": status}, field_manager="a")
            found = []
            for step in steps:
                found.append(await done(world, *step))
                await world.clock.sleep(1)
            return found

        return in_world(body)

    short = outcome()
    with monkeypatch.context() as patched:
        patched.setattr(MetadataWrites, "patch", the_long_way)
        assert short == outcome()


OF_A_NODE = {"labels": {"a": "b"}, "finalizers": ["a.io/one"], "ownerReferences": [OWNER], "uid": "own"}
TAINTS = {"taints": [{"key": "a.io/t", "effect": "NoExecute"}]}


@pytest.mark.parametrize(
    ("plural", "how", "asked", "spec"),
    [
        ("jobs", MERGE, {"finalizers": ["a.io/two"]}, NOT_SAID),
        ("pods", STRATEGIC, {DELETED: ["a.io/one"]}, NOT_SAID),
        ("nodes", MERGE, {"labels": {"a": "b"}, "uid": "own"}, NOT_SAID),
        ("nodes", MERGE, {"annotations": {"a": "b", "c": None, "e": "f"}}, NOT_SAID),
        ("widgets", MERGE, {"finalizers": ["a.io/one", "a.io/two", "a.io/three"], "resourceVersion": "own"}, NOT_SAID),
        ("widgets", MERGE, {"labels": {"a": "b"}, "annotations": {"a": "b"}, "uid": "own"}, NOT_SAID),
        ("nodes", MERGE, {**OF_A_NODE, "resourceVersion": "own"}, TAINTS),
        ("nodes", MERGE, {}, {"taints": [], "unschedulable": True}),
        ("nodes", MERGE, {"uid": "own"}, {"taints": None}),
    ],
)
def test_what_controllers_do_goes_the_short_way(plural: str, how: str, asked: Any, spec: Any) -> None:
    taken: list[bool] = []
    long = MetadataWrites.patch

    async def noted(*args: Any) -> Any:
        found = await long(*args)
        taken.append(found is not None)
        return found

    async def body(world: World) -> None:
        world.registry.tracks_managed_fields = plural != "widgets"
        await make_all(world, ["a.io/one", "a.io/two"])
        before = world.get(plural, "j", GROUPS[plural])["metadata"]
        await done(world, plural, asked, how, "b", spec)
        assert world.get(plural, "j", GROUPS[plural])["metadata"] != before

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MetadataWrites, "patch", noted)
        in_world(body)
    assert taken == [True]


def test_a_patch_for_another_state_is_a_conflict_by_the_short_way() -> None:
    async def body(world: World) -> None:
        await make_all(world, ["a.io/one"])
        served, patch = world.served("nodes"), {"metadata": {"resourceVersion": "1"}, "spec": TAINTS}
        writes = MetadataWrites(world.registry, world.registry.writes.ownership)
        old = world.registry.store.get(served.bucket, world.registry.key(served, "", "j"))
        assert old is not None
        with pytest.raises(Conflict, match="the object has been modified"):
            await writes.patch(served, old, MERGE, patch, WriteOptions(), Caller())

    in_world(body)


def test_a_plugin_that_sets_a_field_of_the_spec_is_listened_to() -> None:
    class Sets(Plugin):
        resources = frozenset({PODS})
        operations = CREATE_OR_UPDATE
        only_sets_on_update = True

        def mutate(self, attributes: Attributes) -> None:
            if attributes.operation == "UPDATE" and attributes.obj is not None:
                attributes.obj["spec"]["activeDeadlineSeconds"] = 5

    async def body(world: World) -> None:
        world.registry.admission.add(Sets())
        await make_all(world, ["a.io/one"])
        before = world.get("pods", "j", "")
        await done(world, "pods", {DELETED: ["a.io/one"]}, STRATEGIC, "b")
        after = world.get("pods", "j", "")
        assert after["spec"]["activeDeadlineSeconds"] == 5
        assert "finalizers" not in after["metadata"]
        assert "activeDeadlineSeconds" not in before["spec"]

    in_world(body)


def test_an_owner_of_all_that_goes_is_told_with_the_object_that_went() -> None:
    async def body(world: World) -> None:
        await make_all(world, ["a.io/one"])
        await done(world, "jobs", "delete", "", "a")
        raw, _, _ = await done(world, "jobs", {"finalizers": []}, MERGE, "a")
        assert b'"finalizers"' not in raw
        assert world.registry.find("batch", "jobs", "default", "j") is None

    in_world(body)


def test_a_list_that_was_sent_stays_the_senders() -> None:
    async def body(world: World) -> None:
        await make_all(world, ["a.io/one", "a.io/two"])
        sent = ["a.io/two"]
        await world.patch("jobs", "j", {"metadata": {"finalizers": sent}}, "batch")
        sent.append("x")
        assert world.get("jobs", "j", "batch")["metadata"]["finalizers"] == ["a.io/two"]

    in_world(body)


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ({"finalizers": ["b", "a"]}, {"finalizers": ["b", "a"]}),
        ({"finalizers": ["a", "b"]}, {}),
        ({"finalizers": None}, None),
        ({"finalizers": ["a", 1]}, None),
        ({"labels": {"x": "2", "z": None}}, {"labels": {"x": "2", "y": "1"}}),
        ({"labels": {"x": "1"}}, {}),
        ({"labels": {"x": None, "y": None}}, None),
        ({"labels": {"x": 1}}, None),
        ({"labels": None}, None),
        ({"annotations": {"x": "1"}}, None),
        ({"finalizers": [], "labels": {"y": None}}, {"labels": {"x": "1"}, "finalizers": []}),
    ],
)
def test_what_a_merge_patch_makes_of_metadata(asked: Any, changed: Any) -> None:
    meta = {"finalizers": ["a", "b"], "labels": {"x": "1", "y": "1"}, "uid": "u"}
    assert changed_parts(meta, MERGE, asked) == changed
    assert meta == {"finalizers": ["a", "b"], "labels": {"x": "1", "y": "1"}, "uid": "u"}


@pytest.mark.parametrize(("asked", "changed"), [(["a"], {"finalizers": ["b"]}), (["c"], {}), ("a", None)])
def test_which_finalizers_a_strategic_patch_takes_off(asked: Any, changed: Any) -> None:
    assert changed_parts({"finalizers": ["a", "b"]}, STRATEGIC, {DELETED: asked}) == changed
