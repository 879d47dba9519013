from __future__ import annotations

import pytest

from holokube.apiserver.options import ListOptions
from holokube.kube.errors import Conflict, NotFound
from tests.apiserver.worlds import World, in_world
from tests.builders import config_map, pod


def test_a_plain_object_goes_at_once() -> None:
    async def body(world: World) -> None:
        created = await world.create("configmaps", config_map())
        answer = await world.delete("configmaps", "cm")
        assert answer["status"] == "Success"
        assert answer["details"] == {"name": "cm", "kind": "configmaps", "uid": created["metadata"]["uid"]}
        with pytest.raises(NotFound):
            world.get("configmaps", "cm")

    in_world(body)


def test_a_finalizer_keeps_the_object_until_it_is_removed() -> None:
    async def body(world: World) -> None:
        given = config_map()
        given["metadata"]["finalizers"] = ["example.com/wait"]
        await world.create("configmaps", given)
        await world.delete("configmaps", "cm")
        assert world.get("configmaps", "cm")["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
        await world.patch("configmaps", "cm", {"metadata": {"finalizers": None}})
        with pytest.raises(NotFound):
            world.get("configmaps", "cm")

    in_world(body)


def test_a_running_pod_lingers_for_its_grace_period() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod(node="n"))
        await world.delete("pods", "p")
        meta = world.get("pods", "p")["metadata"]
        assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:30Z", 30)

    in_world(body)


def test_a_second_delete_can_only_shorten_the_grace_period() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod(node="n"))
        await world.delete("pods", "p")
        await world.delete("pods", "p", grace_period_s=100)
        assert world.get("pods", "p")["metadata"]["deletionGracePeriodSeconds"] == 30
        await world.delete("pods", "p", grace_period_s=10)
        meta = world.get("pods", "p")["metadata"]
        assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:10Z", 10)
        await world.delete("pods", "p", grace_period_s=0)
        with pytest.raises(NotFound):
            world.get("pods", "p")

    in_world(body)


def test_an_unbound_pod_goes_at_once() -> None:
    async def body(world: World) -> None:
        await world.create("pods", pod())
        gone = await world.delete("pods", "p")
        assert gone["kind"] == "Pod"
        assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
        with pytest.raises(NotFound):
            world.get("pods", "p")

    in_world(body)


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Orphan", "orphan"), ("Foreground", "foregroundDeletion"), ("Background", None)]
)
def test_propagation_is_asked_for_by_a_finalizer(policy: str, finalizer: str | None) -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        await world.delete("configmaps", "cm", propagation=policy)
        if finalizer is None:
            with pytest.raises(NotFound):
                world.get("configmaps", "cm")
        else:
            assert world.get("configmaps", "cm")["metadata"]["finalizers"] == [finalizer]

    in_world(body)


@pytest.mark.parametrize("precondition", [{"uid": "other"}, {"resource_version": "1"}])
def test_a_broken_precondition_conflicts(precondition: dict[str, str]) -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        with pytest.raises(Conflict, match="in the precondition"):
            await world.delete("configmaps", "cm", **precondition)
        assert world.get("configmaps", "cm")

    in_world(body)


def test_a_dry_run_deletes_nothing() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        await world.delete("configmaps", "cm", dry_run=True)
        assert world.get("configmaps", "cm")

    in_world(body)


def test_a_collection_is_deleted_by_selector() -> None:
    async def body(world: World) -> None:
        for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
            await world.create("configmaps", config_map(name, labels={"app": app}))
        served = world.served("configmaps")
        selector = ListOptions.parse({"labelSelector": "app=x"}, watch=False)
        gone = await world.registry.delete_collection(served, "default", selector)
        assert [stored.obj["metadata"]["name"] for stored in gone.items] == ["a", "c"]
        assert world.names("configmaps", namespace="default") == ["b"]

    in_world(body)
