"""The official Python client, asyncio flavour."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import yaml
from kubernetes.aio import client, config, dynamic, watch
from kubernetes.aio.client.exceptions import ApiException

from tests.clients import manifests
from tests.clients.conftest import Embedded

Body = Callable[[client.ApiClient], Awaitable[None]]


def run(server: Embedded, body: Body) -> None:
    async def main() -> None:
        async with await config.new_client_from_config(str(server.kubeconfig())) as api:
            await body(api)

    asyncio.run(main())


def test_pods_are_created_watched_patched_and_deleted(embedded: Embedded, namespace: str) -> None:
    async def body(api: client.ApiClient) -> None:
        core = client.CoreV1Api(api)
        listed = await core.list_namespaced_pod(namespace)
        seen: list[tuple[str, str]] = []

        async def follow() -> None:
            async with watch.Watch() as watcher:
                stream = watcher.stream(
                    core.list_namespaced_pod, namespace, resource_version=listed.metadata.resource_version
                )
                async for event in stream:
                    seen.append((event["type"], event["object"].metadata.name))
                    if len(seen) == 13:
                        return

        follower = asyncio.create_task(follow())
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await asyncio.gather(
            *(
                core.create_namespaced_pod(namespace, {"metadata": {"name": f"p-{n}"}, "spec": spec})
                for n in range(10)
            )
        )
        patched = await core.patch_namespaced_pod("p-3", namespace, {"metadata": {"labels": {"a": "b"}}})
        assert patched.metadata.labels == {"a": "b"}
        await core.delete_namespaced_pod("p-3", namespace, grace_period_seconds=0)
        await asyncio.wait_for(follower, 20)
        assert sorted(seen[:10]) == [("ADDED", f"p-{n}") for n in range(10)]
        assert seen[10:] == [("MODIFIED", "p-3"), ("MODIFIED", "p-3"), ("DELETED", "p-3")]
        assert len((await core.list_namespaced_pod(namespace)).items) == 9
        with pytest.raises(ApiException) as missing:
            await core.read_namespaced_pod("p-3", namespace)
        assert missing.value.status == 404

    run(embedded, body)


def test_a_watch_from_long_ago_is_told_so(forgetful: Embedded) -> None:
    async def body(api: client.ApiClient) -> None:
        core = client.CoreV1Api(api)
        old = (await core.list_namespaced_secret("default")).metadata.resource_version
        for number in range(30):
            await core.create_namespaced_secret("default", {"metadata": {"name": f"s-{number}"}})

        async def follow() -> None:
            async with watch.Watch() as watcher:
                stream = watcher.stream(
                    core.list_namespaced_secret, "default", resource_version=old, timeout_seconds=5
                )
                async for _ in stream:
                    pass

        with pytest.raises(ApiException) as gone:
            await follow()
        assert gone.value.status == 410

    run(forgetful, body)


def test_the_dynamic_client_works_on_custom_resources(embedded: Embedded, namespace: str) -> None:
    group = f"{namespace}.example.com"

    async def body(api: client.ApiClient) -> None:
        cluster = await dynamic.DynamicClient(api)
        definitions = await cluster.resources.get(
            api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
        )
        await definitions.create(body=yaml.safe_load(manifests.widgets(group)))
        try:
            cluster = await dynamic.DynamicClient(api)
            widgets = await cluster.resources.get(api_version=f"{group}/v1", kind="Widget")
            made = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
            created = await widgets.create(body=made, namespace=namespace)
            assert created.spec.color == "red"
            await widgets.patch(
                name="w", namespace=namespace, body={"spec": {"size": 4}}, content_type="application/merge-patch+json"
            )
            found = await widgets.get(name="w", namespace=namespace)
            assert found.spec.size == 4 and found.metadata.generation == 2
            await widgets.delete(name="w", namespace=namespace)
        finally:
            await definitions.delete(name=f"widgets.{group}")

    run(embedded, body)
