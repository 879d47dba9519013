"""One shared informer per resource, for all controllers of a process."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.cache import IndexFunction
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import Resource
from holokube.runtime.sources import InformerRunner


class InformerSet:
    """Makes informers when they are first asked for, and runs them as one component.

    Build all controllers first, then ask for the ``runner``, and add it to the app before them.
    """

    def __init__(self, clock: Clock, client: Client, rng: Rng) -> None:
        self._clock = clock
        self._client = client
        self._rng = rng
        self._informers: dict[Resource, Informer] = {}
        self._indexes: set[tuple[Resource, str]] = set()

    def get(self, resource: Resource) -> Informer:
        """The informer of a resource, in all namespaces."""
        informer = self._informers.get(resource)
        if informer is None:
            informer = Informer(
                self._clock, self._client, resource, rng=self._rng.fork(f"informer/{resource}")
            )
            self._informers[resource] = informer
        return informer

    def indexed(self, resource: Resource, name: str, function: IndexFunction) -> Informer:
        """The informer, with an index of that name; several may ask for the same one."""
        informer = self.get(resource)
        if (resource, name) not in self._indexes:
            informer.add_index(name, function)
            self._indexes.add((resource, name))
        return informer

    def runner(self, name: str = "informers") -> InformerRunner:
        """Runs all informers made so far."""
        return InformerRunner(name, list(self._informers.values()))

    async def synced(self) -> None:
        """Waits until every informer has its first list."""
        for informer in tuple(self._informers.values()):
            await informer.synced()
