"""A write that leaves the spec of a stored object alone takes it over, and need not look at it again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holokube.apiserver import bodies, patching
from holokube.apiserver.admission.base import IN_PROCESS, Attributes, Plugin
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.kinds.jobs import Job
from holokube.apiserver.kinds.pods import Pod
from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import ApiError
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import deployment, pod

STRATEGIC = "application/strategic-merge-patch+json"
JsonObject = dict[str, Any]


def job(name: str = "j") -> JsonObject:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    meta = {"name": name, "namespace": "default", "finalizers": ["example.com/f"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def test_the_spec_of_an_object_whose_metadata_is_patched_is_the_stored_one() -> None:
    async def body(world: World) -> None:
        for plural, group, made in (("jobs", "batch", job()), ("pods", "", pod("j"))):
            before = await world.create(plural, made, group)
            after = await world.patch(plural, "j", {"metadata": {"finalizers": ["example.com/g"]}}, group)
            assert after["spec"] is before["spec"]
            assert after["metadata"]["generation"] == before["metadata"]["generation"]

    in_world(body)


def test_a_spec_that_is_sent_again_in_another_order_is_stored_in_that_order() -> None:
    async def body(world: World) -> None:
        made = await world.create("jobs", job(), "batch")
        turned = {key: made["spec"][key] for key in reversed(made["spec"])}
        meta = {**made["metadata"], "labels": {**made["metadata"]["labels"], "a": "b"}}
        after = await world.update("jobs", {**made, "metadata": meta, "spec": turned}, "batch")
        assert list(after["spec"]) == list(turned)

    in_world(body)


def test_a_plugin_that_changes_the_inside_of_a_spec_changes_no_stored_object() -> None:
    class Renaming(Plugin):
        resources = frozenset({("batch", "jobs")})
        operations = frozenset({"UPDATE"})

        def mutate(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            attributes.obj["spec"]["template"]["spec"]["containers"][0]["image"] = "other:1"

    async def body(world: World) -> None:
        before = await world.create("jobs", job(), "batch")
        world.registry.admission.add(Renaming())
        with pytest.raises(ApiError):
            await world.patch("jobs", "j", {"metadata": {"labels": {"a": "b"}}}, "batch")
        assert before["spec"]["template"]["spec"]["containers"][0]["image"] == "i:1"

    in_world(body)


LABELS = st.dictionaries(st.sampled_from(["a", "b/c", "bad key", "app"]), st.sampled_from(["x", "y y", "", None]))
PATCHES = st.fixed_dictionaries({}, optional={
    "metadata": st.fixed_dictionaries({}, optional={
        "labels": LABELS, "annotations": LABELS, "finalizers": st.sampled_from([[], ["example.com/f"], ["f"], None]),
        "name": st.sampled_from(["j", "other"]), "unknown": st.just(1), "generation": st.just(9),
    }),
    "spec": st.sampled_from([
        {}, {"activeDeadlineSeconds": 5}, {"replicas": 3}, {"suspend": True},
        {"template": {"metadata": {"labels": {"z": "z"}}}}, {"tolerations": [{"operator": "Exists"}]},
        {"activeDeadlineSeconds": -5}, {"unknown": 1},
    ]),
    "status": st.sampled_from([{}, {"active": 1}, {"phase": "Running"}, {"replicas": 2}]),
})  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["jobs", "pods", "deployments"]), st.sampled_from([MERGE, STRATEGIC, "update"]), PATCHES,
        st.sampled_from(["", "", "status", "delete", "bind"]),
    ),
    max_size=10,
)  # fmt: skip
GROUPS = {"jobs": "batch", "deployments": "apps", "pods": ""}


async def outcome(world: World, plural: str, how: str, patch: JsonObject, door: str) -> Any:
    group = GROUPS[plural]
    served = world.served(plural, group)
    options = WriteOptions(field_validation="Warn", field_manager="m")
    try:
        if door == "delete":
            return await world.delete(plural, "j", group, propagation="Foreground")
        if door == "bind":
            target = {"target": {"kind": "Node", "name": "n"}}
            handle = world.registry.subresources.handle
            done = await handle(
                world.served("pods"), "default", "j", "binding", "create", body=target, content_type="", query={},
                options=options, caller=IN_PROCESS,
            )  # fmt: skip
            assert isinstance(done, WriteResult)
            return done.stored.raw
        if how == "update":
            now = world.get(plural, "j", group)
            sent = {**now, **patch, "metadata": {**now["metadata"], **patch.get("metadata", {})}}
            written = await world.registry.update(served, "default", "j", sent, options, subresource=door)
        else:
            written = await world.registry.patch(served, "default", "j", how, patch, options, subresource=door)
    except ApiError as problem:
        return problem.to_status()
    return written.stored.raw, written.warnings


def outcomes(steps: list[Any]) -> list[Any]:
    async def body(world: World) -> list[Any]:
        await world.create("jobs", job(), "batch")
        await world.create("pods", pod("j"))
        await world.create("deployments", deployment("j"), "apps")
        found = []
        for step in steps:
            found.append(await outcome(world, *step))
            await world.clock.sleep(1)
        return found

    return in_world(body)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_taking_the_spec_over_ends_where_looking_at_it_again_ends(
    steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = outcomes(steps)
    with monkeypatch.context() as patch:
        for module in (bodies, patching):
            patch.setattr(module, "shares_spec", lambda *_: False)
        for kind in (Job, Pod):
            patch.setattr(kind, "stays_valid", lambda *_: False)
        assert quick == outcomes(steps)
