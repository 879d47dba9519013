"""Templates and statuses that are sent back as they were read are taken over, and end as if they were read again."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver import bodies, patching
from holokube.apiserver.admission.base import IN_PROCESS, Attributes, Plugin
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.kinds import workload_rules
from holokube.apiserver.kinds.deployments import Deployment
from holokube.apiserver.kinds.nodes import Node
from holokube.apiserver.kinds.replica_sets import ReplicaSet
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.subresources.scale import ScaleDoor
from holokube.kube.errors import ApiError
from tests.apiserver.test_settled import STRATEGIC
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import deployment, node

JsonObject = dict[str, Any]
GROUPS = {"deployments": "apps", "replicasets": "apps", "nodes": ""}
LABELS = st.dictionaries(st.sampled_from(["a", "b/c", "bad key", "app"]), st.sampled_from(["x", "y y", "", None]))
METADATA = st.fixed_dictionaries({}, optional={
    "labels": LABELS, "annotations": LABELS, "finalizers": st.sampled_from([[], ["example.com/f"], ["f"], None]),
    "unknown": st.just(1),
})  # fmt: skip
SPECS = st.fixed_dictionaries({}, optional={
    "replicas": st.sampled_from([0, 3, -1, None, "x"]), "minReadySeconds": st.sampled_from([0, 5, 700, -1, None]),
    "progressDeadlineSeconds": st.sampled_from([600, 5, None]), "paused": st.sampled_from([True, False, 1]),
    "strategy": st.sampled_from([None, {"type": "Recreate", "rollingUpdate": None}, {"type": "x"}]),
    "selector": st.sampled_from([None, {"matchLabels": {"app": "other"}}, {"matchLabels": {"bad key": "x"}}]),
    "template": st.sampled_from([
        {"metadata": {"labels": {"app": "z"}}}, {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}},
        {"spec": {"terminationGracePeriodSeconds": -1}}, None, {},
    ]),
    "taints": st.sampled_from([[], [{"key": "a", "effect": "NoSchedule"}], [{"key": "bad key", "effect": "x"}], None]),
    "unschedulable": st.booleans(), "podCIDR": st.sampled_from(["10.0.0.0/24", "010.0.0.0/24", "x"]),
    "externalID": st.just("e"), "configSource": st.just({}),
})  # fmt: skip
STATUSES = st.sampled_from([{}, {"replicas": 2}, {"capacity": {"cpu": "1500u"}}, {"nodeInfo": {"machineID": "m"}}])
PATCHES = st.fixed_dictionaries({}, optional={"metadata": METADATA, "spec": SPECS, "status": STATUSES})
STEPS = st.lists(
    st.tuples(
        st.sampled_from(sorted(GROUPS)), st.sampled_from([MERGE, STRATEGIC, "update", "scale"]), PATCHES,
        st.sampled_from(["", "", "", "status", "delete"]),
    ),
    min_size=1, max_size=10,
)  # fmt: skip


def merged(old: JsonObject, patch: JsonObject) -> JsonObject:
    """As somebody does who has read an object and changes some of it."""
    found = {**old, **{key: value for key, value in patch.items() if value is not None}}
    return {key: value for key, value in found.items() if key not in patch or patch[key] is not None}


async def write(world: World, plural: str, how: str, patch: JsonObject, door: str) -> Any:
    group = GROUPS[plural]
    served, now = world.served(plural, group), world.get(plural, "j", group)
    namespace = now["metadata"].get("namespace", "")
    options = WriteOptions(field_validation="Warn", field_manager="m")
    if door == "delete":
        return await world.delete(plural, "j", group, propagation="Foreground")
    if how == "scale" and plural != "nodes":
        body = {"spec": {"replicas": patch.get("spec", {}).get("replicas", 4)}}
        done = await world.registry.subresources.handle(
            served, namespace, "j", "scale", "patch", body=body, content_type=MERGE, query={}, options=options,
            caller=IN_PROCESS,
        )  # fmt: skip
        assert isinstance(done, WriteResult)
    elif how in (MERGE, STRATEGIC):
        done = await world.registry.patch(served, namespace, "j", how, patch, options, subresource=door)
    else:
        sent = {**now, **{key: merged(now[key], part) for key, part in patch.items()}}
        done = await world.registry.update(served, namespace, "j", sent, options, subresource=door)
    return done.stored.raw, done.warnings


def outcomes(steps: list[Any], *, tracks: bool) -> list[Any]:
    async def body(world: World) -> list[Any]:
        world.registry.tracks_managed_fields = tracks
        await world.create("deployments", deployment("j"), "apps")
        await world.create("replicasets", {**deployment("j"), "kind": "ReplicaSet"}, "apps")
        await world.create("nodes", node("j"))
        found: list[Any] = []
        for step in steps:
            before = world.get(step[0], "j", GROUPS[step[0]])
            text = orjson.dumps(before)
            try:
                found.append(await write(world, *step))
            except ApiError as problem:
                found.append(problem.to_status())
            assert orjson.dumps(before) == text, "what was stored is never changed"
            if world.registry.store.get(world.served(step[0], GROUPS[step[0]]).bucket, before_key(before)) is None:
                break
            found.append(orjson.dumps(world.get(step[0], "j", GROUPS[step[0]])))
            await world.clock.sleep(1)
        return found

    return in_world(body)


def before_key(obj: JsonObject) -> str:
    namespace = obj["metadata"].get("namespace")
    return f"{namespace}/j" if namespace else "j"


@settings(max_examples=250, deadline=None)
@given(steps=STEPS, tracks=st.booleans())
def test_what_is_taken_over_ends_where_looking_at_it_again_ends(steps: list[Any], tracks: bool) -> None:
    quick = outcomes(steps, tracks=tracks)
    with pytest.MonkeyPatch.context() as patch:
        for module in (bodies, patching):
            patch.setattr(module, "shares_spec", lambda *_: False)
        for kind in (Deployment, ReplicaSet, Node):
            patch.setattr(kind, "settles_on_update", False)
            patch.setattr(kind, "stays_valid", lambda *_: False)
        patch.setattr(ScaleDoor, "_scaled", scaled_apart)
        assert quick == outcomes(steps, tracks=tracks)


def scaled_apart(_self: ScaleDoor, _served: Any, stored: Any, _paths: Any, replicas: int) -> JsonObject:
    new: JsonObject = orjson.loads(orjson.dumps(stored.obj))
    new["spec"]["replicas"] = replicas
    return new


def test_the_template_of_what_is_scaled_and_the_status_of_what_is_labelled_are_the_stored_ones() -> None:
    async def body(world: World) -> None:
        for plural in ("deployments", "replicasets"):
            kind = {"deployments": "Deployment", "replicasets": "ReplicaSet"}[plural]
            made = await world.create(plural, {**deployment("j"), "kind": kind}, "apps")
            for replicas in (5, 6):
                spec = {**made["spec"], "replicas": replicas}
                after = await world.update(plural, {**made, "spec": spec}, "apps")
                assert after["spec"]["replicas"] == replicas
                assert after["spec"]["template"] is made["spec"]["template"]
                assert after["status"] is made["status"]
                await write(world, plural, "scale", {"spec": {"replicas": 9}}, "")
                made = world.get(plural, "j", "apps")
                assert made["spec"]["replicas"] == 9
                assert made["spec"]["template"] is after["spec"]["template"]
        await world.create("nodes", node("j"))
        first = await world.patch("nodes", "j", {"spec": {"taints": []}})
        second = await world.patch("nodes", "j", {"metadata": {"labels": {"a": "b"}}})
        assert second["spec"] is first["spec"]
        assert second["status"] is first["status"]

    in_world(body)


def test_who_changes_the_inside_of_what_is_scaled_changes_no_stored_object() -> None:
    class Renaming(Plugin):
        resources = frozenset({("apps", "deployments")})
        operations = frozenset({"UPDATE"})
        subresources = None

        def mutate(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            attributes.obj["spec"]["template"]["spec"]["containers"][0]["image"] = "other:1"

    async def body(world: World) -> None:
        before = await world.create("deployments", deployment("j"), "apps")
        text = orjson.dumps(before)
        world.registry.admission.add(Renaming())
        await write(world, "deployments", "scale", {"spec": {"replicas": 9}}, "")
        assert orjson.dumps(before) == text
        after = world.get("deployments", "j", "apps")
        assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "other:1"
        await world.update("deployments", {**after, "spec": {**after["spec"], "replicas": 8}}, "apps")
        assert orjson.dumps(before) == text

    in_world(body)


def test_warnings_of_a_stored_template_are_said_again_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_rules, "_WARNED_KEPT", 1)

    async def body(world: World) -> None:
        for name in ("j", "k"):
            made = deployment(name)
            made["spec"]["template"]["spec"]["nodeSelector"] = {"beta.kubernetes.io/os": "linux"}
            await world.create("deployments", made, "apps")
        served = world.served("deployments", "apps")
        for replicas in (5, 6):
            for name in ("j", "k"):
                now = world.get("deployments", name, "apps")
                sent = {**now, "spec": {**now["spec"], "replicas": replicas}}
                done = await world.registry.update(served, "default", name, sent)
                assert len(done.warnings) == 1
                assert "deprecated" in done.warnings[0]

    in_world(body)


def test_warnings_of_a_node_are_said_whenever_more_than_its_status_is_written() -> None:
    async def body(world: World) -> None:
        made = node("j")
        await world.create("nodes", {**made, "spec": {**made.get("spec", {}), "externalID": "e"}})
        served = world.served("nodes")
        for number in range(3):
            labels = {"metadata": {"labels": {"a": str(number)}}}
            assert len((await world.registry.patch(served, "", "j", MERGE, labels)).warnings) == 1
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": str(number)}]}}
            done = await world.registry.patch(served, "", "j", MERGE, ready, subresource="status")
            assert not done.warnings

    in_world(body)
