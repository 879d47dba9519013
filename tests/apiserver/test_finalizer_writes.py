"""Finalizers taken off by the short way end where the long way ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import CREATE_OR_UPDATE, PODS, Attributes, Plugin
from holokube.apiserver.finalizer_writes import FinalizerWrites, remaining
from holokube.apiserver.options import DeleteOptions, WriteOptions
from holokube.kube.errors import ApiError
from tests.apiserver.test_settled import STRATEGIC, job
from tests.apiserver.test_status_writes import the_long_way
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import deployment, pod

GROUPS = {"jobs": "batch", "pods": "", "deployments": "apps"}
DELETED = "$deleteFromPrimitiveList/finalizers"
NAMES = ["a.io/one", "a.io/two", "a.io/three", "foregroundDeletion"]
PLURALS = st.sampled_from(sorted(GROUPS))
LISTS = st.lists(st.sampled_from([*NAMES, "x", 1, None]), max_size=3)
METADATA = st.fixed_dictionaries({}, optional={
    "finalizers": st.one_of(LISTS, st.none()), DELETED: LISTS, "uid": st.sampled_from(["own", "u"]),
    "resourceVersion": st.sampled_from(["own", "1"]), "labels": st.just({"a": "b"}), "name": st.just("j"),
})  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(PLURALS, METADATA, st.sampled_from([MERGE, STRATEGIC]), st.sampled_from("ab")),
        st.tuples(PLURALS, st.just("delete"), st.sampled_from(["", "Foreground"]), st.just("a")),
    ),
    max_size=12,
)  # fmt: skip


async def make_all(world: World, finalizers: list[str]) -> None:
    for plural, plain in (("jobs", job()), ("pods", pod("j")), ("deployments", deployment("j"))):
        made = {**plain, "metadata": {**plain["metadata"], "labels": {"app": "j"}, "finalizers": finalizers}}
        await world.create(plural, made, GROUPS[plural], field_manager="a")


async def done(world: World, plural: str, asked: Any, how: str, manager: str) -> Any:
    served = world.served(plural, GROUPS[plural])
    try:
        if asked == "delete":
            options = DeleteOptions(propagation=how or None)
            return await world.registry.delete(served, "default", "j", options)
        meta = world.get(plural, "j", GROUPS[plural])["metadata"]
        patch = {"metadata": {key: meta[key] if value == "own" else value for key, value in asked.items()}}
        result = await world.registry.patch(
            served, "default", "j", how, patch, WriteOptions(field_manager=manager, field_validation="Warn")
        )
    except ApiError as problem:
        return problem.to_status()
    return result.stored.raw, result.stored.settled, result.warnings


def outcomes(steps: list[Any], finalizers: list[str]) -> list[Any]:
    async def body(world: World) -> list[Any]:
        await make_all(world, finalizers)
        found: list[Any] = []
        for step in steps:
            found.append(await done(world, *step))
            await world.clock.sleep(1)
        return found

    return in_world(body)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, finalizers=st.lists(st.sampled_from(NAMES[:3]), min_size=1, max_size=3, unique=True))
def test_finalizers_are_taken_off_as_they_are_the_long_way(
    monkeypatch: pytest.MonkeyPatch, steps: list[Any], finalizers: list[str]
) -> None:
    short = outcomes(steps, finalizers)
    with monkeypatch.context() as patched:
        patched.setattr(FinalizerWrites, "patch", the_long_way)
        assert short == outcomes(steps, finalizers)


@pytest.mark.parametrize(
    ("plural", "how", "asked"),
    [("jobs", MERGE, {"finalizers": ["a.io/two"]}), ("pods", STRATEGIC, {DELETED: ["a.io/one"]})],
)
def test_what_controllers_do_goes_the_short_way(plural: str, how: str, asked: Any) -> None:
    taken: list[bool] = []
    long = FinalizerWrites.patch

    async def noted(*args: Any) -> Any:
        found = await long(*args)
        taken.append(found is not None)
        return found

    async def body(world: World) -> None:
        await make_all(world, ["a.io/one", "a.io/two"])
        await done(world, plural, asked, how, "b")
        assert world.get(plural, "j", GROUPS[plural])["metadata"]["finalizers"] == ["a.io/two"]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FinalizerWrites, "patch", noted)
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


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        (STRATEGIC, {"finalizers": ["a"]}),
        (MERGE, {"finalizers": ["b", "a"]}),
        (MERGE, {"finalizers": ["a", "b"]}),
        (MERGE, {"finalizers": ["a", "c"]}),
        (MERGE, {"finalizers": None}),
        (MERGE, {"finalizers": ["a"], "labels": {}}),
        (MERGE, {"finalizers": ["a"], "uid": "other"}),
        (STRATEGIC, {DELETED: ["c"]}),
        (STRATEGIC, {DELETED: "a"}),
    ],
)
def test_other_patches_are_none_of_these(how: str, asked: Any) -> None:
    assert remaining({"finalizers": ["a", "b"], "uid": "u"}, how, {"metadata": asked}) is None
