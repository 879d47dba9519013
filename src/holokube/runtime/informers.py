"""One shared informer per resource, for all controllers of a process."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, cast

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.audience import EVERYTHING
from holokube.client.cache import IndexFunction
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer
from holokube.client.resources import Resource
from holokube.kube.types import JsonObject
from holokube.runtime.sources import InformerRunner


class Follower(Protocol):
    """Keeps something of its own true to what an informer tells."""

    def on_event(self, type: EventType, old: JsonObject | None, new: JsonObject | None, /) -> None: ...


F = TypeVar("F", bound=Follower)


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
        self._followers: dict[tuple[Resource, type[Any]], Follower] = {}

    def get(self, resource: Resource) -> Informer:
        """The informer of a resource, in all namespaces."""
        informer = self._informers.get(resource)
        if informer is None:
            informer = Informer(
                self._clock, self._client, resource, rng=self._rng.fork(f"informer/{resource}")
            )
            self._informers[resource] = informer
        return informer

    def known(self, resource: Resource) -> Informer | None:
        """The informer of a resource if anybody has asked for it."""
        return self._informers.get(resource)

    def indexed(
        self, resource: Resource, name: str, function: IndexFunction, *, heeds: int = EVERYTHING,
        when_asked: bool = False,
    ) -> Informer:  # fmt: skip
        """The informer, with an index of that name; several may ask for the same one.

        ``heeds`` names what the function looks at (``client.audience``); ``when_asked``, that the index need not
        be there before somebody asks for something in it.
        """
        informer = self.get(resource)
        if (resource, name) not in self._indexes:
            informer.add_index(name, function, heeds=heeds, when_asked=when_asked)
            self._indexes.add((resource, name))
        return informer

    def attached(self, resource: Resource, kind: type[F]) -> F:
        """The one follower of a kind that an informer has; several may ask for the same one."""
        found = self._followers.get((resource, kind))
        if found is None:
            found = self._followers[resource, kind] = kind()
            self.get(resource).add_handler(found.on_event)
        return cast("F", found)

    def runner(self, name: str = "informers") -> InformerRunner:
        """Runs all informers made so far."""
        return InformerRunner(name, list(self._informers.values()))

    async def synced(self) -> None:
        """Waits until every informer has its first list."""
        for informer in tuple(self._informers.values()):
            await informer.synced()
