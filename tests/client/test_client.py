from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from holokube.client.client import Client, PatchType
from holokube.client.resources import (
    BUILT_IN,
    CLUSTER_ROLES,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PODS,
    Resource,
    built_in_for,
)
from holokube.client.transport import Call, WatchEvent
from holokube.kube.errors import Expired

JsonObject = dict[str, Any]


class Noting:
    """A transport that keeps the calls and gives prepared answers."""

    def __init__(self, *answers: Any) -> None:
        self.calls: list[Call] = []
        self.answers = list(answers)
        self.events: list[WatchEvent] = []
        self.stream_closed = False

    async def call(self, call: Call) -> JsonObject:
        self.calls.append(call)
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self.calls.append(call)
        try:
            for event in self.events:
                yield event
        finally:
            self.stream_closed = True

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "",
    ) -> Any:
        return method, path, query, body

    async def close(self) -> None:
        self.answers.append("closed")


def call_of(use: Callable[[Client], Awaitable[Any]]) -> Call:
    transport = Noting()
    asyncio.run(_await(use(Client(transport))))
    (call,) = transport.calls
    return call


async def _await(work: Awaitable[Any]) -> Any:
    return await work


def test_paths_of_resources() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path(namespace="a", name="b", subresource="log") == "/api/v1/namespaces/a/pods/b/log"
    assert NODES.path(namespace="ignored", name="n") == "/api/v1/nodes/n"
    assert DEPLOYMENTS.path(namespace="a") == "/apis/apps/v1/namespaces/a/deployments"
    assert CLUSTER_ROLES.path(name="system:node") == (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
    )
    assert PODS.path(namespace="a", name="../x y") == "/api/v1/namespaces/a/pods/..%2Fx%20y"
    assert NODES.path(name="n", subresource="proxy/metrics/cadvisor") == (
        "/api/v1/nodes/n/proxy/metrics/cadvisor"
    )


def test_built_in_resources_are_found_by_their_objects() -> None:
    assert len(BUILT_IN) > 50
    assert built_in_for({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}) is LEASES
    assert built_in_for({"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}) is None
    assert str(DEPLOYMENTS) == "deployments.v1.apps"
    assert len({(r.group, r.plural) for r in BUILT_IN}) == len(BUILT_IN)


def test_a_binding_names_pod_and_node() -> None:
    call = call_of(lambda client: client.bind("ns", "p", "n", uid="u"))
    assert (call.verb, call.path) == ("create", "/api/v1/namespaces/ns/pods/p/binding")
    assert call.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }


def test_an_eviction_carries_its_options() -> None:
    call = call_of(lambda client: client.evict("ns", "p", grace_s=5, uid="u", dry_run=True))
    assert call.path == "/api/v1/namespaces/ns/pods/p/eviction"
    assert call.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "ns"},
        "deleteOptions": {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 5,
            "preconditions": {"uid": "u"},
            "dryRun": ["All"],
        },
    }
    assert "deleteOptions" not in call_of(lambda client: client.evict("ns", "p")).body


def test_apply_sends_the_whole_object_under_a_manager() -> None:
    obj = {"metadata": {"name": "d", "namespace": "ns"}, "spec": {"replicas": 2}}
    call = call_of(lambda client: client.apply(DEPLOYMENTS, obj, field_manager="me", force=True))
    assert (call.verb, call.namespace, call.name) == ("patch", "ns", "d")
    assert call.content_type == PatchType.APPLY.value == "application/apply-patch+yaml"
    assert call.query == {"fieldManager": "me", "force": "true"}
    assert call.body == {"apiVersion": "apps/v1", "kind": "Deployment", **obj}


def test_scale_keeps_its_own_kind() -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": "ns"}}
    call = call_of(lambda client: client.update_scale(DEPLOYMENTS, "d", scale, "ns"))
    assert (call.verb, call.subresource, call.body) == ("update", "scale", scale)
    call = call_of(lambda client: client.get_scale(DEPLOYMENTS, "d", "ns"))
    assert call.path == "/apis/apps/v1/namespaces/ns/deployments/d/scale"


def test_status_patches_go_to_the_subresource() -> None:
    call = call_of(
        lambda client: client.patch_status(PODS, "p", {"status": {}}, namespace="ns", type=PatchType.STRATEGIC)
    )
    assert (call.subresource, call.content_type) == ("status", "application/strategic-merge-patch+json")
    assert str(call) == "patch pods/status ns/p"


def test_a_plain_delete_has_no_body() -> None:
    assert call_of(lambda client: client.delete(NODES, "n")).body is None
    call = call_of(lambda client: client.delete(NODES, "n", propagation="Foreground", resource_version="7"))
    assert call.body["propagationPolicy"] == "Foreground"
    assert call.body["preconditions"] == {"resourceVersion": "7"}


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.get(PODS, "p"),
        lambda client: client.delete(PODS, "p"),
        lambda client: client.create(PODS, {"metadata": {"name": "p"}}),
        lambda client: client.delete_collection(PODS),
        lambda client: client.delete(PODS, "", "ns"),
        lambda client: client.update(NODES, {"metadata": {}}),
    ],
)
def test_a_call_that_would_address_the_wrong_thing_is_not_sent(
    use: Callable[[Client], Awaitable[Any]],
) -> None:
    transport = Noting()
    with pytest.raises(ValueError, match=r"namespace is needed|name is empty"):
        asyncio.run(_await(use(Client(transport))))
    assert transport.calls == []


def test_lists_are_read_page_by_page() -> None:
    def page(name: str, token: str) -> JsonObject:
        meta = {"resourceVersion": "9", "continue": token}
        return {"metadata": meta, "items": [{"metadata": {"name": name}}]}

    transport = Noting(page("a", "t1"), page("b", "t2"), page("c", ""))
    client = Client(transport)
    listed = asyncio.run(_await(client.list_all(PODS, "ns", label_selector="x", resource_version="0")))
    assert [item["metadata"]["name"] for item in listed.items] == ["a", "b", "c"]
    assert all(item["kind"] == "Pod" for item in listed.items)
    assert listed.resource_version == "9"
    assert [dict(call.query) for call in transport.calls] == [
        {"labelSelector": "x", "limit": "500", "resourceVersion": "0"},
        {"labelSelector": "x", "limit": "500", "continue": "t1"},
        {"labelSelector": "x", "limit": "500", "continue": "t2"},
    ]


def test_a_first_page_that_is_too_old_is_not_hidden() -> None:
    transport = Noting(Expired("too old"))
    with pytest.raises(Expired):
        asyncio.run(_await(Client(transport).list_all(PODS, resource_version="3")))


def test_list_results_say_what_is_left() -> None:
    answer = {"metadata": {"resourceVersion": "3", "continue": "t", "remainingItemCount": 8}, "items": None}
    listed = asyncio.run(_await(Client(Noting(answer)).list(PODS, limit=1)))
    assert (listed.items, listed.continue_, listed.remaining) == ([], "t", 8)


def test_a_watch_asks_for_what_it_is_told_and_closes_its_stream() -> None:
    transport = Noting()
    transport.events = [WatchEvent("ADDED", {}), WatchEvent("ADDED", {})]

    async def main() -> None:
        stream = Client(transport).watch(
            PODS, bookmarks=False, send_initial_events=True, field_selector="a=b"
        )
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator

    asyncio.run(main())
    assert transport.stream_closed
    (call,) = transport.calls
    assert call.verb == "watch"
    assert dict(call.query) == {
        "fieldSelector": "a=b",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }


def test_cluster_scoped_calls_carry_no_namespace() -> None:
    custom = Resource("karpenter.sh", "v1", "nodepools", "NodePool", False)
    call = call_of(lambda client: client.create(custom, {"metadata": {"name": "x"}}, "ignored"))
    assert call.namespace == ""
    assert call.path == "/apis/karpenter.sh/v1/nodepools"
