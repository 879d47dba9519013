"""The client against the real kube-apiserver: what mocks cannot vouch for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holokube.base.clock import WallClock
from holokube.client.client import Client, PatchType
from holokube.client.discovery import Discovery
from holokube.client.http import HttpTransport
from holokube.client.informer import Informer
from holokube.client.kubeconfig import load_access
from holokube.client.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, LEASES, NAMESPACES, NODES
from holokube.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from holokube.testing.controlplane import ControlPlane

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.client.example"},
    "spec": {
        "group": "client.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


def run(plane: ControlPlane, test: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        access = load_access(str(plane.kubeconfig))
        async with Client(HttpTransport(WallClock(), access)) as client:
            async with asyncio.timeout(30):
                await test(client)

    asyncio.run(main())


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def test_objects_live_through_every_verb(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "verbs"}})
        made = await client.create(CONFIG_MAPS, config_map("a", k="1"), "verbs", field_manager="test")
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, config_map("a"), "verbs")
        await client.update(CONFIG_MAPS, {**made, "data": {"k": "2"}}, "verbs")
        with pytest.raises(Conflict):
            await client.update(CONFIG_MAPS, {**made, "data": {"k": "3"}}, "verbs")
        patched = await client.patch(CONFIG_MAPS, "a", {"data": {"j": "x"}}, namespace="verbs")
        assert patched["data"] == {"k": "2", "j": "x"}
        patched = await client.patch(
            CONFIG_MAPS, "a", [{"op": "remove", "path": "/data/j"}], namespace="verbs", type=PatchType.JSON
        )
        assert patched["data"] == {"k": "2"}
        applied = await client.apply(
            CONFIG_MAPS, config_map("b", z="1"), namespace="verbs", field_manager="applier"
        )
        assert applied["metadata"]["managedFields"][0]["operation"] == "Apply"
        with pytest.raises(Invalid) as caught:
            await client.create(CONFIG_MAPS, config_map("Not A Name"), "verbs")
        assert caught.value.causes[0].field == "metadata.name"
        with pytest.raises(Conflict):
            await client.delete(CONFIG_MAPS, "a", "verbs", uid="not-this-one")
        await client.delete(CONFIG_MAPS, "a", "verbs", uid=made["metadata"]["uid"])
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "a", "verbs")
        await client.delete_collection(CONFIG_MAPS, "verbs", field_selector="metadata.name=b")
        assert (await client.list(CONFIG_MAPS, "verbs", field_selector="metadata.name=b")).items == []
        node = await client.create(NODES, {"metadata": {"name": "verbs-node"}})
        status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        node = await client.patch_status(NODES, "verbs-node", status, type=PatchType.STRATEGIC)
        assert node["status"]["conditions"][0]["type"] == "Ready"
        await client.delete(NODES, "verbs-node")
        assert await client.request("GET", "/readyz") == "ok"

    run(real_apiserver, test)


@pytest.mark.parametrize("watch_list", [False, True])
def test_an_informer_follows_the_server(real_apiserver: ControlPlane, watch_list: bool) -> None:
    space = f"informer-{str(watch_list).lower()}"

    async def test(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": space}})
        lease = {"spec": {"holderIdentity": "x"}}
        await asyncio.gather(
            *(client.create(LEASES, {"metadata": {"name": f"l{i:02}"}, **lease}, space) for i in range(25))
        )
        events: list[tuple[str, str]] = []
        three = asyncio.Event()

        def note(kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
            events.append((kind, (new or old or {})["metadata"]["name"]))
            if len(events) == 3:
                three.set()

        informer = Informer(WallClock(), client, LEASES, namespace=space, page_size=10, watch_list=watch_list)
        informer.add_handler(note)
        informer.start()
        await informer.synced()
        assert len(informer.lister) == 25
        events.clear()
        three.clear()
        await client.patch(LEASES, "l00", {"spec": {"holderIdentity": "y"}}, namespace=space)
        await client.delete(LEASES, "l01", space)
        await client.create(LEASES, {"metadata": {"name": "l99"}, **lease}, space)
        await three.wait()
        assert events == [("MODIFIED", "l00"), ("DELETED", "l01"), ("ADDED", "l99")]
        listed = await client.list_all(LEASES, space, page_size=7)
        assert {i["metadata"]["name"]: i for i in listed.items} == {
            i["metadata"]["name"]: i for i in informer.lister
        }
        await informer.stop()

    run(real_apiserver, test)


def test_custom_resources_are_discovered(real_apiserver: ControlPlane) -> None:
    async def test(client: Client) -> None:
        discovery = Discovery(client)
        assert (await discovery.find("deploy")).api_version == "apps/v1"
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        widgets = None
        while widgets is None:
            discovery.forget()
            known = await discovery.all()
            widgets = next((item.resource for item in known if "wd" in item.short_names), None)
        assert await discovery.find("Widget.client.example") == widgets
        await client.create(widgets, {"metadata": {"name": "w"}, "spec": {"any": ["thing"]}}, "default")
        assert await discovery.for_object({"apiVersion": "client.example/v1", "kind": "Widget"}) == widgets
        found = await client.get(widgets, "w", "default")
        assert found["spec"] == {"any": ["thing"]}
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.client.example")

    run(real_apiserver, test)
