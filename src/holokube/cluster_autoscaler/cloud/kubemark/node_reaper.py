"""Takes away Nodes of the kubemark cluster whose machines are gone: no cloud controller does it there.

Upstream's provider remembers which nodes it has removed, and forgets it when it ends; here the rule is the state of
both clusters, so that it holds after a restart too, and for nodes whose pods died without anybody's asking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import is_left_behind
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.types import JsonObject

FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 60.0


class NodeReaper:
    """Looks at a node whenever it, or its pod, changes."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        nodes: Informer,
        groups: Collection[str],
        has_machine: Callable[[str], Awaitable[bool]],
    ) -> None:
        """``has_machine`` must not be older than the node that is asked for."""
        self._clock = clock
        self._client = client
        self._nodes = nodes
        self._groups = frozenset(groups)
        self._has_machine = has_machine
        self._removed: set[str] = set()
        """Nodes that were removed on purpose; they need no label then."""
        # A dict is a set that keeps the order in which nodes are looked at.
        self._waiting: dict[str, None] = {}
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._forget: Callable[[], None] = lambda: None
        self._log = get_logger("holokube.cluster_autoscaler.kubemark")

    def start(self) -> None:
        self._forget = self._nodes.add_handler(self._on_node)
        self._task = asyncio.create_task(self._run(), name="kubemark node reaper")

    async def stop(self) -> None:
        self._forget()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def removed(self, names: Collection[str]) -> None:
        """The machines of these nodes were removed."""
        self._removed.update(names)
        for name in names:
            self.look(name)

    def look(self, name: str) -> None:
        """Something about a node or its machine may have changed."""
        node = self._nodes.lister.get(name)
        if node is not None and is_left_behind(node, self._groups, self._removed):
            self._waiting[name] = None
            self._work.set()

    def look_at_all(self) -> None:
        """Repeats what may have gone wrong."""
        for node in self._nodes.lister:
            self.look(node["metadata"]["name"])

    def _on_node(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None:
            self.look(new["metadata"]["name"])
        elif old is not None:
            self._removed.discard(old["metadata"]["name"])

    async def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            self._work.clear()
            failed: list[str] = []
            while self._waiting:
                name = next(iter(self._waiting))
                del self._waiting[name]
                try:
                    await self._reap(name)
                except HolokubeError as error:
                    self._log.warning("cannot take away a node, trying again", node=name, why=error.message)
                    failed.append(name)
            if failed:
                await self._clock.sleep(pause_s)
                pause_s = min(MAX_PAUSE_S, 2 * pause_s)
                self._waiting.update(dict.fromkeys(failed))
            else:
                pause_s = FIRST_PAUSE_S
                await self._work.wait()

    async def _reap(self, name: str) -> None:
        node = self._nodes.lister.get(name)
        if node is None or not is_left_behind(node, self._groups, self._removed) or await self._has_machine(name):
            return
        meta = node["metadata"]
        try:
            # Only as it was seen: a kubelet that is back has changed it.
            await self._client.delete(NODES, name, uid=meta["uid"], resource_version=meta["resourceVersion"])
        except (NotFound, Conflict):
            return
        self._log.info("took away a node whose machine is gone", node=name)
