"""kr8s, sync and asyncio, against the embedded server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import kr8s
import kr8s.asyncio
import pytest
import yaml
from kr8s._async_utils import as_sync_func
from kr8s.asyncio.objects import Pod as AsyncPod
from kr8s.objects import ConfigMap, Deployment, Node, Pod, new_class

from tests.clients import manifests
from tests.clients.conftest import Embedded

# kr8s warns of every server that is newer than itself.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")


@pytest.fixture
def api(embedded: Embedded, namespace: str) -> Iterator[kr8s.Api]:
    found = kr8s.api(kubeconfig=str(embedded.kubeconfig(namespace)), namespace=namespace)
    yield found
    # kr8s never closes its connections, and pytest tells.
    as_sync_func(found._session.aclose)()


def test_objects_are_created_listed_patched_and_deleted(api: kr8s.Api, namespace: str) -> None:
    assert api.version()["major"] == "1" and api.whoami() == "holokube-admin"
    pod = Pod(yaml.safe_load(manifests.pod("one", "some-node")), namespace=namespace, api=api)
    pod.create()
    assert pod.exists() and pod.raw["spec"]["restartPolicy"] == "Always"
    pod.label(color="blue")
    pod.annotate({"note": "hello"})
    pod.patch({"metadata": {"labels": {"size": "big"}}})
    assert pod.labels == {"app": "one", "color": "blue", "size": "big"}
    assert [p.name for p in kr8s.get("pods", namespace=namespace, label_selector={"color": "blue"}, api=api)] == ["one"]
    assert [p.name for p in kr8s.get("pods", "one", namespace=namespace, api=api)] == ["one"]
    conditions = [{"type": kind, "status": "True"} for kind in ("ContainersReady", "Ready")]
    pod.patch({"status": {"phase": "Running", "conditions": conditions}}, subresource="status")
    pod.wait("condition=Ready", timeout=10)
    assert pod.ready() and "hollow" in "\n".join(pod.logs(container="main"))
    pod.delete(force=True)
    assert not pod.exists()


def test_deployments_scale_and_nodes_are_cordoned(api: kr8s.Api, namespace: str) -> None:
    deployment = Deployment(yaml.safe_load(manifests.DEPLOYMENT), namespace=namespace, api=api)
    deployment.create()
    deployment.patch({"spec": {"replicas": 4}}, subresource="scale")
    deployment.refresh()
    assert deployment.replicas == 4
    node = Node(yaml.safe_load(manifests.node(f"kr8s-{namespace}")), api=api)
    node.create()
    node.cordon()
    assert node.unschedulable
    node.uncordon()
    node.taint(key="a", value="b", effect="NoSchedule")
    node.delete()
    with pytest.raises(kr8s.NotFoundError):
        Node.get(f"kr8s-{namespace}", api=api)


def test_watches_and_custom_resources(api: kr8s.Api, namespace: str) -> None:
    group = f"{namespace}.example.com"
    definition = kr8s.objects.CustomResourceDefinition(yaml.safe_load(manifests.widgets(group)), api=api)
    definition.create()
    try:
        widget_class = new_class(kind="Widget", version=f"{group}/v1", namespaced=True, scalable=True)
        widget = widget_class({"metadata": {"name": "w"}, "spec": {"size": 2}}, namespace=namespace, api=api)
        widget.create()
        assert widget.spec.color == "red"
        widget.patch({"spec": {"size": 3}})
        found = list(kr8s.get(f"widgets.{group}", namespace=namespace, api=api))
        assert [item.raw["spec"]["size"] for item in found] == [3]
        widget.delete()
    finally:
        definition.delete()


def test_asyncio_watches_see_every_change(embedded: Embedded, namespace: str) -> None:
    async def main() -> list[tuple[str, str]]:
        api = await kr8s.asyncio.api(kubeconfig=str(embedded.kubeconfig(namespace)), namespace=namespace)
        seen: list[tuple[str, str]] = []
        started = asyncio.Event()

        async def follow() -> None:
            async for event, obj in api.watch("pods", namespace=namespace):
                seen.append((event, obj.name))
                started.set()
                if event == "DELETED":
                    return

        first = await AsyncPod(yaml.safe_load(manifests.pod("one", "n-1")), namespace=namespace, api=api)
        await first.create()
        follower = asyncio.create_task(follow())
        await asyncio.wait_for(started.wait(), 20)
        second = await AsyncPod(yaml.safe_load(manifests.pod("two", "n-1")), namespace=namespace, api=api)
        await second.create()
        await second.label(a="b")
        await second.delete(force=True)
        await asyncio.wait_for(follower, 20)
        await api._session.aclose()
        return seen

    assert asyncio.run(main()) == [
        ("ADDED", "one"), ("ADDED", "two"), ("MODIFIED", "two"), ("MODIFIED", "two"), ("DELETED", "two"),
    ]  # fmt: skip


def test_config_maps_round_trip(api: kr8s.Api, namespace: str) -> None:
    made = ConfigMap({"metadata": {"name": "c"}, "data": {"a": "b"}}, namespace=namespace, api=api)
    made.create()
    assert ConfigMap.get("c", namespace=namespace, api=api).data.a == "b"
    with pytest.raises(kr8s.ServerError) as twice:
        made.create()
    assert twice.value.status["reason"] == "AlreadyExists"
