from __future__ import annotations

import sys
from typing import Any

import pytest

from holokube.apiserver.admission.base import IN_PROCESS
from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import Forbidden, InternalError
from tests.apiserver.worlds import World

from .hook_server import SERVICE, HookServer, Review, answer, bundle, patched, sets_label
from .hooked_world import GROUP, configure, deny, run, write


@pytest.mark.parametrize(("namespace", "called"), [("chosen", True), ("default", False)])
def test_namespaces_are_selected_by_their_labels(namespace: str, called: bool) -> None:
    async def body(world: World, server: HookServer) -> None:
        labels = {"team": "a"}
        await world.create("namespaces", {"metadata": {"name": "chosen", "labels": labels}})
        await configure(
            world, "validating", server.webhook("allow", namespaceSelector={"matchLabels": labels})
        )
        await write(world, namespace=namespace)
        assert bool(server.asked) is called

    run(body)


def test_a_namespace_is_selected_by_its_own_labels_and_other_cluster_objects_always() -> None:
    async def body(world: World, server: HookServer) -> None:
        selector = {"matchLabels": {"team": "a"}}
        rule = {"resources": ["namespaces", "nodes"]}
        await configure(world, "validating", server.webhook("allow", namespaceSelector=selector, rule=rule))
        await world.create("namespaces", {"metadata": {"name": "other"}})
        assert server.asked == []
        await world.create("namespaces", {"metadata": {"name": "chosen", "labels": {"team": "a"}}})
        assert server.request()["namespace"] == "chosen"
        await world.create("nodes", {"metadata": {"name": "n"}})
        assert server.request()["name"] == "n"
        assert "namespace" not in server.request()

    run(body)


def test_objects_are_selected_by_new_or_old_labels() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(
            world, "validating", server.webhook("allow", objectSelector={"matchLabels": {"a": "b"}})
        )
        await write(world)
        assert server.asked == []
        await world.patch("configmaps", "cm", {"metadata": {"labels": {"a": "b"}}})
        await world.patch("configmaps", "cm", {"metadata": {"labels": None}})
        await world.patch("configmaps", "cm", {"data": {"x": "y"}})
        assert len(server.asked) == 2

    run(body)


@pytest.mark.parametrize(
    ("rule", "called"),
    [
        ({"resources": ["*"]}, True),
        ({"resources": ["*/*"]}, True),
        ({"resources": ["configmaps/*"]}, True),
        ({"resources": ["configmaps/status"]}, False),
        ({"apiGroups": ["*"], "apiVersions": ["*"]}, True),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v2"]}, False),
        ({"operations": ["UPDATE", "DELETE"]}, False),
        ({"operations": ["CREATE"]}, True),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"scope": "*"}, True),
    ],
)
def test_rules_say_what_a_webhook_wants(rule: dict[str, Any], called: bool) -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "validating", server.webhook("allow", rule=rule))
        await write(world)
        assert bool(server.asked) is called

    run(body)


def test_subresources_must_be_asked_for() -> None:
    async def body(world: World, server: HookServer) -> None:
        await world.create("pods", {"metadata": {"name": "p", "namespace": "default"},
                                    "spec": {"containers": [{"name": "c", "image": "i"}]}})  # fmt: skip
        await configure(
            world, "validating", server.webhook("allow", rule={"resources": ["pods/status", "pods/binding"]})
        )
        await world.patch("pods", "p", {"metadata": {"labels": {"a": "b"}}})
        assert server.asked == []
        await world.patch("pods", "p", {"status": {"message": "m"}}, subresource="status")
        assert (server.request()["subResource"], server.request()["kind"]["kind"]) == ("status", "Pod")
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        await world.registry.subresources.handle(
            world.served("pods"), "default", "p", "binding", "create", body=binding, content_type="",
            query={}, options=WriteOptions(), caller=IN_PROCESS,
        )  # fmt: skip
        assert (server.request()["subResource"], server.request()["kind"]["kind"]) == ("binding", "Binding")
        assert server.request()["object"]["target"]["name"] == "n"

    run(body)


def test_scaling_shows_and_lets_change_a_scale() -> None:
    async def cap(review: Review) -> Review:
        return patched(review, {"op": "replace", "path": "/spec/replicas", "value": 3})

    async def body(world: World, server: HookServer) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await world.create(
            "deployments", {"metadata": {"name": "d", "namespace": "default"}, "spec": spec}, "apps"
        )
        rule = {"apiGroups": ["apps"], "resources": ["deployments/scale"]}
        await configure(world, "mutating", server.webhook("cap", rule=rule))
        await world.registry.subresources.handle(
            world.served("deployments", "apps"), "default", "d", "scale", "patch",
            body={"spec": {"replicas": 9}}, content_type="application/merge-patch+json", query={},
            options=WriteOptions(), caller=IN_PROCESS,
        )  # fmt: skip
        assert server.request()["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        assert server.request()["object"]["spec"] == {"replicas": 9}
        assert server.request()["oldObject"]["spec"] == {"replicas": 1}
        assert world.get("deployments", "d", "apps")["spec"]["replicas"] == 3

    run(body, cap=cap)


TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
HPA = {
    "metadata": {"name": "h"},
    "spec": {
        "scaleTargetRef": TARGET,
        "maxReplicas": 5,
        "targetCPUUtilizationPercentage": 50,
    },
}


@pytest.mark.parametrize(("policy", "called"), [("Equivalent", True), ("Exact", False)])
def test_the_same_object_in_another_version_matches_only_as_equivalent(policy: str, called: bool) -> None:
    async def body(world: World, server: HookServer) -> None:
        rule = {
            "apiGroups": ["autoscaling"],
            "apiVersions": ["v2"],
            "resources": ["horizontalpodautoscalers"],
        }
        await configure(world, "validating", server.webhook("allow", matchPolicy=policy, rule=rule))
        served = world.served("horizontalpodautoscalers", "autoscaling", "v1")
        await world.registry.create(served, "default", HPA)
        assert bool(server.asked) is called
        if called:
            request = server.request()
            assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v2", "v1")
            assert request["object"]["apiVersion"] == "autoscaling/v2"
            assert request["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50

    run(body)


def test_what_a_webhook_changes_in_another_version_is_stored() -> None:
    async def raise_it(review: Review) -> Review:
        return patched(review, {"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 80})

    async def body(world: World, server: HookServer) -> None:
        rule = {
            "apiGroups": ["autoscaling"],
            "apiVersions": ["v1"],
            "resources": ["horizontalpodautoscalers"],
        }
        await configure(world, "mutating", server.webhook("raise_it", rule=rule))
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
        spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": [metric]}
        served = world.served("horizontalpodautoscalers", "autoscaling", "v2")
        stored = (
            await world.registry.create(served, "default", {"metadata": {"name": "h"}, "spec": spec})
        ).stored.obj
        assert server.request()["object"]["apiVersion"] == "autoscaling/v1"
        assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80

    run(body, raise_it=raise_it)


def _versions(*names: str) -> list[dict[str, Any]]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return [{"name": name, "served": True, "storage": name == "v2", "schema": schema} for name in names]


def test_custom_resources_have_webhooks_in_all_their_versions() -> None:
    async def paint(review: Review) -> Review:
        return patched(review, {"op": "add", "path": "/spec/color", "value": "red"})

    async def body(world: World, server: HookServer) -> None:
        names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
        spec = {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": _versions("v1", "v2"),
        }
        crd = {"metadata": {"name": "things.example.com"}, "spec": spec}
        await world.create("customresourcedefinitions", crd, "apiextensions.k8s.io")
        await world.clock.sleep(60)
        rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"]}
        await configure(world, "mutating", server.webhook("paint", rule=rule))
        thing = {
            "apiVersion": "example.com/v2",
            "kind": "Thing",
            "metadata": {"name": "t"},
            "spec": {"size": 1},
        }
        served = world.served("things", "example.com", "v2")
        stored = (await world.registry.create(served, "default", thing)).stored.obj
        assert server.request()["object"]["apiVersion"] == "example.com/v1"
        assert stored["apiVersion"] == "example.com/v2"
        assert stored["spec"] == {"size": 1, "color": "red"}

    run(body, paint=paint)


def test_warnings_reach_the_client() -> None:
    async def warn(review: Review) -> Review:
        return answer(review, warnings=["careful", "really"])

    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("warn"))
        await configure(world, "validating", server.webhook("warn"))
        assert (await write(world)).warnings == ["careful", "really"] * 2

    run(body, warn=warn)


def test_older_reviews_are_spoken_if_the_webhook_asks_for_them() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(
            world, "mutating", server.webhook("label", admissionReviewVersions=["v9", "v1beta1", "v1"])
        )
        assert (await write(world)).stored.obj["metadata"]["labels"] == {"a": "b"}
        assert server.asked[0][1]["apiVersion"] == "admission.k8s.io/v1beta1"

    run(body, label=sets_label("a", "b"))


def test_webhooks_have_no_say_about_webhooks() -> None:
    async def body(world: World, server: HookServer) -> None:
        everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
        await configure(world, "validating", server.webhook("deny", rule=everything))
        await configure(world, "mutating", server.webhook("deny", rule=everything))
        served = world.served("validatingwebhookconfigurations", GROUP)
        await world.registry.delete(served, "", "hooks")
        await world.registry.delete(world.served("mutatingwebhookconfigurations", GROUP), "", "hooks")
        await write(world)
        assert server.asked == []

    run(body, deny=deny())


def _by_service(server: HookServer, **more: Any) -> dict[str, Any]:
    namespace, name = SERVICE
    client = {
        "service": {"namespace": namespace, "name": name, "path": "/allow", **more},
        "caBundle": bundle(),
    }
    return server.webhook("allow", clientConfig=client)


async def _make_service(world: World, port_name: str = "") -> None:
    namespace, name = SERVICE
    await world.create("namespaces", {"metadata": {"name": namespace}})
    port = {"port": 443, **({"name": port_name} if port_name else {})}
    await world.create(
        "services", {"metadata": {"name": name, "namespace": namespace}, "spec": {"ports": [port]}}
    )


def test_a_service_is_found_by_the_resolver() -> None:
    async def body(world: World, server: HookServer) -> None:
        asked = []

        def resolver(namespace: str, name: str, port: int) -> tuple[str, int]:
            asked.append((namespace, name, port))
            return "127.0.0.1", server.port

        world.registry.admission.service_resolver = resolver
        await configure(world, "validating", _by_service(server))
        await write(world)
        assert asked == [(*SERVICE, 443)]
        assert server.hosts == ["hook.system.svc:443"]

    run(body)


@pytest.mark.parametrize("kind", ["endpoints", "endpointslices"])
def test_a_service_is_found_by_endpoints_on_this_machine(kind: str) -> None:
    async def body(world: World, server: HookServer) -> None:
        namespace, name = SERVICE
        await _make_service(world, "https")
        ports = [{"name": "metrics", "port": 1}, {"name": "https", "port": server.port}]
        meta = {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}}
        # Written past the API, which does not take loopback addresses in these.
        if kind == "endpoints":
            subsets = [{"addresses": [{"ip": "10.0.0.9"}, {"ip": "127.0.0.1"}], "ports": ports}]
            world.store.create("endpoints", "/".join(SERVICE), {"metadata": meta, "subsets": subsets})
        else:
            endpoints = [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
            obj = {"metadata": meta, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
            world.store.create("endpointslices.discovery.k8s.io", "/".join(SERVICE), obj)
        await configure(world, "validating", _by_service(server))
        await write(world)
        assert len(server.asked) == 1

    run(body)


@pytest.mark.parametrize(
    ("exists", "port", "why"),
    [
        (False, 443, 'service "hook" not found'),
        (True, 444, 'no service port 444 found for service "hook"'),
        (True, 443, 'no endpoints available for service "hook"'),
    ],
)
def test_a_service_that_leads_nowhere_is_a_failure(exists: bool, port: int, why: str) -> None:
    async def body(world: World, server: HookServer) -> None:
        if exists:
            await _make_service(world)
        await configure(world, "validating", _by_service(server, port=port))
        with pytest.raises(InternalError) as caught:
            await write(world)
        assert f'Post "https://hook.system.svc:{port}/allow?timeout=10s": {why}' in caught.value.message

    run(body)


CONDITIONS = [
    ("object.data.foo == 'bar'", True),
    ("object.data.foo == 'other'", False),
    ("request.operation == 'CREATE' && request.namespace == 'default'", True),
    ("oldObject != null", False),
]


@pytest.mark.parametrize(("expression", "called"), CONDITIONS)
def test_conditions_decide_whether_a_webhook_is_called(expression: str, called: bool) -> None:
    pytest.importorskip("cel")

    async def body(world: World, server: HookServer) -> None:
        conditions = [{"name": "c", "expression": expression}]
        await configure(world, "validating", server.webhook("allow", matchConditions=conditions))
        await write(world)
        assert bool(server.asked) is called

    run(body)


def test_a_condition_that_fails_is_a_matter_of_the_failure_policy() -> None:
    pytest.importorskip("cel")

    async def body(world: World, server: HookServer) -> None:
        conditions = [{"name": "c", "expression": "object.zzz == 'x'"}]
        await configure(
            world, "validating", server.webhook("allow", matchConditions=conditions, failurePolicy="Ignore")
        )
        await write(world, dry_run=True)
        assert server.asked == []
        await configure(world, "validating", server.webhook("allow", matchConditions=conditions), name="more")
        with pytest.raises(Forbidden) as caught:
            await write(world)
        assert caught.value.message == (
            "configmaps \"cm\" is forbidden: expression 'object.zzz == 'x'' resulted in error: "
            "no such key: zzz"
        )

    run(body)


def test_without_cel_a_condition_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel", None)

    async def body(world: World, server: HookServer) -> None:
        conditions = [{"name": "c", "expression": "true"}]
        await configure(world, "validating", server.webhook("allow", matchConditions=conditions))
        with pytest.raises(Forbidden, match=r"holokube\[cel\]"):
            await write(world)

    run(body)
