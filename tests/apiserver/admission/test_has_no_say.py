"""A write that nobody has anything to say about is not shown to anybody; all others are."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.apiserver.admission.base import Attributes, Operation, Plugin
from holokube.apiserver.admission.chain import AdmissionChain
from holokube.kube.errors import ApiError
from tests.apiserver.worlds import World, in_world
from tests.builders import pod

QUOTA = {
    "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "other"},
    "spec": {"hard": {"pods": "1"}},
}  # fmt: skip
HOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "h"}, "webhooks": [{
        "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://h.example/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}],
    }],
}  # fmt: skip
WRITES: tuple[tuple[str, str, Operation, str], ...] = (
    ("pods", "", "UPDATE", "status"), ("pods", "", "CREATE", "eviction"), ("pods", "", "DELETE", ""),
    ("deployments", "apps", "UPDATE", "status"), ("nodes", "", "UPDATE", "status"),
)  # fmt: skip


def has_no_say(world: World, namespace: str = "default") -> list[bool]:
    found = []
    for plural, group, operation, subresource in WRITES:
        served = world.served(plural, group)
        where = namespace if served.namespaced else ""
        found.append(world.registry.admission.has_no_say(served, operation, subresource, where))
    return found


def test_frequent_writes_need_not_be_shown() -> None:
    async def body(world: World) -> None:
        assert all(has_no_say(world))

    in_world(body)


def test_pods_that_are_made_or_bound_and_namespaces_that_go_are_shown() -> None:
    async def body(world: World) -> None:
        ask = world.registry.admission.has_no_say
        assert not ask(world.served("pods"), "CREATE", "", "default")
        assert not ask(world.served("pods"), "CREATE", "binding", "default")
        assert not ask(world.served("namespaces"), "DELETE", "", "")
        with pytest.raises(ApiError, match="may not be deleted"):
            await world.delete("namespaces", "kube-system")

    in_world(body)


def test_a_namespace_that_is_not_there_or_goes_is_told_of() -> None:
    async def body(world: World) -> None:
        assert has_no_say(world, "nowhere") == [False, False, True, False, True]
        await world.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        assert all(has_no_say(world, "other"))
        await world.delete("namespaces", "other")
        assert world.get("namespaces", "other")["status"]["phase"] == "Terminating"
        assert has_no_say(world, "other") == [True, False, True, True, True]

    in_world(body)


def test_templates_are_shown_where_the_namespace_sets_a_standard_for_pods() -> None:
    async def body(world: World) -> None:
        jobs, ask = world.served("jobs", "batch"), world.registry.admission.has_no_say
        assert ask(jobs, "UPDATE", "", "default")
        assert not ask(world.served("namespaces"), "UPDATE", "", "")
        for level, is_unseen in (("baseline", False), (None, True), ("privileged", False)):
            labels = {"pod-security.kubernetes.io/warn": level}
            await world.patch("namespaces", "default", {"metadata": {"labels": labels}}, namespace="")
            assert ask(jobs, "UPDATE", "", "default") is is_unseen

    in_world(body)


def test_where_there_are_quotas_or_webhooks_everything_is_shown() -> None:
    async def body(world: World) -> None:
        await world.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        await world.create("resourcequotas", QUOTA)
        assert has_no_say(world) == [False, False, True, False, True]
        await world.delete("resourcequotas", "q", namespace="other")
        assert all(has_no_say(world))
        await world.create("validatingwebhookconfigurations", HOOK, "admissionregistration.k8s.io")
        assert not any(has_no_say(world))

    in_world(body)


def test_a_plugin_that_does_not_know_about_this_sees_every_write() -> None:
    class Seeing(Plugin):
        operations = frozenset({"UPDATE", "DELETE"})
        subresources = None
        seen: list[str] = []  # noqa: RUF012 - one test

        def validate(self, attributes: Attributes) -> None:
            self.seen.append(f"{attributes.operation} {attributes.subresource}".strip())

    async def body(world: World) -> None:
        world.registry.admission.add(Seeing())
        await world.create("pods", pod("p"))
        await world.patch("pods", "p", {"status": {"reason": "r"}}, subresource="status")
        await world.delete("pods", "p")
        assert Seeing.seen == ["UPDATE status", "DELETE"]

    in_world(body)


def test_what_passes_unseen_is_what_passes_when_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(world: World) -> list[Any]:
        await world.create("pods", pod("p"))
        patched = await world.patch("pods", "p", {"status": {"reason": "r"}}, subresource="status")
        return [patched, await world.delete("pods", "p")]

    unseen = in_world(life)
    monkeypatch.setattr(AdmissionChain, "has_no_say", lambda *_: False)
    assert unseen == in_world(life)
