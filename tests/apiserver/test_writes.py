from __future__ import annotations

import pytest

from holokube.kube.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from tests.apiserver.worlds import World, in_world
from tests.builders import config_map, deployment, lease, pod


def test_create_sets_what_the_server_owns() -> None:
    async def body(world: World) -> None:
        await world.clock.sleep(90)
        meta = (await world.create("configmaps", config_map()))["metadata"]
        assert meta["creationTimestamp"] == "2026-01-01T00:01:30Z"
        assert len(meta["uid"]) == 36
        assert int(meta["resourceVersion"]) == world.store.revision

    in_world(body)


def test_the_callers_object_is_left_alone() -> None:
    async def body(world: World) -> None:
        given = pod()
        before = repr(given)
        await world.create("pods", given)
        assert repr(given) == before

    in_world(body)


def test_generated_names_use_the_api_alphabet_and_are_cut_to_fit() -> None:
    async def body(world: World) -> None:
        given = config_map()
        given["metadata"] = {"generateName": "x" * 80, "namespace": "default"}
        name = (await world.create("configmaps", given))["metadata"]["name"]
        assert len(name) == 63
        assert set(name[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")

    in_world(body)


def test_a_taken_name_is_refused() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        with pytest.raises(AlreadyExists, match='configmaps "cm" already exists'):
            await world.create("configmaps", config_map())

    in_world(body)


def test_dry_run_changes_nothing() -> None:
    async def body(world: World) -> None:
        revision = world.store.revision
        shown = await world.create("configmaps", config_map(), dry_run=True)
        assert shown["metadata"]["uid"]
        assert world.store.revision == revision
        with pytest.raises(NotFound):
            world.get("configmaps", "cm")

    in_world(body)


def test_a_stale_update_conflicts_and_changes_nothing() -> None:
    async def body(world: World) -> None:
        first = await world.create("configmaps", config_map())
        await world.update("configmaps", {**first, "data": {"a": "2"}})
        with pytest.raises(Conflict, match="the object has been modified"):
            await world.update("configmaps", {**first, "data": {"a": "3"}})
        assert world.get("configmaps", "cm")["data"] == {"a": "2"}

    in_world(body)


def test_an_update_without_version_overwrites_where_the_kind_allows_it() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        await world.update("configmaps", config_map(a="2"))
        assert world.get("configmaps", "cm")["data"] == {"a": "2"}
        body_of_lease = lease()
        await world.create("leases", body_of_lease, "coordination.k8s.io")
        with pytest.raises(Invalid) as caught:
            await world.update("leases", body_of_lease, "coordination.k8s.io")
        assert caught.value.causes[0].field == "metadata.resourceVersion"

    in_world(body)


def test_a_write_that_changes_nothing_keeps_the_version_and_wakes_no_watcher() -> None:
    async def body(world: World) -> None:
        first = await world.create("configmaps", config_map())
        revision = world.store.revision
        again = await world.update("configmaps", first, field_manager="someone-else")
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert world.store.revision == revision

    in_world(body)


def test_generation_moves_with_the_spec_only() -> None:
    async def body(world: World) -> None:
        await world.create("deployments", deployment(), "apps")
        labelled = await world.patch("deployments", "d", {"metadata": {"labels": {"x": "y"}}}, "apps")
        assert labelled["metadata"]["generation"] == 1
        status = {"status": {"observedGeneration": 1}}
        reported = await world.patch("deployments", "d", status, "apps", subresource="status")
        assert reported["metadata"]["generation"] == 1
        scaled = await world.patch("deployments", "d", {"spec": {"replicas": 5}}, "apps")
        assert scaled["metadata"]["generation"] == 2

    in_world(body)


def test_spec_and_status_have_separate_doors() -> None:
    async def body(world: World) -> None:
        await world.create("deployments", deployment(), "apps")
        both = {"spec": {"replicas": 7}, "status": {"observedGeneration": 9}}
        through_main = await world.patch("deployments", "d", both, "apps")
        assert through_main["spec"]["replicas"] == 7
        assert "observedGeneration" not in through_main["status"]
        both["spec"]["replicas"] = 1
        through_status = await world.patch("deployments", "d", both, "apps", subresource="status")
        assert through_status["spec"]["replicas"] == 7
        assert through_status["status"]["observedGeneration"] == 9

    in_world(body)


def test_a_patch_cannot_make_it_another_object() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        with pytest.raises(Invalid) as caught:
            await world.patch("configmaps", "cm", {"metadata": {"uid": "other"}})
        assert [cause.field for cause in caught.value.causes] == ["metadata.uid"]
        kept = await world.patch("configmaps", "cm", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}})
        assert kept["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"

    in_world(body)


def test_the_name_of_the_body_must_be_the_name_of_the_path() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        with pytest.raises(BadRequest, match="does not match the name on the URL"):
            await world.patch("configmaps", "cm", {"metadata": {"name": "other"}})

    in_world(body)


def test_a_missing_lease_is_created_by_an_update_and_a_missing_configmap_is_not() -> None:
    async def body(world: World) -> None:
        body_of_lease = lease()
        assert (await world.update("leases", body_of_lease, "coordination.k8s.io"))["metadata"]["uid"]
        with pytest.raises(NotFound):
            await world.update("configmaps", config_map())

    in_world(body)


def test_objects_are_written_kind_first_as_lists_rely_on_it() -> None:
    async def body(world: World) -> None:
        given = {"data": {"a": "b"}, "metadata": {"name": "x", "namespace": "default"}}
        stored = await world.create("configmaps", given)
        assert list(stored)[:3] == ["kind", "apiVersion", "metadata"]

    in_world(body)


def test_who_set_what_is_recorded_per_manager_and_door() -> None:
    async def body(world: World) -> None:
        await world.create("deployments", deployment(), "apps", field_manager="creator")
        await world.patch("deployments", "d", {"spec": {"replicas": 4}}, "apps", field_manager="scaler")
        changed = await world.patch(
            "deployments", "d", {"status": {"replicas": 1}}, "apps", subresource="status", field_manager="controller"
        )
        entries = {entry["manager"]: entry for entry in changed["metadata"]["managedFields"]}
        assert entries["scaler"]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
        assert entries["controller"]["subresource"] == "status"
        assert "f:replicas" not in entries["creator"]["fieldsV1"]["f:spec"]

    in_world(body)
