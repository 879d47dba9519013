from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from holokube.base.errors import TransportError, UsageError
from holokube.client.client import Client
from holokube.client.discovery import Discovery
from holokube.client.resources import DEPLOYMENTS, EVENTS, EVENTS_V1, NODES, PODS, Resource
from holokube.kube.errors import NotFound, ServiceUnavailable

from .test_client import Noting


def described(name: str, kind: str, namespaced: bool = True, **more: Any) -> dict[str, Any]:
    named = {"name": name, "singularName": kind.lower(), "kind": kind}
    return {**named, "namespaced": namespaced, "verbs": ["get"], **more}


def group(name: str, *versions: str, preferred: str) -> dict[str, Any]:
    listed = [{"version": version, "groupVersion": f"{name}/{version}"} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": {"version": preferred}}


class Serving(Noting):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.paths: dict[str, Any] = {
            "/api": {"versions": ["v1"]},
            "/api/v1": {
                "resources": [
                    described("pods", "Pod", shortNames=["po"], categories=["all"]),
                    described("pods/status", "Pod"),
                    described("pods/log", "Pod"),
                    described("nodes", "Node", False, shortNames=["no"]),
                    described("events", "Event", shortNames=["ev"]),
                ]
            },
            "/apis": {
                "groups": [
                    group("apps", "v1", preferred="v1"),
                    group("events.k8s.io", "v1", preferred="v1"),
                    group("karpenter.sh", "v1beta1", "v1", preferred="v1"),
                    group("metrics.k8s.io", "v1beta1", preferred="v1beta1"),
                ]
            },
            "/apis/apps/v1": {"resources": [described("deployments", "Deployment", shortNames=["deploy"])]},
            "/apis/events.k8s.io/v1": {"resources": [described("events", "Event", shortNames=["ev"])]},
            "/apis/karpenter.sh/v1": {"resources": [described("nodepools", "NodePool", False)]},
            "/apis/karpenter.sh/v1beta1": {"resources": [described("nodepools", "NodePool", False)]},
            "/apis/metrics.k8s.io/v1beta1": ServiceUnavailable("the server is currently unable"),
        }

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "",
    ) -> Any:
        self.asked.append(path)
        answer = self.paths.get(path, NotFound(path))
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(test: Callable[[Discovery], Awaitable[None]], server: Serving | None = None) -> Serving:
    server = server or Serving()

    async def main() -> None:
        await test(Discovery(Client(server)))

    asyncio.run(main())
    return server


NODE_POOLS = Resource("karpenter.sh", "v1", "nodepools", "NodePool", False)


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("po", PODS), ("pod", PODS), ("pods", PODS), ("Pod", PODS), ("pods.v1", PODS),
        ("no", NODES), ("deploy", DEPLOYMENTS), ("deployments.apps", DEPLOYMENTS),
        ("deployment.v1.apps", DEPLOYMENTS), ("events", EVENTS), ("events.events.k8s.io", EVENTS_V1),
        ("ev.v1.events.k8s.io", EVENTS_V1), ("nodepools", NODE_POOLS), ("nodepool.karpenter.sh", NODE_POOLS),
        (
            "nodepools.v1beta1.karpenter.sh",
            Resource("karpenter.sh", "v1beta1", "nodepools", "NodePool", False),
        ),
    ],
)  # fmt: skip
def test_a_resource_is_found_by_any_of_its_names(name: str, resource: Resource) -> None:
    async def test(discovery: Discovery) -> None:
        assert await discovery.find(name) == resource

    run(test)


def test_subresources_and_verbs_are_known() -> None:
    async def test(discovery: Discovery) -> None:
        found = await discovery.describe("pods")
        assert found.subresources == ("status", "log")
        assert (found.verbs, found.categories) == (("get",), ("all",))
        assert [item.resource.plural for item in await discovery.all()].count("pods") == 1

    run(test)


def test_objects_lead_to_their_resource_in_their_version() -> None:
    async def test(discovery: Discovery) -> None:
        found = await discovery.for_object({"apiVersion": "karpenter.sh/v1", "kind": "NodePool"})
        assert found == NODE_POOLS
        with pytest.raises(UsageError, match=r"kind 'NodePool' in version 'karpenter\.sh/v2'"):
            await discovery.for_object({"apiVersion": "karpenter.sh/v2", "kind": "NodePool"})

    run(test)


def test_an_unknown_name_is_refused_and_broken_groups_are_mentioned() -> None:
    async def test(discovery: Discovery) -> None:
        with pytest.raises(UsageError, match=r"'widgets' \(could not ask metrics\.k8s\.io/v1beta1\)"):
            await discovery.find("widgets")
        with pytest.raises(UsageError):
            await discovery.find("pods.apps")

    run(test)


def test_the_server_is_asked_once_and_again_for_what_is_new() -> None:
    server = Serving()

    async def test(discovery: Discovery) -> None:
        await asyncio.gather(discovery.find("po"), discovery.find("no"))
        assert len(server.asked) == 8
        server.paths["/apis/apps/v1"]["resources"].append(described("widgets", "Widget"))
        assert (await discovery.find("widgets")).kind == "Widget"
        assert len(server.asked) == 16

    run(test, server)


def test_a_server_that_does_not_answer_is_not_an_empty_one() -> None:
    server = Serving()
    server.paths["/api"] = TransportError("no answer")

    async def test(discovery: Discovery) -> None:
        with pytest.raises(TransportError):
            await discovery.find("pods")

    run(test, server)


def test_a_server_with_the_core_group_alone_is_fine() -> None:
    server = Serving()
    del server.paths["/apis"]

    async def test(discovery: Discovery) -> None:
        assert await discovery.find("pods") == PODS

    run(test, server)


def test_group_versions_that_did_not_answer_are_told_with_the_reason_until_they_do() -> None:
    server = Serving()
    broken = "/apis/metrics.k8s.io/v1beta1"

    async def test(discovery: Discovery) -> None:
        assert discovery.failed == {}
        assert await discovery.find("pods") == PODS
        assert discovery.failed == {"metrics.k8s.io/v1beta1": "the server is currently unable"}
        server.paths[broken] = {"resources": []}
        discovery.forget()
        await discovery.all()
        assert discovery.failed == {}

    run(test, server)


@pytest.mark.parametrize("answers_at_once", [False, True])
def test_the_same_answers_say_that_nothing_has_changed(answers_at_once: bool) -> None:
    class Quick(Serving):
        def __init__(self) -> None:
            super().__init__()
            self.answers_at_once = answers_at_once

    server = Quick()
    server.paths["/apis/metrics.k8s.io/v1beta1"] = {"resources": []}

    async def test(discovery: Discovery) -> None:
        first = await discovery.all()
        discovery.forget()
        assert await discovery.all() is first and len(server.asked) == 10
        server.paths["/apis"] = {"groups": [group("apps", "v1", preferred="v1")]}
        discovery.forget()
        assert [found.resource.plural for found in await discovery.all()] == ["pods", "nodes", "events", "deployments"]

    run(test, server)
