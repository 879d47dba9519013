"""A registry on virtual time, for tests of the API without HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.options import DeleteOptions, ListOptions, WriteOptions
from holokube.apiserver.registry import Registry
from holokube.apiserver.resources import Served
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.kube.types import JsonObject
from holokube.store.store import Store

T = TypeVar("T")
MERGE = "application/merge-patch+json"


class World:
    """One registry, with short names for what tests do all the time."""

    def __init__(self, clock: VirtualClock, store: Store | None = None) -> None:
        self.clock = clock
        self.store = store or Store()
        self.registry = Registry(clock, Rng("tests"), self.store)

    def served(self, plural: str, group: str = "", version: str = "v1") -> Served:
        return self.registry.resolve(group, version, plural)

    async def create(self, plural: str, body: JsonObject, group: str = "", **options: Any) -> JsonObject:
        served = self.served(plural, group)
        namespace = body["metadata"].get("namespace", "") if served.namespaced else ""
        return (await self.registry.create(served, namespace, body, WriteOptions(**options))).stored.obj

    async def update(
        self, plural: str, body: JsonObject, group: str = "", subresource: str = "", **options: Any
    ) -> JsonObject:
        served, meta = self.served(plural, group), body["metadata"]
        result = await self.registry.update(
            served, meta.get("namespace", ""), meta["name"], body, WriteOptions(**options), subresource=subresource
        )
        return result.stored.obj

    async def patch(
        self,
        plural: str,
        name: str,
        body: Any,
        group: str = "",
        *,
        kind: str = MERGE,
        namespace: str = "default",
        subresource: str = "",
        **options: Any,
    ) -> JsonObject:
        served = self.served(plural, group)
        result = await self.registry.patch(
            served, namespace if served.namespaced else "", name, kind, body, WriteOptions(**options),
            subresource=subresource,
        )  # fmt: skip
        return result.stored.obj

    async def delete(
        self, plural: str, name: str, group: str = "", *, namespace: str = "default", **options: Any
    ) -> Any:
        served = self.served(plural, group)
        answer, _ = await self.registry.delete(
            served, namespace if served.namespaced else "", name, DeleteOptions(**options)
        )
        return answer

    def get(self, plural: str, name: str, group: str = "", *, namespace: str = "default") -> JsonObject:
        served = self.served(plural, group)
        return self.registry.get(served, namespace if served.namespaced else "", name).obj

    def names(self, plural: str, group: str = "", *, namespace: str = "", **query: str) -> list[str]:
        found = self.registry.list(self.served(plural, group), namespace, ListOptions.parse(query, watch=False))
        return [stored.obj["metadata"]["name"] for stored in found.items]


def in_world(test: Callable[[World], Awaitable[T]]) -> T:
    """Run an async test body in a fresh, bootstrapped world on virtual time."""

    async def main(clock: VirtualClock) -> T:
        world = World(clock)
        await bootstrap(world.registry)
        return await test(world)

    return run_virtual(main)
