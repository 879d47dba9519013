"""The kubemark cluster: the Nodes that hollow nodes have become."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.cloud.kubemark.node_reaper import NodeReaper
from holokube.kube.errors import NotFound


class KubemarkCluster:
    """Knows which nodes there are, and has those taken away whose machines are gone."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        nodes: Informer,
        groups: Collection[str],
        has_machine: Callable[[str], Awaitable[bool]],
        *,
        owns_informer: bool,
    ) -> None:
        """An informer that others share is theirs to start and to stop."""
        self._client = client
        self._nodes = nodes
        self._owns_informer = owns_informer
        self._reaper = NodeReaper(clock, client, nodes, groups, has_machine)

    async def start(self) -> None:
        self._reaper.start()
        if self._owns_informer:
            self._nodes.start()
            await self._nodes.synced()

    async def stop(self) -> None:
        await self._reaper.stop()
        if self._owns_informer:
            await self._nodes.stop()

    async def node_names(self) -> set[str]:
        """The names of all nodes."""
        await self._nodes.synced()
        return {node["metadata"]["name"] for node in self._nodes.lister}

    async def has_any(self, names: Iterable[str]) -> bool:
        """Whether one of these is a node, asked of the API server itself."""
        for name in names:
            try:
                await self._client.get(NODES, name)
            except NotFound:
                continue
            return True
        return False

    def removed(self, names: Collection[str]) -> None:
        """The machines of these nodes were removed; the nodes go when they are not ready any more."""
        self._reaper.removed(names)

    def look(self, name: str) -> None:
        """The machine of a node may be gone."""
        self._reaper.look(name)

    def look_at_all(self) -> None:
        self._reaper.look_at_all()
