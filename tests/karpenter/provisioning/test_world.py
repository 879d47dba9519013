"""Scenes are read from caches, and what has not changed in them is not read twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from holokube.base.clock import VirtualClock
from holokube.client.resources import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, Resource
from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS
from holokube.karpenter.provisioning.world import World
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.settings import Settings
from holokube.kube.types import JsonObject

NO_NODES: Any = SimpleNamespace(all_nodes=(), leaving_nodes=[], unbound_pods=())


class Caches:
    """As many informers as are asked for, with objects that a test puts in."""

    def __init__(self) -> None:
        self.objects: dict[Resource, list[JsonObject]] = {}

    def get(self, resource: Resource) -> Any:
        found = self.objects.setdefault(resource, [])
        return SimpleNamespace(lister=SimpleNamespace(list=lambda: [*found], by_index=lambda *_: []))

    def indexed(self, resource: Resource, *_: Any, **__: Any) -> Any:
        return self.get(resource)


def made(name: str, **more: Any) -> JsonObject:
    return {"metadata": {"name": name, **more}}


def test_storage_and_namespaces_are_those_of_the_caches_and_the_same_until_one_changes() -> None:
    caches: Any = Caches()
    provider: Any = SimpleNamespace(well_known=ALL_WELL_KNOWN_LABELS)
    world = World(VirtualClock(), caches, provider, Settings())

    def read() -> Problem:
        return world.scene(NO_NODES, world.provisioning_options()).problem

    first = read()
    assert not first.storage.claims
    assert not first.namespaces
    claims, namespaces = caches.objects[PERSISTENT_VOLUME_CLAIMS], caches.objects[NAMESPACES]
    claims.append(made("data", namespace="default"))
    namespaces.append(made("default", labels={"team": "x"}))
    second, again = read(), read()
    assert list(second.storage.claims) == ["default/data"]
    assert second.namespaces == {"default": {"team": "x"}}
    assert again.storage is second.storage
    assert again.namespaces is second.namespaces
    claims[0] = made("data", namespace="default", resourceVersion="2")
    namespaces[0] = made("default", labels={"team": "y"})
    caches.objects[STORAGE_CLASSES].append(made("fast"))
    third = read()
    assert third.storage.claims["default/data"] is claims[0]
    assert list(third.storage.classes) == ["fast"]
    assert third.namespaces == {"default": {"team": "y"}}
    # What was read before stays as it was.
    assert second.namespaces == {"default": {"team": "x"}}
    assert not second.storage.classes
    claims.clear()
    namespaces.clear()
    assert not read().storage.claims
    assert not read().namespaces
