"""Where a controller's work comes from: changes of objects, mapped to the keys that need a look.

A change is filtered by predicates and mapped to keys. The key of an object is ``namespace/name``, or ``name``
when it has no namespace; a child is mapped to the key of its owner with ``enqueue_owner``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from holokube.client.audience import EVERYTHING, Concern, Kind, Listener
from holokube.client.cache import object_key
from holokube.client.informer import EventType, Informer
from holokube.kube.types import JsonObject
from holokube.runtime.stop import StopSignal

K = TypeVar("K", bound=Hashable)
K_co = TypeVar("K_co", bound=Hashable, covariant=True)


class Change(NamedTuple):
    """One object was added (no ``old``), deleted (no ``new``) or changed (both)."""

    old: JsonObject | None
    new: JsonObject | None

    @property
    def object(self) -> JsonObject:
        """The object as it is now, or as it was last."""
        latest = self.new if self.new is not None else self.old
        assert latest is not None
        return latest

    @property
    def added(self) -> bool:
        return self.old is None

    @property
    def deleted(self) -> bool:
        return self.new is None


Predicate = Callable[[Change], bool]
MapFunction = Callable[[JsonObject], Iterable[K]]


class Need(NamedTuple):
    """Something without which no change concerns a controller: pods, say, while there are no services."""

    informer: Informer
    """The one whose changes decide."""
    is_met: Callable[[], bool]
    heeds: int = EVERYTHING
    """In which respects one of its objects has to change for the answer to be another; it is asked only then."""


class Source(Protocol[K_co]):
    """Feeds keys into a controller's queue."""

    def start(self, enqueue: Callable[[K_co], None]) -> None:
        """Begins to feed; called again after ``stop`` when the controller is started anew."""

    async def wait_synced(self) -> None:
        """Returns when everything that exists already has been seen."""

    def stop(self) -> None:
        """Ends the feeding."""


def split_key(key: str) -> tuple[str, str]:
    """Namespace (empty when there is none) and name of a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def enqueue_self(obj: JsonObject) -> list[str]:
    """Maps an object to its own key."""
    return [object_key(obj)]


def enqueue_owner(
    kind: str, *, group: str | None = None, only_controller: bool = True, cluster_scoped: bool = False
) -> MapFunction[str]:
    """Maps an object to its owners of a kind, by default only to the one that controls it.

    The version in the owner's ``apiVersion`` does not matter, since owners outlive versions; the group does,
    if given.
    """

    def owners(obj: JsonObject) -> list[str]:
        meta = obj["metadata"]
        space = "" if cluster_scoped else meta.get("namespace") or ""
        return [
            f"{space}/{owner['name']}" if space else str(owner["name"])
            for owner in meta.get("ownerReferences") or ()
            if owner.get("kind") == kind
            and (group is None or _group_of(owner.get("apiVersion", "")) == group)
            and (owner.get("controller") or not only_controller)
        ]

    return owners


def generation_changed(change: Change) -> bool:
    """Passes adds, deletes, and changes of the spec: status and metadata leave the generation alone."""
    return _passes_unless_equal(change, "generation")


def resource_version_changed(change: Change) -> bool:
    """Passes all but the repeats that a resync of the cache sends."""
    return _passes_unless_equal(change, "resourceVersion")


def labels_changed(change: Change) -> bool:
    return _passes_unless_equal(change, "labels")


def annotations_changed(change: Change) -> bool:
    return _passes_unless_equal(change, "annotations")


def any_of(*predicates: Predicate) -> Predicate:
    """Passes what one of the predicates passes."""
    return lambda change: any(predicate(change) for predicate in predicates)


def not_(predicate: Predicate) -> Predicate:
    """Passes what the predicate does not."""
    return lambda change: not predicate(change)


class InformerSource(Generic[K]):
    """Feeds the changes that an informer sees; what it knows already is fed at the start."""

    def __init__(
        self,
        informer: Informer,
        map_object: MapFunction[K],
        *,
        predicates: Sequence[Predicate] = (),
        concerns: Concern | None = None,
        heeds: int = EVERYTHING,
        controlled_by: Kind | None = None,
        hears_orphans: bool = True,
        hears_comings: bool = True,
        needs: Need | None = None,
    ) -> None:
        """``concerns`` is asked before anything else is done, and is to be quick.

        Each pod's every change comes by at each controller that has to do with pods, and concerns one or two.
        Better than to be quick is not to be asked: changes in other respects than ``heeds``, objects that
        something else than ``controlled_by`` controls, or nobody where orphans are not to be heard of, that objects
        came or went where ``hears_comings`` is False, and all while ``needs`` is not met, do not come by.
        """
        self._informer = informer
        self._heeds, self._controlled_by, self._needs = heeds, controlled_by, needs
        self._hears_orphans, self._hears_comings = hears_orphans, hears_comings
        self._concerns = concerns
        self._map = map_object
        self._own_key = cast("Callable[[JsonObject], K]", object_key) if map_object is enqueue_self else None
        """What there is to be done where an object is mapped to its own key, which is the same in all its states."""
        self._predicates = tuple(predicates)
        self._enqueue: Callable[[K], None] | None = None
        self._listener: Listener | None = None
        self._forget_needs: Callable[[], None] | None = None

    def start(self, enqueue: Callable[[K], None]) -> None:
        if self._listener is not None:
            raise RuntimeError("this source is in use already; give each controller sources of its own")
        self._enqueue = enqueue
        self._listener = self._informer.listen(
            self._on_event, heeds=self._heeds, controlled_by=self._controlled_by,
            hears_orphans=self._hears_orphans, hears_comings=self._hears_comings, concerns=self._concerns,
        )  # fmt: skip
        if self._needs is not None:
            self._look_after_needs()
            self._forget_needs = self._needs.informer.add_handler(self._look_after_needs, heeds=self._needs.heeds)

    async def wait_synced(self) -> None:
        await self._informer.synced()

    def stop(self) -> None:
        if self._forget_needs is not None:
            self._forget_needs()
            self._forget_needs = None
        if self._listener is not None:
            self._informer.dismiss(self._listener)
            self._listener = None
            self._enqueue = None

    def _look_after_needs(self, *_event: object) -> None:
        if self._needs is not None and self._listener is not None:
            self._informer.set_away(self._listener, is_away=not self._needs.is_met())

    def _on_event(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        """Feeds one change; an update concerns the keys of both states, as the owner may have changed."""
        enqueue = self._enqueue
        if enqueue is None:
            return
        if self._predicates:
            change = Change(old, new)
            for predicate in self._predicates:
                if not predicate(change):
                    return
        own_key = self._own_key
        if old is None or new is None or own_key is not None:
            latest = new if new is not None else old
            if latest is not None:
                for key in self._map(latest) if own_key is None else (own_key(latest),):
                    enqueue(key)
            return
        before, after = self._map(old), self._map(new)
        if before != after:
            before = dict.fromkeys((*before, *after))
        for key in before:
            enqueue(key)


class CacheSource:
    """Feeds nothing: the controller only wants the cache to be filled before it begins."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer

    def start(self, enqueue: Callable[[Any], None]) -> None:
        """There is nothing to feed."""

    async def wait_synced(self) -> None:
        await self._informer.synced()

    def stop(self) -> None:
        """There is nothing to end."""


class InformerRunner:
    """Runs informers as one component of the app. Add it before the controllers that read from them."""

    def __init__(self, name: str, informers: Sequence[Informer]) -> None:
        if not informers:
            raise ValueError(f"{name!r} has no informers to run")
        self.name = name
        self._informers = tuple(informers)

    async def run(self, stop: StopSignal) -> None:
        await stop.finishes_first(self._run_all())

    def check(self) -> str | None:
        """For the readiness endpoint, worded as upstream's ``informer-sync``."""
        missing = [str(informer.resource) for informer in self._informers if not informer.has_synced]
        return f"{len(missing)} informers not started yet: [{' '.join(missing)}]" if missing else None

    async def _run_all(self) -> None:
        tasks = [
            asyncio.create_task(informer.run(), name=f"informer {informer.resource}")
            for informer in self._informers
        ]
        try:
            # Informers end only by a bug of their own; a task group would hide it in a group of errors.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _passes_unless_equal(change: Change, field: str) -> bool:
    if change.old is None or change.new is None:
        return True
    return bool(_meta(change.old, field) != _meta(change.new, field))


def _meta(obj: JsonObject, field: str) -> Any:
    return obj.get("metadata", {}).get(field)


def _group_of(api_version: str) -> str:
    group, slash, _ = api_version.rpartition("/")
    return group if slash else ""
