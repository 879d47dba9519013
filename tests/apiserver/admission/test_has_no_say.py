"""A write that nobody has anything to say about is not shown to anybody; all others are."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import IN_PROCESS, Attributes, Operation, Plugin
from holokube.apiserver.admission.chain import AdmissionChain
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
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


KEYS = st.sampled_from([None, "a", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])
TOLERATIONS = st.lists(
    st.tuples(KEYS, st.sampled_from([None, "NoExecute", "NoSchedule"])).map(
        lambda each: {"operator": "Exists"} | ({"key": each[0]} if each[0] else {}) | (
            {"effect": each[1]} if each[1] else {})
    ), max_size=3,
)  # fmt: skip
LIMITS = {
    "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "2"}}]},
}  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(tolerations=TOLERATIONS, is_limited_first=st.booleans(), is_strict=st.booleans())
def test_those_who_leave_settled_pods_do_nothing_to_them(
    tolerations: list[JsonObject], is_limited_first: bool, is_strict: bool
) -> None:
    async def body(world: World) -> None:
        pods, admission = world.served("pods"), world.registry.admission
        if is_limited_first:
            await world.create("limitranges", LIMITS)
        await world.create("pods", pod("p", tolerations=tolerations))
        old = world.store.get("pods", "default/p")
        assert old is not None and old.settled
        if not is_limited_first:
            await world.create("limitranges", LIMITS)
        admission.strict_service_accounts = is_strict
        assert admission.has_no_say(pods, "UPDATE", "", "default", is_settled=True)
        assert not admission.has_no_say(pods, "UPDATE", "", "default")
        new = {**old.obj, "metadata": {**old.obj["metadata"], "labels": {"a": "b"}}}
        before = orjson.dumps(new)
        attributes = Attributes("UPDATE", pods, "default", "p", "", new, old.obj, IN_PROCESS, world.registry)
        assert admission.passes_as_it_was(attributes) and not attributes.warnings
        assert orjson.dumps(new) == before

    in_world(body)


def test_claims_and_other_plugins_are_shown_though_they_are_settled() -> None:
    async def body(world: World) -> None:
        claims, ask = world.served("persistentvolumeclaims"), world.registry.admission.has_no_say
        assert not ask(claims, "UPDATE", "", "default", is_settled=True)
        assert ask(world.served("pods"), "UPDATE", "", "default", is_settled=True)
        await world.create("resourcequotas", {**QUOTA, "metadata": {"name": "q", "namespace": "default"}})
        assert not ask(world.served("pods"), "UPDATE", "", "default", is_settled=True)

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
    monkeypatch.setattr(AdmissionChain, "has_no_say", lambda *_, **__: False)
    assert unseen == in_world(life)
