"""Writes of status by the short way end where the long way ends."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holokube.apiserver.metadata import RENEWED, STORED_FIELDS
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.status_writes import StatusWrites
from holokube.client.client import Client, PatchType
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import Resource
from holokube.kube.errors import ApiError
from tests.apiserver.crds.steps import LAB, define, definition, widget, with_spec
from tests.apiserver.test_settled import STRATEGIC, job
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import deployment, node, pod

JsonObject = dict[str, Any]
NOON = "2026-01-01T12:00:00Z"
COUNTS = st.sampled_from([0, 1, 2, -1, None, "x"])
TIMES = st.sampled_from([NOON, "2026-01-01T12:00:01.5Z", None, "x"])
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Available", "Complete", "Ready", "Failed"]),
            "status": st.sampled_from(["True", "False"]),
        },
        optional={"lastTransitionTime": TIMES, "message": st.sampled_from(["", "m"]), "reason": st.just("r")},
    ),
    max_size=2,
)  # fmt: skip
STATUSES = st.fixed_dictionaries({}, optional={
    "replicas": COUNTS, "readyReplicas": COUNTS, "availableReplicas": COUNTS, "observedGeneration": COUNTS,
    "collisionCount": COUNTS, "active": COUNTS, "ready": COUNTS, "succeeded": COUNTS, "startTime": TIMES,
    "completionTime": TIMES, "conditions": CONDITIONS,
    "uncountedTerminatedPods": st.sampled_from([{}, {"succeeded": ["u"]}]),
    "numberReady": COUNTS, "desiredNumberScheduled": COUNTS, "phase": st.sampled_from(["Running", "Failed"]),
    "capacity": st.sampled_from([{"cpu": "1500u"}, {"cpu": "2"}, {"cpu": "x"}]), "unknown": st.just(1),
})  # fmt: skip
PLURALS = {
    "jobs": "batch", "deployments": "apps", "replicasets": "apps", "daemonsets": "apps", "pods": "", "nodes": "",
    "widgets": LAB,
}  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.sampled_from(sorted(PLURALS)), STATUSES, st.sampled_from(["a", "b"]),
        st.sampled_from(["update", "merge", MERGE, STRATEGIC]), st.sampled_from(["", "uid", "stale", "name"]),
    ),
    max_size=12,
)  # fmt: skip


def daemon_set() -> JsonObject:
    made = deployment("j")
    spec = {key: value for key, value in made["spec"].items() if key != "replicas"}
    return {**made, "kind": "DaemonSet", "spec": spec}


async def make_all(world: World) -> None:
    await world.create("jobs", job(), "batch")
    await world.create("pods", pod("j"))
    await world.create("nodes", node("j"))
    await world.create("deployments", deployment("j"), "apps")
    await world.create("replicasets", {**deployment("j"), "kind": "ReplicaSet"}, "apps")
    await world.create("daemonsets", daemon_set(), "apps")
    schema = with_spec(a={"type": "integer", "default": 1})
    schema["properties"]["status"]["properties"] = {
        "replicas": {"type": "integer", "minimum": 0}, "phase": {"type": "string"},
        "ready": {"type": "integer", "nullable": True},
        "observedGeneration": {"type": "integer", "default": 7}, "startTime": {"type": "string", "format": "date-time"},
        "conditions": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object", "required": ["type"],
                "properties": {"type": {"type": "string"}, "status": {"type": "string", "default": "Unknown"}},
            },
        },
    }  # fmt: skip
    await define(world, definition(schema, subresources={"status": {}}))
    await world.create("widgets", widget("j"), LAB)


async def written(world: World, plural: str, status: JsonObject, manager: str, how: str, named: str) -> Any:
    served = world.served(plural, PLURALS[plural])
    now = world.get(plural, "j", PLURALS[plural])
    namespace = now["metadata"].get("namespace", "")
    options = WriteOptions(field_manager=manager, field_validation="Warn")
    try:
        if how in (MERGE, STRATEGIC):
            meta = {"uid": {"uid": now["metadata"]["uid"]}, "stale": {"resourceVersion": "1"}, "name": {"name": "x"}}
            patch = {"status": status, **({"metadata": meta[named]} if named else {})}
            result = await world.registry.patch(served, namespace, "j", how, patch, options, subresource="status")
        else:
            sent = {**now, "status": {**now.get("status", {}), **status} if how == "merge" else status}
            result = await world.registry.update(served, namespace, "j", sent, options, subresource="status")
    except ApiError as problem:
        return problem.to_status()
    return result.stored.raw, result.warnings


def outcomes(steps: list[Any], tracks: str) -> list[Any]:
    async def body(world: World) -> list[Any]:
        world.registry.tracks_managed_fields = tracks != "never"
        await make_all(world)
        world.registry.tracks_managed_fields = tracks == "always"
        found: list[Any] = []
        for step in steps:
            found.append(await written(world, *step))
            await world.clock.sleep(1)
        return found

    return in_world(body)


async def the_long_way(*_: Any) -> None:
    return None


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, tracks=st.sampled_from(["always", "never", "until now"]))
def test_another_status_in_the_same_object_becomes_what_it_becomes_the_long_way(
    steps: list[Any], tracks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = outcomes(steps, tracks)
    with monkeypatch.context() as patch:
        for way in ("replace", "patch", "make"):
            patch.setattr(StatusWrites, way, the_long_way)
        assert quick == outcomes(steps, tracks)


@settings(max_examples=50, deadline=None)
@given(steps=STEPS, tracks=st.booleans())
def test_what_is_said_to_have_another_status_only_is_otherwise_the_very_same(steps: list[Any], tracks: bool) -> None:
    async def body(world: World) -> None:
        world.registry.tracks_managed_fields = tracks
        await make_all(world)
        client = Client(InProcessTransport(world.registry))
        watches = [world.store.watch(bucket, since=world.store.revision) for bucket in world.store.buckets()]
        for plural, status, _, how, _ in steps:
            served, now = world.served(plural, PLURALS[plural]), world.get(plural, "j", PLURALS[plural])
            resource = Resource(served.group, served.version, plural, served.kind, served.namespaced)
            space = now["metadata"].get("namespace")
            with contextlib.suppress(ApiError):
                if how in (MERGE, STRATEGIC):
                    await client.patch_status(
                        resource, "j", {"status": status}, namespace=space, type=PatchType(how)
                    )
                else:
                    await client.update_status(resource, {**now, "status": status})
        for event in (event for watch in watches for event in watch.pop_all()):
            if event.stored.only_status:
                assert event.previous is not None
                old, new = event.previous.obj, event.stored.obj
                assert [*new] == STORED_FIELDS
                assert all(new[part] is old[part] for part in ("kind", "apiVersion", "spec"))
                was, is_ = old["metadata"], new["metadata"]
                for part in (was.keys() | is_.keys()) - RENEWED:
                    assert is_[part] is was[part]

    in_world(body)


def test_an_object_that_has_changed_since_is_a_conflict() -> None:
    async def body(world: World) -> None:
        made = await world.create("jobs", job(), "batch")
        await world.update("jobs", {**made, "status": {"active": 1}}, "batch", "status")
        with pytest.raises(ApiError, match="modified"):
            await world.update("jobs", {**made, "status": {"active": 1}}, "batch", "status")

    in_world(body)


def test_a_status_that_is_as_it_was_is_not_written() -> None:
    async def body(world: World) -> None:
        made = await world.create("deployments", deployment("j"), "apps")
        once = await world.update("deployments", {**made, "status": {"replicas": 1}}, "apps", "status")
        again = await world.update("deployments", {**once, "status": {"replicas": 1}}, "apps", "status")
        assert again is once
        assert once["spec"] is made["spec"], "what is never changed need not be kept twice"

    in_world(body)


def test_a_status_that_gets_back_what_it_left_out_is_not_written_again() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod("j"))
        first = await written(world, "pods", {}, "a", "update", "")
        assert b'"qosClass"' in first[0]
        assert await written(world, "pods", {}, "a", "update", "") == first

    in_world(body)
