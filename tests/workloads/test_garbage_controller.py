from __future__ import annotations

from typing import Any

import pytest

from holokube.base.rng import Rng
from holokube.client.faulty import Faults
from holokube.client.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    NODES,
    SECRETS,
    Resource,
)
from holokube.workloads import garbage_controller
from tests.builders import config_map, node
from tests.workloads.housekeeping import STORM, House

JsonObject = dict[str, Any]
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", True)


def house(**options: Any) -> House:
    return House(garbage_controller.build, **options)


def reference(owner: JsonObject, *, blocks: bool = False) -> JsonObject:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "blockOwnerDeletion": blocks,
    }  # fmt: skip


def owned(name: str, *references: JsonObject, namespace: str = "default", **meta: Any) -> JsonObject:
    obj = config_map(name, namespace)
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": list(references), **meta}}


def widget_definition() -> JsonObject:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def test_dependents_of_dependents_go_when_the_owner_is_gone() -> None:
    with house() as home:
        root = home.create(CONFIG_MAPS, config_map("root"))
        child = home.create(CONFIG_MAPS, owned("child", reference(root)))
        home.create(CONFIG_MAPS, owned("grandchild", reference(child)))
        home.create(CONFIG_MAPS, config_map("stranger"))
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == ["child", "grandchild", "root", "stranger"]
        home.delete(CONFIG_MAPS, "root", propagation="Background")
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == ["stranger"]


def test_an_object_with_one_owner_left_only_loses_the_reference() -> None:
    with house() as home:
        first, second = (home.create(CONFIG_MAPS, config_map(name)) for name in ("first", "second"))
        home.create(CONFIG_MAPS, owned("child", reference(first), reference(second)))
        home.pass_time(5)
        home.delete(CONFIG_MAPS, "first")
        home.pass_time(5)
        left = home.get(CONFIG_MAPS, "child")["metadata"]["ownerReferences"]
        assert [owner["name"] for owner in left] == ["second"]


def test_an_object_whose_owner_never_existed_is_collected() -> None:
    with house() as home:
        ghost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "no-such-uid"}
        home.create(CONFIG_MAPS, owned("child", ghost))
        home.pass_time(5)
        assert not home.exists(CONFIG_MAPS, "child")


def test_an_object_whose_owner_was_made_anew_is_collected() -> None:
    with house() as home:
        old = home.create(CONFIG_MAPS, config_map("owner"))
        home.delete(CONFIG_MAPS, "owner")
        home.create(CONFIG_MAPS, config_map("owner"))
        home.create(CONFIG_MAPS, owned("child", reference(old)))
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == ["owner"]


def test_foreground_deletion_waits_for_blocking_dependents_only() -> None:
    with house() as home:
        root = home.create(CONFIG_MAPS, config_map("root"))
        held = owned("held", reference(root, blocks=True), finalizers=["example.com/hold"])
        home.create(CONFIG_MAPS, held)
        home.create(CONFIG_MAPS, owned("loose", reference(root), finalizers=["example.com/hold"]))
        home.pass_time(5)
        home.delete(CONFIG_MAPS, "root", propagation="Foreground")
        home.pass_time(60)
        assert home.get(CONFIG_MAPS, "root")["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert home.get(CONFIG_MAPS, "held")["metadata"]["deletionTimestamp"]
        assert home.get(CONFIG_MAPS, "loose")["metadata"]["deletionTimestamp"]
        home.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}})
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == ["loose"]


def test_foreground_deletion_goes_down_the_whole_tree_before_the_root_goes() -> None:
    with house() as home:
        root = home.create(CONFIG_MAPS, config_map("root"))
        child = home.create(CONFIG_MAPS, owned("child", reference(root, blocks=True)))
        leaf = owned("leaf", reference(child, blocks=True), finalizers=["example.com/hold"])
        home.create(CONFIG_MAPS, leaf)
        home.pass_time(5)
        home.delete(CONFIG_MAPS, "root", propagation="Foreground")
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == ["child", "leaf", "root"]
        assert home.get(CONFIG_MAPS, "child")["metadata"]["finalizers"] == ["foregroundDeletion"]
        home.patch(CONFIG_MAPS, "leaf", {"metadata": {"finalizers": None}})
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == []


def test_a_circle_of_owners_deleted_in_the_foreground_is_broken() -> None:
    with house() as home:
        first = home.create(CONFIG_MAPS, config_map("first"))
        second = home.create(CONFIG_MAPS, owned("second", reference(first, blocks=True)))
        home.patch(CONFIG_MAPS, "first", {"metadata": {"ownerReferences": [reference(second, blocks=True)]}})
        home.pass_time(5)
        home.delete(CONFIG_MAPS, "first", propagation="Foreground")
        home.pass_time(120)
        assert home.names(CONFIG_MAPS, "default") == []


def test_orphaned_dependents_stay_without_the_reference() -> None:
    with house() as home:
        root = home.create(CONFIG_MAPS, config_map("root"))
        home.create(CONFIG_MAPS, owned("child", reference(root, blocks=True)))
        home.pass_time(5)
        home.delete(CONFIG_MAPS, "root", propagation="Orphan")
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == ["child"]
        assert "ownerReferences" not in home.get(CONFIG_MAPS, "child")["metadata"]


def test_a_cluster_wide_owner_has_dependents_in_any_namespace() -> None:
    with house() as home:
        owner = home.create(NODES, node("n1"))
        home.create(NAMESPACES, {"metadata": {"name": "other"}})
        home.create(CONFIG_MAPS, owned("a", reference(owner)))
        home.create(CONFIG_MAPS, owned("b", reference(owner), namespace="other"))
        home.pass_time(60)
        assert home.exists(CONFIG_MAPS, "a") and home.exists(CONFIG_MAPS, "b", "other")
        home.delete(NODES, "n1")
        home.pass_time(5)
        assert not home.exists(CONFIG_MAPS, "a") and not home.exists(CONFIG_MAPS, "b", "other")


def test_an_owner_in_another_namespace_counts_as_absent_and_is_reported() -> None:
    with house() as home:
        home.create(NAMESPACES, {"metadata": {"name": "other"}})
        owner = home.create(CONFIG_MAPS, config_map("owner", "other"))
        home.pass_time(5)
        home.create(CONFIG_MAPS, owned("child", reference(owner)))
        home.pass_time(5)
        assert not home.exists(CONFIG_MAPS, "child")
        assert home.exists(CONFIG_MAPS, "owner", "other")
        uid = owner["metadata"]["uid"]
        about = f"[v1/ConfigMap, namespace: default, name: owner, uid: {uid}]"
        assert home.events("OwnerRefInvalidNamespace") == [
            ("child", "OwnerRefInvalidNamespace", f'ownerRef {about} does not exist in namespace "default"')
        ]


def test_custom_resources_own_and_are_owned_as_soon_as_they_are_discovered() -> None:
    with house() as home:
        home.create(CUSTOM_RESOURCE_DEFINITIONS, widget_definition())
        home.pass_time(5)
        widget = home.create(WIDGETS, {"metadata": {"name": "w", "namespace": "default"}})
        home.create(SECRETS, {"metadata": {"name": "s", "namespace": "default",
                                           "ownerReferences": [reference(widget)]}})  # fmt: skip
        home.create(WIDGETS, {"metadata": {"name": "part", "namespace": "default",
                                           "ownerReferences": [reference(widget)]}})  # fmt: skip
        home.pass_time(40)
        assert home.names(WIDGETS, "default") == ["part", "w"] and home.exists(SECRETS, "s")
        home.delete(WIDGETS, "w")
        home.pass_time(5)
        assert home.names(WIDGETS, "default") == [] and not home.exists(SECRETS, "s")


def test_an_owner_of_a_kind_nobody_serves_keeps_its_dependents() -> None:
    with house() as home:
        unknown = {"apiVersion": "example.com/v1", "kind": "Nothing", "name": "x", "uid": "u"}
        home.create(CONFIG_MAPS, owned("child", unknown))
        home.pass_time(300)
        assert home.exists(CONFIG_MAPS, "child")


def test_the_collector_goes_on_when_a_definition_is_deleted() -> None:
    with house() as home:
        home.create(CUSTOM_RESOURCE_DEFINITIONS, widget_definition())
        home.pass_time(40)
        home.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com")
        home.pass_time(120)
        root = home.create(CONFIG_MAPS, config_map("root"))
        home.create(CONFIG_MAPS, owned("child", reference(root)))
        home.pass_time(5)
        home.delete(CONFIG_MAPS, "root")
        home.pass_time(5)
        assert home.names(CONFIG_MAPS, "default") == []


@pytest.mark.parametrize("seed", range(4))
def test_every_tree_goes_whatever_the_network_does(seed: int) -> None:
    with house(faults=STORM, seed=seed) as home:
        rng = Rng(seed)
        made: list[JsonObject] = []
        roots = []
        for number in range(30):
            owner = rng.choice(made) if made and rng.random() < 0.8 else None
            references = [reference(owner, blocks=rng.random() < 0.5)] if owner else []
            obj = home.create(CONFIG_MAPS, owned(f"o{number}", *references))
            made.append(obj)
            if owner is None:
                roots.append(obj["metadata"]["name"])
        home.create(CONFIG_MAPS, config_map("stranger"))
        home.pass_time(120)
        assert len(home.names(CONFIG_MAPS, "default")) == 31
        for root in roots:
            home.delete(CONFIG_MAPS, root, propagation=rng.choice(["Background", "Foreground"]))
        home.pass_time(300)
        home.faulty.faults = Faults()
        home.pass_time(1300)
        assert home.names(CONFIG_MAPS, "default") == ["stranger"]
        assert home.faulty.injected.total() > 20
