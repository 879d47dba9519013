"""Sets of hollow nodes: what there is, what is wanted, and the bounded work in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.hollow.node_template import NODE_SET, marked, missing_indexes, newest_first
from holokube.kube.errors import AlreadyExists, Conflict, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.many_writes import do_all

DEFAULT_PREFIX = "node"
MESSAGE = "after {done} of {all} nodes"


class Maker(Protocol):
    """Makes the manifest of one node."""

    def render(self, name: str, index: int) -> JsonObject: ...


@dataclass(frozen=True, slots=True)
class Scaled:
    """What was done."""

    prefix: str
    before: int
    created: int
    removed: int

    def __str__(self) -> str:
        now = self.before + self.created - self.removed
        done = f"{self.created} created" if self.created else f"{self.removed} removed" if self.removed else "unchanged"
        return f"{now} nodes {self.prefix}-*: {done}"


class NodeSet:
    """The nodes of one prefix."""

    def __init__(self, prefix: str, maker: Maker) -> None:
        self._prefix = prefix
        self._maker = maker

    async def scale(self, client: Client, count: int, progress: Callable[[int, int], None]) -> Scaled:
        """Creates or removes until there are ``count``."""
        owned = (await client.list_all(NODES, label_selector=f"{NODE_SET}={self._prefix}")).items
        if len(owned) > count:
            doomed = newest_first(owned, self._prefix)[: len(owned) - count]
            done = await do_all([_removal(client, node) for node in doomed], progress, MESSAGE)
            return Scaled(self._prefix, len(owned), 0, done)
        created = 0
        taken: list[str] = []
        mine = [node["metadata"]["name"] for node in owned]
        while created < count - len(owned):
            wanted = count - len(owned) - created
            indexes = missing_indexes(mine, taken, self._prefix, wanted)
            made = [marked(self._maker.render(f"{self._prefix}-{index}", index), self._prefix) for index in indexes]
            refused: list[str] = []
            await do_all([_creation(client, node, refused) for node in made], progress, MESSAGE)
            created += wanted - len(refused)
            # A name that a stranger's node has is left to it; the next free number takes its place.
            taken += refused
            mine += [node["metadata"]["name"] for node in made if node["metadata"]["name"] not in refused]
        return Scaled(self._prefix, len(owned), created, 0)


def _creation(client: Client, node: JsonObject, refused: list[str]) -> Callable[[], Awaitable[None]]:
    async def create() -> None:
        try:
            await client.create(NODES, node)
        except AlreadyExists:
            refused.append(node["metadata"]["name"])

    return create


def _removal(client: Client, node: JsonObject) -> Callable[[], Awaitable[None]]:
    meta = node["metadata"]

    async def remove() -> None:
        # Somebody else may be faster; a node of that name that was made since is not the one that was meant.
        with suppress(NotFound, Conflict):
            await client.delete(NODES, meta["name"], uid=meta["uid"])

    return remove
