"""The external cluster: ReplicationControllers and the pods that are hollow nodes, as they are and as asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import EventType, Informer
from holokube.client.resources import PODS, REPLICATION_CONTROLLERS
from holokube.cluster_autoscaler.cloud.errors import CloudError, OutOfResourcesError
from holokube.cluster_autoscaler.cloud.kubemark.hollow_nodes import (
    GROUP_LABEL,
    NAMESPACE,
    controller_of,
    group_of,
    is_leaving,
    is_live,
)
from holokube.cluster_autoscaler.cloud.kubemark.templates import HollowTemplate
from holokube.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from holokube.kube.types import JsonObject

T = TypeVar("T")

TRIES: Final = 3
"""As many as upstream's; but only where trying again may help, and with a pause."""
PAUSE_S: Final = 0.5
MAX_PAUSE_S: Final = 10.0
PARALLEL: Final = 16
SUFFIX_LENGTH: Final = 8
PODS_WITHIN_S: Final = 2.0
"""How long an increase waits for the names of its machines, which the external cluster's controllers choose."""
_BY_GROUP: Final = "kubemark-group"
_BY_CONTROLLER: Final = "kubemark-controller"
_PASSING = (TransportError, Conflict, ServiceUnavailable, InternalError, Timeout, TooManyRequests)


class ExternalCluster:
    """Reads from caches of one namespace, and knows what was written but is not in them yet."""

    def __init__(self, clock: Clock, client: Client, rng: Rng, *, namespace: str = NAMESPACE) -> None:
        self.namespace = namespace
        self._clock = clock
        self._client = client
        self._rng = rng.fork("names")
        self._controllers = Informer(
            clock, client, REPLICATION_CONTROLLERS, namespace=namespace, label_selector=GROUP_LABEL,
            indexers={_BY_GROUP: lambda rc: [group_of(rc)]}, rng=rng.fork("controllers"),
        )  # fmt: skip
        self._pods = Informer(
            clock, client, PODS, namespace=namespace, label_selector=GROUP_LABEL,
            indexers={_BY_GROUP: lambda pod: [group_of(pod)], _BY_CONTROLLER: lambda pod: [controller_of(pod)]},
            rng=rng.fork("pods"),
        )  # fmt: skip
        self._made: dict[str, JsonObject] = {}
        """Controllers that were created and are not in the cache yet, by name."""
        self._deleted: set[str] = set()
        """Controllers that were deleted and may be in the cache as if they were not, by uid."""
        self._names_in_use: set[str] = set()
        self._calls = asyncio.Semaphore(PARALLEL)
        self._pods_changed = asyncio.Event()
        self._controllers.add_handler(self._on_controller)
        self._pods.add_handler(self._on_pod)
        self._log = get_logger("holokube.cluster_autoscaler.kubemark").bind(namespace=namespace)

    async def start(self) -> None:
        """Fills the caches; an API server that refuses is an error now, and not later."""
        for resource in (REPLICATION_CONTROLLERS, PODS):
            what = f"list {resource.plural} in namespace {self.namespace} of the external cluster"
            await self._try(what, partial(self._client.list, resource, self.namespace, limit=1))
        for informer in (self._controllers, self._pods):
            informer.start()
        for informer in (self._controllers, self._pods):
            await informer.synced()

    async def stop(self) -> None:
        """Ends the watches; what was made stays."""
        for informer in (self._controllers, self._pods):
            await informer.stop()

    def on_pod(self, handler: Callable[[EventType, JsonObject | None, JsonObject | None], None]) -> None:
        """Has a handler told of all changes of pods."""
        self._pods.add_handler(handler)

    # What there is

    def controllers(self, group: str) -> list[JsonObject]:
        """The ReplicationControllers of a group that are to stay."""
        return [rc for rc in self._all_of(group) if not self._is_going(rc)]

    def all_controllers(self) -> list[JsonObject]:
        """Those of all groups that are to stay."""
        return [rc for rc in self._controllers.lister if not self._is_going(rc)]

    def _all_of(self, group: str) -> list[JsonObject]:
        self._forget_what_was_seen()
        cached = self._controllers.lister.by_index(_BY_GROUP, group)
        return [*cached, *(rc for rc in self._made.values() if group_of(rc) == group)]

    def controller(self, name: str) -> JsonObject | None:
        """One that is to stay."""
        self._forget_what_was_seen()
        found = self._controllers.lister.get(name, self.namespace) or self._made.get(name)
        return None if found is None or self._is_going(found) else found

    def _is_going(self, controller: JsonObject) -> bool:
        return is_leaving(controller) or controller["metadata"]["uid"] in self._deleted

    def pods(self, group: str) -> list[JsonObject]:
        """The pods of a group, those that end included."""
        return self._pods.lister.by_index(_BY_GROUP, group)

    def pods_of(self, controller: str) -> list[JsonObject]:
        """The pods of one ReplicationController."""
        return self._pods.lister.by_index(_BY_CONTROLLER, controller)

    def pod(self, name: str) -> JsonObject | None:
        return self._pods.lister.get(name, self.namespace)

    async def has_machine(self, name: str) -> bool:
        """Whether a pod is alive, asked of the API server itself."""
        try:
            return is_live(await self._client.get(PODS, name, self.namespace))
        except NotFound:
            return False

    def _forget_what_was_seen(self) -> None:
        """What was made and removed again between two looks of the watch never comes to the cache."""
        seen = self._controllers.resource_version
        for name, made in [*self._made.items()]:
            version = made["metadata"]["resourceVersion"]
            if seen.isdecimal() and version.isdecimal() and int(version) <= int(seen):
                del self._made[name]

    def _on_controller(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None:
            self._made.pop(new["metadata"]["name"], None)
        elif old is not None:
            self._deleted.discard(old["metadata"]["uid"])

    def _on_pod(self, _type: EventType, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._pods_changed.set()

    # What is asked for

    async def create(self, template: HollowTemplate, group: str) -> JsonObject:
        """One more hollow node."""
        made: JsonObject | None = None
        while made is None:
            name = self._free_name(group)
            try:
                made = await self._create(template.controller(name, group, self.namespace))
            finally:
                self._names_in_use.discard(name)
        if self._controllers.lister.get(made["metadata"]["name"], self.namespace) is None:
            self._made[made["metadata"]["name"]] = made
        return made

    async def _create(self, controller: JsonObject) -> JsonObject | None:
        """Creates it; None if the name is somebody else's."""
        name = controller["metadata"]["name"]
        tries = 0

        async def attempt() -> JsonObject | None:
            nonlocal tries
            tries += 1
            try:
                return await self._client.create(REPLICATION_CONTROLLERS, controller, self.namespace)
            except AlreadyExists:
                if tries == 1:
                    return None
                # A try before this one came through, only its answer did not.
                return await self._client.get(REPLICATION_CONTROLLERS, name, self.namespace)

        return await self._try(f"create ReplicationController {self.namespace}/{name}", attempt)

    def _free_name(self, group: str) -> str:
        while True:
            name = f"{group}-{self._rng.name_suffix(SUFFIX_LENGTH)}"
            # A repeated seed repeats the names, also those that there are.
            known = self._controllers.lister.get(name, self.namespace) or name in self._made
            if not known and name not in self._names_in_use:
                self._names_in_use.add(name)
                return name

    async def delete(self, controller: JsonObject) -> None:
        """One hollow node less: its pod goes first, then the ReplicationController."""
        meta = controller["metadata"]

        async def attempt() -> None:
            try:
                await self._client.delete(
                    REPLICATION_CONTROLLERS, meta["name"], self.namespace, propagation="Foreground", uid=meta["uid"]
                )
            except NotFound:
                return
            except Conflict:
                # Most likely another one has the name by now, so that this one is no more.
                if await self._is_there(meta["name"], meta["uid"]):
                    raise

        await self._try(f"delete ReplicationController {self.namespace}/{meta['name']}", attempt)
        self._made.pop(meta["name"], None)
        self._deleted.add(meta["uid"])

    async def _is_there(self, name: str, uid: str) -> bool:
        try:
            found = await self._client.get(REPLICATION_CONTROLLERS, name, self.namespace)
        except NotFound:
            return False
        return bool(found["metadata"]["uid"] == uid)

    async def wait_for_pods(self, controllers: Sequence[JsonObject]) -> None:
        """Waits, not for long, until each has a pod: with it the machine gets its name."""
        missing = [rc["metadata"]["name"] for rc in controllers]
        with suppress(TimeoutError):
            async with asyncio.timeout(PODS_WITHIN_S):
                # One after the other: a look at all of them for every pod that comes would be slow for many.
                while missing:
                    if self.pods_of(missing[-1]) or self.controller(missing[-1]) is None:
                        missing.pop()
                        continue
                    self._pods_changed.clear()
                    await self._pods_changed.wait()

    async def _try(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Calls, again where that may help."""
        async with self._calls:
            for left in reversed(range(TRIES)):
                try:
                    return await call()
                except _PASSING as error:
                    if not left:
                        raise self._failure(what, error) from error
                    self._log.info("trying again", what=what, why=error.message)
                    await self._clock.sleep(_pause_s(error, TRIES - 1 - left))
                except HolokubeError as error:
                    raise self._failure(what, error) from error
        raise AssertionError("every way out of the loop returns or raises")

    def _failure(self, what: str, error: HolokubeError) -> CloudError:
        message = f"cannot {what}: {error.message}"
        if isinstance(error, Forbidden) and "exceeded quota" in error.message:
            return OutOfResourcesError(message, hint="Raise the quota of the external cluster, or lower the maximum.")
        if isinstance(error, NotFound):
            return CloudError(message, hint=f"Create the namespace: kubectl create namespace {self.namespace}.")
        return CloudError(message, hint=error.hint or "See deploy/kubemark for what the autoscaler needs there.")


def _pause_s(error: HolokubeError, tries: int) -> float:
    asked_s = error.retry_after_s if isinstance(error, ApiError) else None
    return min(MAX_PAUSE_S, float(asked_s) if asked_s is not None else PAUSE_S * 2**tries)
