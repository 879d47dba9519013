from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from aiohttp import web

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.options import DeleteOptions
from holokube.base.clock import WallClock
from holokube.kube.errors import ApiError, BadRequest, InternalError, Invalid
from tests.apiserver.worlds import World

from .hook_server import HookServer, Review, answer, bundle, patched, serving, sets_label
from .hooked_world import GROUP, allow, configure, deny, run, write


def test_a_mutating_webhook_changes_the_object() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("label"))
        assert (await write(world)).stored.obj["metadata"]["labels"] == {"a": "b"}
        assert world.get("configmaps", "cm")["metadata"]["labels"] == {"a": "b"}

    run(body, label=sets_label("a", "b"))


def test_a_webhook_is_told_all_about_the_request() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "validating", server.webhook("allow", timeoutSeconds=7))
        await write(world)
        review = server.asked[0][1]
        request = review["request"]
        assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert server.urls == ["/allow?timeout=7s"]
        assert (
            request["kind"] == request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        )
        assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
        assert (request["name"], request["namespace"], request["operation"]) == ("cm", "default", "CREATE")
        assert request["object"]["data"] == {"foo": "bar"}
        assert (request["object"]["kind"], request["object"]["apiVersion"]) == ("ConfigMap", "v1")
        assert request["oldObject"] is None
        assert request["dryRun"] is False
        assert request["options"]["kind"] == "CreateOptions"
        assert request["userInfo"]["username"] == "system:holokube"
        assert "subResource" not in request

    run(body)


def test_updates_and_deletes_show_the_old_object() -> None:
    async def body(world: World, server: HookServer) -> None:
        await write(world)
        await configure(world, "validating", server.webhook("allow"))
        await world.patch("configmaps", "cm", {"data": {"foo": "new"}})
        assert server.request()["operation"] == "UPDATE"
        assert server.request()["oldObject"]["data"] == {"foo": "bar"}
        assert server.request()["object"]["data"] == {"foo": "new"}
        await world.registry.delete(world.served("configmaps"), "default", "cm", DeleteOptions())
        assert server.request()["operation"] == "DELETE"
        assert server.request()["object"] is None
        assert server.request()["oldObject"]["data"] == {"foo": "new"}

    run(body)


def test_a_patched_object_is_decoded_and_defaulted_again() -> None:
    async def add_port(review: Review) -> Review:
        return patched(
            review, {"op": "add", "path": "/spec/ports/-", "value": {"name": "b", "port": 2, "bogus": 1}}
        )

    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("add_port", rule={"resources": ["services"]}))
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"name": "a", "port": 1}]}}
        stored = (await world.registry.create(world.served("services"), "default", service)).stored.obj
        assert stored["spec"]["ports"][1]["protocol"] == "TCP"
        assert "bogus" not in stored["spec"]["ports"][1]

    run(body, add_port=add_port)


def test_mutations_are_validated() -> None:
    async def break_it(review: Review) -> Review:
        return patched(review, {"op": "add", "path": "/metadata/labels", "value": {"a": "not a label!"}})

    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("break_it"))
        with pytest.raises(Invalid, match=r"metadata\.labels"):
            await write(world)

    run(body, break_it=break_it)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ({}, 400, 'admission webhook "deny.example.com" denied the request without explanation'),
        ({"message": "no", "code": 418}, 418, 'admission webhook "deny.example.com" denied the request: no'),
        ({"reason": "NoWay"}, 400, 'admission webhook "deny.example.com" denied the request: NoWay'),
        ({"message": "m", "code": 200}, 400, 'admission webhook "deny.example.com" denied the request: m'),
    ],
)
@pytest.mark.parametrize("sort", ["mutating", "validating"])
def test_a_refusal_names_the_webhook(sort: str, status: dict[str, Any], code: int, message: str) -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, sort, server.webhook("deny"))
        with pytest.raises(ApiError) as caught:
            await write(world)
        assert (caught.value.http_code, caught.value.message) == (code, message)

    run(body, deny=deny(**status))


def test_the_details_of_a_refusal_are_passed_on() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "validating", server.webhook("deny"))
        with pytest.raises(Invalid) as caught:
            await write(world)
        assert caught.value.to_status()["details"] == {"causes": [{"field": "f", "message": "m"}]}

    run(body, deny=deny(code=422, reason="Invalid", details={"causes": [{"field": "f", "message": "m"}]}))


@pytest.mark.parametrize("sort", ["mutating", "validating"])
def test_a_webhook_that_takes_too_long_fails_the_write(sort: str) -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, sort, server.webhook("hang", timeoutSeconds=2))
        with pytest.raises(InternalError) as caught:
            await write(world)
        assert caught.value.message == (
            'Internal error occurred: failed calling webhook "hang.example.com": failed to call webhook: '
            f'Post "https://127.0.0.1:{server.port}/hang?timeout=2s": context deadline exceeded'
        )

    run(body)


@pytest.mark.parametrize("sort", ["mutating", "validating"])
def test_failures_can_be_ignored(sort: str) -> None:
    async def body(world: World, server: HookServer) -> None:
        webhooks = [server.webhook("hang", failurePolicy="Ignore"), server.webhook("allow")]
        await configure(world, sort, *webhooks)
        await write(world)
        assert sorted(server.paths) == ["allow", "hang"]

    run(body)


def test_refusals_cannot_be_ignored() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "validating", server.webhook("deny", failurePolicy="Ignore"))
        with pytest.raises(ApiError, match="denied the request"):
            await write(world)

    run(body, deny=deny())


async def _boom(review: Review) -> web.Response:
    return web.Response(status=500, text="boom")


async def _lost(review: Review) -> web.Response:
    return web.Response(status=404)


async def _array(review: Review) -> list[Any]:
    return []


async def _empty(review: Review) -> Review:
    return {}


async def _other_kind(review: Review) -> Review:
    return {"kind": "Foo", "apiVersion": "v1"}


async def _old_version(review: Review) -> Review:
    return {**answer(review), "apiVersion": "admission.k8s.io/v1beta1"}


async def _other_uid(review: Review) -> Review:
    return answer(review, uid="other")


async def _no_patch_type(review: Review) -> Review:
    return answer(review, patch=base64.b64encode(b"[]").decode())


async def _no_patch(review: Review) -> Review:
    return answer(review, patchType="JSONPatch")


async def _merge_patch(review: Review) -> Review:
    review = patched(review, {"op": "remove", "path": "/data"})
    review["response"]["patchType"] = "Merge"
    return review


async def _no_operations(review: Review) -> Review:
    return answer(review, patchType="JSONPatch", patch=base64.b64encode(b"{}").decode())


async def _not_base64(review: Review) -> Review:
    return answer(review, patchType="JSONPatch", patch="%%%")


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (
            _boom,
            'failed to call webhook: an error on the server ("boom") has prevented the request',
        ),
        (_lost, "failed to call webhook: the server could not find the requested resource"),
        (_array, "failed to call webhook: couldn't get version/kind; json parse error"),
        (_empty, "received invalid webhook response: webhook response was absent"),
        (_other_kind, 'failed to call webhook: no kind "Foo" is registered for version "v1"'),
        (
            _old_version,
            "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview)",
        ),
        (_other_uid, "received invalid webhook response: expected response.uid="),
        (_no_patch_type, "received invalid webhook response: webhook returned response.patch but not"),
        (
            _no_patch,
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
        (_merge_patch, 'unsupported patch type "Merge"'),
        (_no_operations, "received undecodable patch in webhook response"),
        (_not_base64, "received invalid webhook response: response.patch is not base64-encoded"),
    ],
)
def test_answers_that_break_the_protocol_are_failures(handler: Any, why: str) -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("x"))
        with pytest.raises(InternalError) as caught:
            await write(world)
        assert f'failed calling webhook "x.example.com": {why}' in caught.value.message

    run(body, x=handler)


@pytest.mark.parametrize("operation", [
    {"op": "replace", "path": "/nope/x", "value": 1},
    {"op": "replace", "path": "/data", "value": 5},
    {"op": "dance"},
    7,
])  # fmt: skip
def test_a_patch_that_does_not_apply_fails_the_write(operation: Any) -> None:
    async def bad(review: Review) -> Review:
        return patched(review, operation)

    async def body(world: World, server: HookServer) -> None:
        # Not even failurePolicy helps: the webhook did answer.
        await configure(world, "mutating", server.webhook("bad", failurePolicy="Ignore"))
        with pytest.raises(InternalError, match="Internal error occurred"):
            await write(world)

    run(body, bad=bad)


def test_a_validating_webhook_may_not_patch() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "validating", server.webhook("label"))
        with pytest.raises(InternalError, match=r"validating webhook may not return response\.patch"):
            await write(world)

    run(body, label=sets_label("a", "b"))


def test_a_delete_cannot_be_patched() -> None:
    async def patch(review: Review) -> Review:
        return patched(review, {"op": "add", "path": "/x", "value": 1})

    async def body(world: World, server: HookServer) -> None:
        await write(world)
        await configure(world, "mutating", server.webhook("patch", rule={"operations": ["DELETE"]}))
        with pytest.raises(InternalError, match="attempted to modify the object, which is not supported"):
            await world.registry.delete(world.served("configmaps"), "default", "cm")

    run(body, patch=patch)


def test_the_certificate_must_be_of_the_given_authority() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(
            world, "validating", server.webhook("allow", clientConfig=server.client("allow", "another-ca"))
        )
        with pytest.raises(InternalError, match="x509: certificate signed by unknown authority"):
            await write(world)
        assert server.asked == []

    run(body)


def test_without_a_bundle_the_systems_authorities_count() -> None:
    async def body(world: World, server: HookServer) -> None:
        client = {"url": server.client("allow")["url"]}
        await configure(world, "validating", server.webhook("allow", clientConfig=client))
        with pytest.raises(InternalError, match="x509: certificate signed by unknown authority"):
            await write(world)

    run(body)


def test_nobody_listening_is_a_failure() -> None:
    async def body(world: World, server: HookServer) -> None:
        client = {"url": "https://127.0.0.1:1/x", "caBundle": bundle()}
        await configure(world, "validating", server.webhook("allow", clientConfig=client))
        with pytest.raises(InternalError, match=r"dial tcp 127\.0\.0\.1:1: connect: connection refused"):
            await write(world)

    run(body)


def test_mutating_webhooks_run_one_after_the_other_by_name_of_their_configuration() -> None:
    def mark(name: str) -> Any:
        async def handle(review: Review) -> Review:
            so_far = review["request"]["object"]["data"].get("seen", "")
            return patched(review, {"op": "add", "path": "/data/seen", "value": so_far + name})

        return handle

    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("c"), name="z")
        await configure(world, "mutating", server.webhook("b"), server.webhook("a"), name="a")
        assert (await write(world)).stored.obj["data"]["seen"] == "bac"

    run(body, a=mark("a"), b=mark("b"), c=mark("c"))


def test_validating_webhooks_run_at_the_same_time() -> None:
    async def body(world: World, server: HookServer) -> None:
        meeting = asyncio.Barrier(2)

        async def meet(review: Review) -> Review:
            await meeting.wait()
            return answer(review)

        server._handlers = {"a": meet, "b": meet}
        await configure(world, "validating", server.webhook("a"), server.webhook("b"))
        await write(world)
        assert len(server.asked) == 2

    run(body)


def test_a_webhook_that_needs_it_is_called_again_after_others_changed_the_object() -> None:
    async def body(world: World, server: HookServer) -> None:
        webhooks = [
            server.webhook("look", reinvocationPolicy="IfNeeded"),
            server.webhook("once"),
            server.webhook("label"),
        ]
        await configure(world, "mutating", *webhooks)
        await write(world)
        assert server.paths == ["look", "once", "label", "look"]
        assert server.request()["object"]["metadata"]["labels"] == {"a": "b"}

    run(body, look=allow, once=allow, label=sets_label("a", "b"))


def test_a_webhook_is_not_called_again_for_its_own_change() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("label", reinvocationPolicy="IfNeeded"))
        await write(world)
        assert server.paths == ["label"]

    run(body, label=sets_label("a", "b"))


def test_plugins_run_again_after_a_webhook_changed_the_object() -> None:
    async def tolerate_nothing(review: Review) -> Review:
        return patched(review, {"op": "remove", "path": "/spec/tolerations"})

    async def body(world: World, server: HookServer) -> None:
        await configure(world, "mutating", server.webhook("strip", rule={"resources": ["pods"]}))
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        stored = (await world.registry.create(world.served("pods"), "default", pod)).stored.obj
        assert len(stored["spec"]["tolerations"]) == 2

    run(body, strip=tolerate_nothing)


@pytest.mark.parametrize("sort", ["mutating", "validating"])
def test_a_dry_run_calls_only_webhooks_without_side_effects(sort: str) -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, sort, server.webhook("allow", sideEffects="NoneOnDryRun"))
        await write(world, dry_run=True)
        assert server.request()["dryRun"] is True
        # Written past the API, which has not taken this for years; old objects may still say it.
        old = {
            "metadata": {"name": "old"},
            "webhooks": [server.webhook("allow", name="x.example.com", sideEffects="Some")],
        }
        world.store.create(f"{sort}webhookconfigurations.{GROUP}", "old", old)
        with pytest.raises(BadRequest, match=r'admission webhook "x\.example\.com" does not support dry run'):
            await write(world, dry_run=True)

    run(body)


def test_changed_configurations_count_at_once() -> None:
    async def body(world: World, server: HookServer) -> None:
        await configure(world, "validating", server.webhook("deny"))
        with pytest.raises(ApiError, match="denied"):
            await write(world)
        served = world.served("validatingwebhookconfigurations", GROUP)
        meta = world.get("validatingwebhookconfigurations", "hooks", GROUP)["metadata"]
        allowing = {"metadata": meta, "webhooks": [server.webhook("allow")]}
        await world.registry.update(served, "", "hooks", allowing)
        await write(world)
        await world.registry.delete(served, "", "hooks")
        asked = len(server.asked)
        await write(world, metadata={"name": "other"})
        assert len(server.asked) == asked

    run(body, deny=deny())


def test_each_event_loop_has_connections_of_its_own() -> None:
    world = World(WallClock())  # type: ignore[arg-type]  # any clock will do

    async def main(name: str) -> None:
        await bootstrap(world.registry)
        async with serving(allow=allow) as server:
            await configure(world, "validating", server.webhook("allow"), name=name)
            await write(world, metadata={"name": name})
            assert server.paths == ["allow"]
            await world.registry.delete(world.served("validatingwebhookconfigurations", GROUP), "", name)

    asyncio.run(main("first"))
    asyncio.run(main("second"))
    asyncio.run(world.registry.close())


def test_connections_are_kept_on_the_wall_clock_and_closed_with_the_registry() -> None:
    async def main() -> None:
        world = World(WallClock())  # type: ignore[arg-type]  # any clock will do
        await bootstrap(world.registry)
        async with serving(allow=allow) as server:
            await configure(world, "validating", server.webhook("allow"))
            await write(world)
            await write(world, metadata={"name": "second"})
            assert len(server.asked) == 2
            await world.registry.close()
            # A closed registry that is used again just connects again.
            await write(world, metadata={"name": "third"})
            await world.registry.close()

    asyncio.run(main())
