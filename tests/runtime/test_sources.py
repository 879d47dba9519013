from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.client.audience import LABELS
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import CONFIG_MAPS, PODS
from holokube.runtime.sources import (
    Change,
    InformerRunner,
    InformerSource,
    Need,
    annotations_changed,
    any_of,
    enqueue_owner,
    enqueue_self,
    generation_changed,
    labels_changed,
    not_,
    resource_version_changed,
    split_key,
)
from holokube.runtime.stop import StopSignal
from tests.runtime.fakes import FakeTransport


def owned(*owners: dict[str, Any], namespace: str = "shop") -> dict[str, Any]:
    return {"metadata": {"name": "pod", "namespace": namespace, "ownerReferences": list(owners)}}


def test_owners_are_found_by_kind_group_and_controller_flag() -> None:
    web = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    watcher = {"apiVersion": "apps/v1beta1", "kind": "ReplicaSet", "name": "watcher"}
    foreign = {"apiVersion": "example.com/v1", "kind": "ReplicaSet", "name": "foreign", "controller": True}
    node = {"apiVersion": "v1", "kind": "Node", "name": "n1", "controller": True}
    pod = owned(web, watcher, foreign, node)
    assert enqueue_owner("ReplicaSet")(pod) == ["shop/web", "shop/foreign"]
    assert enqueue_owner("ReplicaSet", group="apps")(pod) == ["shop/web"]
    every_owner = enqueue_owner("ReplicaSet", group="apps", only_controller=False)
    assert every_owner(pod) == ["shop/web", "shop/watcher"]
    assert enqueue_owner("Node", group="", cluster_scoped=True)(pod) == ["n1"]
    assert enqueue_owner("Job")({"metadata": {"name": "x"}}) == []


def test_keys_are_split_into_namespace_and_name() -> None:
    assert split_key("shop/web") == ("shop", "web")
    assert split_key("node-1") == ("", "node-1")


def test_predicates_pass_adds_deletes_and_the_changes_they_are_named_for() -> None:
    def obj(**meta: Any) -> dict[str, Any]:
        return {"metadata": {"name": "a", **meta}}

    old = obj(generation=1, resourceVersion="1", labels={"a": "1"}, annotations={})
    touched = obj(generation=1, resourceVersion="2", labels={"a": "1"}, annotations={"n": "1"})
    for predicate in (generation_changed, resource_version_changed, labels_changed, annotations_changed):
        assert predicate(Change(None, old))
        assert predicate(Change(old, None))
        assert not predicate(Change(old, old))
    assert not generation_changed(Change(old, touched))
    assert not labels_changed(Change(old, touched))
    assert annotations_changed(Change(old, touched))
    assert resource_version_changed(Change(old, touched))
    assert any_of(labels_changed, annotations_changed)(Change(old, touched))
    assert not_(labels_changed)(Change(old, touched))
    assert Change(None, old).added
    assert Change(old, None).deleted
    assert Change(old, None).object is old


def pod(name: str, owner: str = "", **meta: Any) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": True}
    owners = [reference] if owner else []
    return {"metadata": {"name": name, "namespace": "shop", "ownerReferences": owners, **meta}}


def test_an_informer_source_feeds_what_exists_then_changes_until_stopped() -> None:
    async def main(clock: VirtualClock) -> None:
        client = Client(FakeTransport(clock))
        await client.create(PODS, pod("a"), "shop")
        informer = Informer(clock, client, PODS)
        runner = InformerRunner("caches", [informer])
        assert runner.check() == "1 informers not started yet: [pods.v1]"
        stop = StopSignal()
        running = asyncio.create_task(runner.run(stop))
        source = InformerSource(informer, enqueue_self, predicates=[not_(lambda change: change.deleted)])
        fed: list[str] = []
        source.start(fed.append)
        await source.wait_synced()
        assert runner.check() is None
        await client.create(PODS, pod("b"), "shop")
        await clock.sleep(1)
        await client.delete(PODS, "a", "shop")
        await clock.sleep(1)
        assert fed == ["shop/a", "shop/b"]
        source.stop()
        await client.create(PODS, pod("c"), "shop")
        await clock.sleep(1)
        assert fed == ["shop/a", "shop/b"]
        source.start(fed.append)
        assert fed[2:] == ["shop/b", "shop/c"]
        with pytest.raises(RuntimeError, match="sources of its own"):
            source.start(fed.append)
        stop.set()
        await running

    run_virtual(main)


def test_a_change_of_owner_concerns_both_owners() -> None:
    async def main(clock: VirtualClock) -> None:
        client = Client(FakeTransport(clock))
        created = await client.create(PODS, pod("a", owner="old"), "shop")
        informer = Informer(clock, client, PODS)
        informer.start()
        source = InformerSource(informer, enqueue_owner("ReplicaSet"))
        fed: list[str] = []
        source.start(fed.append)
        await source.wait_synced()
        moved = pod("a", owner="new", uid=created["metadata"]["uid"])
        await client.update(PODS, moved, "shop")
        await clock.sleep(1)
        assert fed == ["shop/old", "shop/old", "shop/new"]
        await informer.stop()

    run_virtual(main)


def test_what_does_not_concern_a_source_goes_no_further() -> None:
    async def main(clock: VirtualClock) -> None:
        client = Client(FakeTransport(clock))
        informer = Informer(clock, client, PODS)
        informer.start()
        asked: list[tuple[bool, bool]] = []

        def concerns(old: dict[str, Any] | None, new: dict[str, Any] | None) -> bool:
            asked.append((old is not None, new is not None))
            return new is not None and new["metadata"]["name"] == "b"

        source = InformerSource(informer, enqueue_self, concerns=concerns)
        fed: list[str] = []
        source.start(fed.append)
        await source.wait_synced()
        for name in ("a", "b"):
            await client.create(PODS, pod(name), "shop")
        await clock.sleep(1)
        await client.delete(PODS, "b", "shop")
        await clock.sleep(1)
        assert fed == ["shop/b"]
        assert asked == [(False, True), (False, True), (True, False)]
        await informer.stop()

    run_virtual(main)


def test_a_source_whose_need_is_not_met_hears_of_nothing() -> None:
    async def main(clock: VirtualClock) -> None:
        client = Client(FakeTransport(clock))
        pods, maps = Informer(clock, client, PODS), Informer(clock, client, CONFIG_MAPS)
        asked: list[str] = []

        def concerns(_old: dict[str, Any] | None, new: dict[str, Any] | None) -> bool:
            asked.append("gone" if new is None else new["metadata"]["name"])
            return True

        source = InformerSource(
            pods, enqueue_self, concerns=concerns, needs=Need(maps, lambda: len(maps.lister) > 0)
        )
        fed: list[str] = []
        source.start(fed.append)
        for informer in (pods, maps):
            informer.start()
            await informer.synced()
        await client.create(PODS, pod("a"), "shop")
        await clock.sleep(1)
        assert asked == []
        await client.create(CONFIG_MAPS, {"metadata": {"name": "m", "namespace": "shop"}}, "shop")
        await clock.sleep(1)
        await client.create(PODS, pod("b"), "shop")
        await clock.sleep(1)
        assert (asked, fed) == (["b"], ["shop/b"])
        await client.delete(CONFIG_MAPS, "m", "shop")
        await clock.sleep(1)
        await client.create(PODS, pod("c"), "shop")
        await clock.sleep(1)
        assert asked == ["b"]
        source.stop()
        for informer in (pods, maps):
            await informer.stop()

    run_virtual(main)


def test_a_source_hears_only_of_what_it_heeds_and_of_children_of_its_kind() -> None:
    async def main(clock: VirtualClock) -> None:
        client = Client(FakeTransport(clock))
        informer = Informer(clock, client, PODS)
        informer.start()
        source = InformerSource(
            informer, enqueue_self, heeds=LABELS, controlled_by=("apps", "ReplicaSet")
        )
        fed: list[str] = []
        source.start(fed.append)
        await source.wait_synced()
        for name, kind in (("mine", "ReplicaSet"), ("other", "Job")):
            created = await client.create(PODS, _controlled(name, kind), "shop")
            await clock.sleep(1)
            for labels in ({}, {}, {"a": "x"}):
                changed = _controlled(name, kind, uid=created["metadata"]["uid"], labels=labels)
                await client.update(PODS, changed, "shop")
                await clock.sleep(1)
        await client.create(PODS, pod("orphan"), "shop")
        await clock.sleep(1)
        # One that came, once for its labels, and one that nobody controls.
        assert fed == ["shop/mine", "shop/mine", "shop/orphan"]
        await informer.stop()

    run_virtual(main)


def _controlled(name: str, kind: str, *, labels: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    return {
        "metadata": {"name": name, "namespace": "shop", "labels": labels or {}, "ownerReferences": [owner], **meta}
    }
