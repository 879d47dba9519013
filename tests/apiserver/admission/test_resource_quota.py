from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import World, in_world
from tests.builders import config_map


async def counted(world: World, hard: dict[str, str], name: str = "rq", **spec: Any) -> None:
    """A quota whose usage has been counted, as the quota controller would."""
    meta = {"name": name, "namespace": "default"}
    await world.create("resourcequotas", {"metadata": meta, "spec": {"hard": hard, **spec}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    await world.update("resourcequotas", {"metadata": meta, "status": status}, subresource="status")


def used(world: World, name: str = "rq") -> dict[str, str]:
    found: dict[str, str] = world.get("resourcequotas", name)["status"]["used"]
    return found


def sized_pod(name: str, cpu: str) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}


def test_what_is_created_is_charged_and_marked_as_the_servers_own_writing() -> None:
    async def body(world: World) -> None:
        await counted(world, {"pods": "2", "requests.cpu": "2"})
        await world.create("pods", sized_pod("a", "750m"))
        await world.create("pods", sized_pod("b", "500m"))
        assert used(world) == {"pods": "2", "requests.cpu": "1250m"}
        owners = world.get("resourcequotas", "rq")["metadata"]["managedFields"]
        assert any(
            one["manager"] == "kube-apiserver" and one.get("subresource") == "status" for one in owners
        )

    in_world(body)


def test_a_refused_write_is_charged_nowhere() -> None:
    async def body(world: World) -> None:
        await counted(world, {"pods": "5"}, "a-wide")
        await counted(world, {"requests.cpu": "1"}, "b-narrow")
        with pytest.raises(
            Forbidden, match=r"exceeded quota: b-narrow, requested: requests\.cpu=2, used: requests\.cpu=0"
        ):
            await world.create("pods", sized_pod("p", "2"))
        assert (used(world, "a-wide"), used(world, "b-narrow")) == ({"pods": "0"}, {"requests.cpu": "0"})

    in_world(body)


def test_a_taken_name_is_not_charged() -> None:
    async def body(world: World) -> None:
        await world.create("configmaps", config_map())
        await counted(world, {"configmaps": "5"})
        with pytest.raises(AlreadyExists):
            await world.create("configmaps", config_map())
        assert used(world) == {"configmaps": "0"}

    in_world(body)


def test_an_invalid_object_is_not_charged() -> None:
    async def body(world: World) -> None:
        await counted(world, {"configmaps": "5"})
        with pytest.raises(Invalid):
            await world.create("configmaps", {"metadata": {"name": "NOT A NAME", "namespace": "default"}})
        assert used(world) == {"configmaps": "0"}

    in_world(body)


def test_a_dry_run_is_checked_and_not_charged() -> None:
    async def body(world: World) -> None:
        await counted(world, {"configmaps": "1"})
        await world.create("configmaps", config_map(), dry_run=True)
        assert used(world) == {"configmaps": "0"}
        await world.create("configmaps", config_map())
        with pytest.raises(Forbidden):
            await world.create("configmaps", config_map("other"), dry_run=True)

    in_world(body)


def test_updates_are_charged_for_what_they_add_and_give_nothing_back() -> None:
    async def body(world: World) -> None:
        await counted(world, {"services.nodeports": "2"})
        meta = {"name": "s", "namespace": "default"}
        ports = [{"name": n, "port": i + 1} for i, n in enumerate("abc")]
        service = {"metadata": meta, "spec": {"type": "ClusterIP", "ports": ports[:2]}}
        await world.create("services", service)
        assert used(world) == {"services.nodeports": "0"}
        await world.patch("services", "s", {"spec": {"type": "NodePort"}})
        assert used(world) == {"services.nodeports": "2"}
        with pytest.raises(Forbidden, match=r"requested: services.nodeports=1, used: services.nodeports=2"):
            await world.patch("services", "s", {"spec": {"ports": ports}})
        await world.patch("services", "s", {"spec": {"type": "ClusterIP"}})
        assert used(world) == {"services.nodeports": "2"}

    in_world(body)


def test_a_stale_update_is_not_charged() -> None:
    async def body(world: World) -> None:
        await counted(world, {"services.nodeports": "2"})
        meta = {"name": "s", "namespace": "default"}
        stored = await world.create("services", {"metadata": meta, "spec": {"ports": [{"port": 1}]}})
        await world.patch("services", "s", {"metadata": {"labels": {"a": "b"}}})
        stale = {**stored, "spec": {**stored["spec"], "type": "NodePort"}}
        with pytest.raises(Conflict):
            await world.update("services", stale)
        assert used(world) == {"services.nodeports": "0"}

    in_world(body)


def test_deletes_are_left_to_the_quota_controller() -> None:
    async def body(world: World) -> None:
        await counted(world, {"configmaps": "1"})
        await world.create("configmaps", config_map())
        await world.delete("configmaps", "cm")
        assert used(world) == {"configmaps": "1"}

    in_world(body)


def test_quotas_of_other_namespaces_do_not_count() -> None:
    async def body(world: World) -> None:
        await counted(world, {"configmaps": "0"})
        await world.create("namespaces", {"metadata": {"name": "free"}})
        await world.create("configmaps", config_map(namespace="free"))

    in_world(body)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 900), min_size=1, max_size=12))
def test_writes_at_the_same_time_never_use_more_than_there_is(milli: list[int]) -> None:
    async def body(world: World) -> None:
        await counted(world, {"requests.cpu": "2", "pods": "6"})
        served = world.served("pods")

        async def create(index: int, amount: int) -> int:
            try:
                await world.registry.create(
                    served, "default", sized_pod(f"p{index}", f"{amount}m"), WriteOptions()
                )
            except Forbidden:
                return 0
            return amount

        accepted = await asyncio.gather(*(create(i, amount) for i, amount in enumerate(milli)))
        cpu = sum(accepted)
        assert cpu <= 2000
        assert len(world.names("pods")) == sum(1 for amount in accepted if amount) <= 6
        from holokube.kube import quantity

        assert quantity.parse(used(world)["requests.cpu"]).milli() == cpu

    in_world(body)


@pytest.mark.parametrize(
    ("spec", "hard", "requested"),
    [
        ({"initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "3"}}}]},
         "requests.cpu", "3"),
        ({"resources": {"requests": {"cpu": "5"}}}, "requests.cpu", "5"),
        ({"containers": [{"name": "c", "image": "i", "resources": {
            "requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}, "limits": {"hugepages-2Mi": "4Mi"}}}]},
         "requests.hugepages-2Mi", "4Mi"),
    ],
)  # fmt: skip
def test_pods_count_with_all_they_ask_for(spec: dict[str, Any], hard: str, requested: str) -> None:
    async def body(world: World) -> None:
        await counted(world, {hard: "0"})
        pod = sized_pod("p", "1")
        pod["spec"].update(spec)
        if "initContainers" in spec:
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        with pytest.raises(
            ApiError, match=f"requested: {hard}={requested}, used: {hard}=0, limited: {hard}=0"
        ):
            await world.create("pods", pod)

    in_world(body)


def test_pods_that_look_into_other_namespaces_have_a_scope_of_their_own() -> None:
    async def body(world: World) -> None:
        await counted(world, {"pods": "0"}, scopes=["CrossNamespacePodAffinity"])
        pod = sized_pod("p", "1")
        await world.create("pods", pod)
        term = {"labelSelector": {}, "topologyKey": "zone", "namespaceSelector": {}}
        rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        with pytest.raises(Forbidden, match="exceeded quota"):
            await world.create("pods", {**pod, "metadata": {"name": "q", "namespace": "default"},
                                        "spec": {**pod["spec"], "affinity": rules}})  # fmt: skip

    in_world(body)
