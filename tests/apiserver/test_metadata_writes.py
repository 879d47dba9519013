"""Metadata changed by the short way ends where the long way ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import CREATE_OR_UPDATE, PODS, Attributes, Plugin
from holokube.apiserver.metadata_writes import MetadataWrites, changed_parts
from holokube.apiserver.options import DeleteOptions, WriteOptions
from holokube.kube.errors import ApiError
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
METADATA = st.fixed_dictionaries({}, optional={
    "finalizers": st.one_of(LISTS, st.none()), DELETED: LISTS, "uid": st.sampled_from(["own", "u"]),
    "resourceVersion": st.sampled_from(["own", "1"]), "labels": st.one_of(MAPS, st.none()),
    "annotations": st.one_of(MAPS, st.none()), "name": st.just("j"),
})  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(PLURALS, METADATA, st.sampled_from([MERGE, STRATEGIC]), st.sampled_from("ab")),
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
    # Nodes settle when they are written as a whole.
    await world.update("nodes", {**world.get("nodes", "j"), "spec": {"providerID": "p"}})


async def done(world: World, plural: str, asked: Any, how: str, manager: str) -> Any:
    served = world.served(plural, GROUPS[plural])
    namespace = "default" if served.namespaced else ""
    try:
        if asked == "delete":
            options = DeleteOptions(propagation=how or None)
            return await world.registry.delete(served, namespace, "j", options)
        meta = world.get(plural, "j", GROUPS[plural])["metadata"]
        patch = {"metadata": {key: meta[key] if value == "own" else value for key, value in asked.items()}}
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


@pytest.mark.parametrize(
    ("plural", "how", "asked"),
    [
        ("jobs", MERGE, {"finalizers": ["a.io/two"]}),
        ("pods", STRATEGIC, {DELETED: ["a.io/one"]}),
        ("nodes", MERGE, {"labels": {"a": "b"}, "uid": "own"}),
        ("nodes", MERGE, {"annotations": {"a": "b", "c": None, "e": "f"}}),
        ("widgets", MERGE, {"finalizers": ["a.io/one", "a.io/two", "a.io/three"], "resourceVersion": "own"}),
        ("widgets", MERGE, {"labels": {"a": "b"}, "annotations": {"a": "b"}, "uid": "own"}),
    ],
)
def test_what_controllers_do_goes_the_short_way(plural: str, how: str, asked: Any) -> None:
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
        await done(world, plural, asked, how, "b")
        assert world.get(plural, "j", GROUPS[plural])["metadata"] != before

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MetadataWrites, "patch", noted)
        in_world(body)
    assert taken == [True]


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
