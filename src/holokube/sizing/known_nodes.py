"""The nodes as an informer knows them, and a short wait for one that is about to be known.

The DaemonSet controller makes a pod the moment it sees a node. Its watch and ours see it at about the same time, so
that every other new node would be unknown to us for a few milliseconds: the wait bridges that, without any call.
"""

from __future__ import annotations

import asyncio
from typing import Any

from holokube.client.informer import EventType, Informer
from holokube.kube.types import JsonObject


def keep_sizes(node: JsonObject) -> JsonObject:
    """What the cache keeps of a Node: its name and what it has to give."""
    metadata, status = node["metadata"], node.get("status") or {}
    return {
        "metadata": {name: metadata[name] for name in ("name", "uid", "resourceVersion") if name in metadata},
        "status": {"allocatable": status["allocatable"]} if status.get("allocatable") else {},
    }


class KnownNodes:
    """Finds nodes by name."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._waiting: dict[str, list[asyncio.Future[JsonObject]]] = {}
        informer.add_handler(self._on_node)

    @property
    def has_synced(self) -> bool:
        return self._informer.has_synced

    async def synced(self) -> None:
        """Waits for the first list."""
        await self._informer.synced()

    def find(self, name: str) -> JsonObject | None:
        """A node as it is known now."""
        return self._informer.lister.by_key(name) if name else None

    async def wait_for(self, name: str, within_s: float) -> JsonObject | None:
        """A node that says what it has to give, as soon as it is known; what is known of it when the time is over."""
        node = self.find(name)
        if not name or within_s <= 0 or (node is not None and _has_size(node)):
            return node
        future: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(name, [])
        waiting.append(future)
        try:
            async with asyncio.timeout(within_s):
                return await future
        except TimeoutError:
            return self.find(name)
        finally:
            waiting.remove(future)
            if not waiting and self._waiting.get(name) is waiting:
                del self._waiting[name]

    def _on_node(self, _type: EventType, _old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None and self._waiting and _has_size(new):
            for future in self._waiting.get(new["metadata"]["name"], ()):
                if not future.done():
                    future.set_result(new)


def _has_size(node: dict[str, Any]) -> bool:
    return bool((node.get("status") or {}).get("allocatable"))
