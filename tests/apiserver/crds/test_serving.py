from __future__ import annotations

import pytest

from holokube.apiserver.options import ListOptions
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.kube.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from holokube.kube.types import JsonObject
from tests.apiserver.crds.steps import (
    GROUP,
    LAB,
    PLURAL,
    conditions,
    define,
    definition,
    redefine,
    widget,
    with_spec,
)
from tests.apiserver.worlds import World, in_world

CRD_NAME = f"widgets.{LAB}"


def test_a_resource_is_served_when_the_creation_of_its_definition_returns() -> None:
    async def test(world: World) -> None:
        with pytest.raises(NotFound):
            world.served("widgets", LAB)
        crd = await define(world, definition(shortNames=[]))
        assert conditions(crd) == {
            "NamesAccepted": ("True", "NoConflicts"),
            "Established": ("True", "InitialNamesAccepted"),
        }
        assert crd["status"]["storedVersions"] == ["v1"]
        assert crd["status"]["acceptedNames"] == crd["spec"]["names"] | {
            "singular": "widget",
            "listKind": "WidgetList",
        }
        stored = await world.create("widgets", widget(color="red"), LAB)
        assert stored["spec"] == {"color": "red"}
        assert world.names("widgets", LAB) == ["w"]

    in_world(test)


def test_a_dry_run_of_a_definition_serves_nothing() -> None:
    async def test(world: World) -> None:
        await world.create(PLURAL, definition(), GROUP, dry_run=True)
        with pytest.raises(NotFound):
            world.served("widgets", LAB)

    in_world(test)


def test_a_server_on_a_store_with_definitions_serves_them() -> None:
    async def main(clock: VirtualClock) -> None:
        first = World(clock)
        await first.create("namespaces", {"metadata": {"name": "default"}})
        await define(first, definition(with_spec(size={"type": "integer", "default": 3})))
        await first.create("widgets", widget(), LAB)
        second = World(clock, first.store)
        assert second.get("widgets", "w", LAB)["spec"] == {"size": 3}
        second_widget = await second.create("widgets", widget("x"), LAB)
        assert second_widget["spec"] == {"size": 3}

    run_virtual(main)


def test_an_object_must_say_its_kind_and_version() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        for missing, text in (
            ("kind", "Object 'Kind' is missing"),
            ("apiVersion", "does not match the expected"),
        ):
            body = {key: value for key, value in widget().items() if key != missing}
            with pytest.raises(BadRequest, match=text):
                await world.create("widgets", body, LAB)

    in_world(test)


def test_unknown_and_duplicate_fields_are_named_in_order() -> None:
    async def test(world: World) -> None:
        await define(world, definition(with_spec(known={"type": "string"})))
        body = {**widget(known="a", b=1, a=2), "extra": 1}
        body["metadata"]["bogus"] = 1
        wanted = ["metadata.bogus", "extra", "spec.a", "spec.b"]
        listed = ", ".join(f'unknown field "{path}"' for path in wanted)
        with pytest.raises(BadRequest, match=f"strict decoding error: {listed}"):
            await world.create("widgets", body, LAB, field_validation="Strict")
        stored = await world.create("widgets", body, LAB, field_validation="Ignore")
        assert stored["spec"] == {"known": "a"}
        assert "extra" not in stored

    in_world(test)


def test_without_a_status_subresource_status_is_part_of_the_object() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        stored = await world.create("widgets", {**widget(), "status": {"ready": True}}, LAB)
        assert stored["status"] == {"ready": True}
        changed = await world.patch("widgets", "w", {"status": {"ready": False}}, LAB)
        assert (changed["status"], changed["metadata"]["generation"]) == ({"ready": False}, 2)

    in_world(test)


def test_with_a_status_subresource_each_door_changes_its_own_half() -> None:
    async def test(world: World) -> None:
        schema = with_spec(a={"type": "integer"})
        schema["properties"]["status"]["properties"] = {"n": {"type": "integer"}}
        await define(world, definition(schema, subresources={"status": {}}))
        stored = await world.create("widgets", {**widget(a=1), "status": {"n": 1}}, LAB)
        assert "status" not in stored
        after = await world.patch(
            "widgets", "w", {"status": {"n": 2}, "spec": {"a": 5}}, LAB, subresource="status"
        )
        assert (after["spec"], after["status"], after["metadata"]["generation"]) == ({"a": 1}, {"n": 2}, 1)
        after = await world.patch("widgets", "w", {"status": {"n": 3}, "spec": {"a": 5}}, LAB)
        assert (after["spec"], after["status"], after["metadata"]["generation"]) == ({"a": 5}, {"n": 2}, 2)
        with pytest.raises(Invalid, match=r"status.n: Invalid value"):
            await world.patch("widgets", "w", {"status": {"n": "x"}}, LAB, subresource="status")

    in_world(test)


def test_an_update_needs_a_resource_version() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        stored = await world.create("widgets", widget(), LAB)
        with pytest.raises(Invalid, match=r"metadata.resourceVersion: Invalid value: 0"):
            await world.update("widgets", widget(a=1), LAB)
        await world.update("widgets", {**stored, "spec": {"a": 1}}, LAB)
        with pytest.raises(Conflict):
            await world.update("widgets", {**stored, "spec": {"a": 2}}, LAB)

    in_world(test)


def test_a_second_definition_with_the_same_names_waits_until_they_are_free() -> None:
    async def test(world: World) -> None:
        first = definition()
        second = definition(plural="gadgets", kind="Widget")
        await define(world, first)
        waiting = await define(world, second)
        assert conditions(waiting) == {
            "NamesAccepted": ("False", "ListKindConflict"),
            "Established": ("False", "NotAccepted"),
        }
        assert waiting["status"]["acceptedNames"] == {"plural": "gadgets", "kind": ""}
        with pytest.raises(NotFound):
            world.served("gadgets", LAB)
        await world.delete(PLURAL, CRD_NAME, GROUP)
        assert conditions(world.get(PLURAL, f"gadgets.{LAB}", GROUP))["Established"][0] == "True"
        assert world.served("gadgets", LAB).kind == "Widget"

    in_world(test)


def test_deleting_a_definition_deletes_its_objects_and_stops_serving() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        await world.create("widgets", widget(), LAB)
        answer = await world.delete(PLURAL, CRD_NAME, GROUP)
        assert conditions(answer)["Terminating"] == ("True", "InstanceDeletionPending")
        assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert world.names(PLURAL, GROUP) == []
        with pytest.raises(NotFound):
            world.served("widgets", LAB)
        await define(world, definition())
        assert world.names("widgets", LAB) == []

    in_world(test)


def test_a_definition_waits_for_objects_that_somebody_holds_back() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        await world.create("widgets", widget("free"), LAB)
        held = widget("held")
        held["metadata"]["finalizers"] = [f"{LAB}/hold"]
        await world.create("widgets", held, LAB)
        await world.delete(PLURAL, CRD_NAME, GROUP)
        crd = world.get(PLURAL, CRD_NAME, GROUP)
        assert conditions(crd)["Terminating"] == ("True", "InstanceDeletionInProgress")
        assert crd["metadata"]["generation"] == 1
        assert world.names("widgets", LAB) == ["held"]
        with pytest.raises(
            Forbidden, match=r"create not allowed while custom resource definition is terminating"
        ):
            await world.create("widgets", widget("late"), LAB)
        await world.patch("widgets", "held", {"metadata": {"finalizers": None}}, LAB)
        assert world.names(PLURAL, GROUP) == []
        with pytest.raises(NotFound):
            world.served("widgets", LAB)

    in_world(test)


def test_a_finalizer_of_a_custom_object_without_a_domain_is_a_warning() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        body = widget()
        body["metadata"]["finalizers"] = ["cleanup.lab"]
        result = await world.registry.create(world.served("widgets", LAB), "default", body)
        advice = (
            "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with"
        )
        assert result.warnings == [f'metadata.finalizers: "cleanup.lab": {advice} other finalizer writers']

    in_world(test)


def test_a_new_default_reaches_objects_that_are_there_already() -> None:
    async def test(world: World) -> None:
        await define(world, definition(with_spec(a={"type": "string"})))
        await world.create("widgets", widget(a="x"), LAB)
        await redefine(
            world, definition(with_spec(a={"type": "string"}, b={"type": "integer", "default": 7}))
        )
        after = world.get("widgets", "w", LAB)
        assert (after["spec"], after["metadata"]["generation"]) == ({"a": "x", "b": 7}, 1)

    in_world(test)


def test_a_stricter_schema_lets_old_values_be_but_no_new_ones_in() -> None:
    async def test(world: World) -> None:
        await define(world, definition(with_spec(a={"type": "string"}, b={"type": "integer"})))
        await world.create("widgets", widget(a="long", b=1), LAB)
        await redefine(
            world, definition(with_spec(a={"type": "string", "maxLength": 2}, b={"type": "integer"}))
        )
        assert (await world.patch("widgets", "w", {"spec": {"b": 2}}, LAB))["spec"] == {"a": "long", "b": 2}
        with pytest.raises(Invalid, match=r"spec.a: Too long: may not be more than 2 bytes"):
            await world.patch("widgets", "w", {"spec": {"a": "longer"}}, LAB)

    in_world(test)


def test_what_a_write_leaves_alone_is_taken_over_until_the_schema_changes() -> None:
    async def test(world: World) -> None:
        before_schema = with_spec(a={"type": "string"}, b={"type": "integer"})
        await define(world, definition(before_schema, subresources={"status": {}}))
        made = await world.create("widgets", widget(a="x", b=1), LAB)
        labelled = await world.patch("widgets", "w", {"metadata": {"labels": {"l": "m"}}}, LAB)
        reported = await world.patch("widgets", "w", {"status": {}}, LAB, subresource="status")
        assert labelled["spec"] is made["spec"] and reported["spec"] is made["spec"]
        assert list(labelled) == list(made)
        await redefine(world, definition(with_spec(a={"type": "string"}), subresources={"status": {}}))
        after = await world.patch("widgets", "w", {"metadata": {"labels": {"l": "n"}}}, LAB)
        assert (after["spec"], made["spec"]) == ({"a": "x"}, {"a": "x", "b": 1})

    in_world(test)


def two_versions(storage: str) -> JsonObject:
    crd = definition(with_spec(a={"type": "string"}))
    first = crd["spec"]["versions"][0]
    second_schema = {"openAPIV3Schema": with_spec(a={"type": "string", "maxLength": 3})}
    second = {**first, "name": "v2", "deprecated": True, "schema": second_schema}
    crd["spec"]["versions"] = [{**v, "storage": v["name"] == storage} for v in (first, second)]
    return crd


def test_every_version_shows_all_objects_and_checks_by_its_own_schema() -> None:
    async def test(world: World) -> None:
        await define(world, two_versions("v1"))
        await world.create("widgets", widget(a="abcdef"), LAB)
        second = world.served("widgets", LAB, "v2")
        assert second.info.deprecation_warning == "lab.example.com/v2 Widget is deprecated"
        assert world.registry.get(second, "default", "w").obj["apiVersion"] == "lab.example.com/v2"
        with pytest.raises(Invalid, match=r"spec.a: Too long"):
            await world.registry.create(second, "default", widget("x", version="v2", a="abcdef"))
        await world.registry.create(second, "default", widget("x", version="v2", a="abc"))
        assert world.get("widgets", "x", LAB)["apiVersion"] == "lab.example.com/v1"

    in_world(test)


def test_objects_follow_when_another_version_becomes_the_storage_version() -> None:
    async def test(world: World) -> None:
        await define(world, two_versions("v1"))
        await world.create("widgets", widget(a="abc"), LAB)
        crd = await redefine(world, two_versions("v2"))
        assert crd["status"]["storedVersions"] == ["v1", "v2"]
        for version in ("v1", "v2"):
            served = world.served("widgets", LAB, version)
            assert (
                world.registry.get(served, "default", "w").obj["apiVersion"] == f"lab.example.com/{version}"
            )

    in_world(test)


def test_a_watch_shows_each_version_as_it_was_asked_for_whatever_is_stored() -> None:
    async def test(world: World) -> None:
        await define(world, two_versions("v1"))
        asked = ("v1", "v2")
        options = ListOptions.parse({}, watch=True)
        streams = [world.registry.watch(world.served("widgets", LAB, one), "default", options) for one in asked]

        def shown() -> list[list[str]]:
            return [[event.stored.obj["apiVersion"] for event in stream.take_ready()] for stream in streams]

        await world.create("widgets", widget("a"), LAB)
        await world.create("widgets", widget("b"), LAB)
        assert shown() == [[f"{LAB}/v1"] * 2, [f"{LAB}/v2"] * 2]
        await redefine(world, two_versions("v2"))
        shown()
        streams = [world.registry.watch(world.served("widgets", LAB, one), "default", options) for one in asked]
        await world.create("widgets", widget("c"), LAB)
        assert shown() == [[f"{LAB}/v1"] * 3, [f"{LAB}/v2"] * 3]

    in_world(test)


def test_a_storage_version_need_not_be_served() -> None:
    async def test(world: World) -> None:
        crd = two_versions("v1")
        crd["spec"]["versions"][0]["served"] = False
        await define(world, crd)
        with pytest.raises(NotFound):
            world.served("widgets", LAB, "v1")
        served = world.served("widgets", LAB, "v2")
        created = await world.registry.create(served, "default", widget(version="v2", a="abc"))
        assert created.stored.obj["apiVersion"] == "lab.example.com/v2"

    in_world(test)


def test_a_definition_without_served_versions_shows_nothing() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        await world.create("widgets", widget(), LAB)
        crd = definition()
        crd["spec"]["versions"][0]["served"] = False
        await redefine(world, crd)
        assert LAB not in world.registry.table.groups()
        await redefine(world, definition())
        assert world.names("widgets", LAB) == ["w"]

    in_world(test)


def test_what_places_objects_in_the_store_cannot_change() -> None:
    async def test(world: World) -> None:
        await define(world, definition())
        for change, path in (
            ({"scope": "Cluster"}, "spec.scope"),
            ({"names": {"plural": "widgets", "kind": "Other"}}, "spec.names.kind"),
        ):
            crd = definition()
            crd["spec"].update(change)
            with pytest.raises(Invalid, match=f"{path}: Invalid value: .*field is immutable"):
                await redefine(world, crd)

    in_world(test)


def test_fields_that_a_definition_declares_selectable_can_be_selected() -> None:
    async def test(world: World) -> None:
        schema = with_spec(color={"type": "string"}, size={"type": "integer"})
        await define(world, definition(schema, selectableFields=[{"jsonPath": ".spec.color"}]))
        await world.create("widgets", widget("a", color="red"), LAB)
        await world.create("widgets", widget("b", color="blue"), LAB)
        assert world.names("widgets", LAB, fieldSelector="spec.color=red") == ["a"]
        with pytest.raises(BadRequest, match=r"field label not supported: spec.size"):
            world.names("widgets", LAB, fieldSelector="spec.size=1")

    in_world(test)


def test_a_scale_subresource_reads_and_writes_where_the_definition_says() -> None:
    async def test(world: World) -> None:
        scale = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
        schema = with_spec(count={"type": "integer"})
        await define(world, definition(schema, subresources={"status": {}, "scale": scale}))
        paths = world.registry.custom_resources.scale_paths(world.served("widgets", LAB))
        assert (paths.spec, paths.status, paths.selector) == (".spec.count", ".status.count", "")
        with pytest.raises(Invalid, match=r"should be a non-negative integer"):
            await world.create("widgets", widget(count=-1), LAB)

    in_world(test)
