"""The garbage collector: deletes what nobody owns any more, and carries out foreground and orphan deletion.

It watches every resource that the server offers, custom resources included, and asks every 30 s whether there
are new ones. What it deletes it has always looked at live first: a picture that lags behind never costs an
object its life. Two things rest on the picture being complete, upstream as here: which dependents an owner
deleted in the foreground waits for, and which are let go when it is orphaned.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.audience import DELETION, FINALIZERS, OWNERS, Listener
from holokube.client.cache import Lister, object_key
from holokube.client.client import Client
from holokube.client.discovery import Discovered, Discovery
from holokube.client.informer import EventType, Informer
from holokube.client.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from holokube.kube.errors import Invalid, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.stop import StopSignal
from holokube.workloads import garbage_decisions as decisions
from holokube.workloads.garbage_decisions import Delete, DropReferences, OwnerState
from holokube.workloads.garbage_graph import (
    FOREGROUND_FINALIZER,
    NOTHING,
    ORPHAN_FINALIZER,
    Effects,
    Identity,
    Node,
    OwnerReference,
    OwnershipGraph,
    group_of,
    owners_of,
)

NAME: Final = "garbage-collector-controller"
RESYNC_S: Final = 30.0
"""How often the server is asked for new resources; an unknown kind is looked for again as often."""
INITIAL_SYNC_S: Final = 30.0
"""How long the first look at everything may take before work begins without what is missing."""
WORKERS: Final = 20
ABSENT_OWNERS_KEPT: Final = 500

_HEEDED: Final = OWNERS | FINALIZERS | DELETION
Key = tuple[str, str]
"""What to do ("delete" or "orphan"), and the uid."""


@dataclass(slots=True)
class _Monitor:
    informer: Informer
    owned: bool
    """Whether the informer is the collector's own, to be stopped with it."""
    listener: Listener


class UnknownKind(HolokubeError):
    """An owner is of a kind that the server does not serve, or not at present."""


class AbsentOwners:
    """The owners last found to be missing, so that a thousand orphans cost one look."""

    def __init__(self, size: int = ABSENT_OWNERS_KEPT) -> None:
        self._size = size
        self._known: OrderedDict[Identity, None] = OrderedDict()

    def add(self, identity: Identity) -> None:
        self._known[identity] = None
        self._known.move_to_end(identity)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def __contains__(self, identity: Identity) -> bool:
        return identity in self._known


class GarbageCollector:
    """A component of the app. ``shared`` informers are used where there is one; they are run by others.

    ``known`` is asked for informers of resources that nobody could name beforehand: those of custom kinds.
    """

    name = NAME

    def __init__(
        self,
        clock: Clock,
        client: Client,
        *,
        shared: Iterable[Informer] = (),
        known: Callable[[Resource], Informer | None] = lambda _: None,
        recorder: EventRecorder | None = None,
        rng: Rng,
        workers: int = WORKERS,
    ) -> None:
        self._clock = clock
        self._client = client
        self._shared = {informer.resource: informer for informer in shared if informer.namespace is None}
        self._known = known
        self._recorder = recorder
        self._rng = rng
        self._discovery = Discovery(client)
        self._controller: Controller[Key] = Controller(clock, NAME, self.reconcile, workers=workers)
        self.graph = OwnershipGraph()
        self._absent = AbsentOwners()
        self._monitors: dict[Resource, _Monitor] = {}
        self._watched_for: list[Discovered] | None = None
        """What the server said it has when all of it, and nothing else, came to be watched."""
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._served: dict[tuple[str, str], Resource] = {}
        self._log = get_logger("holokube.workloads.garbage")

    async def run(self, stop: StopSignal) -> None:
        """Collects until the stop. Starts from an empty picture each time."""
        self.graph, self._absent = OwnershipGraph(), AbsentOwners()
        work: asyncio.Task[None] | None = None
        try:
            while not stop.is_set():
                await self._watch_all()
                if work is None:
                    if not await stop.finishes_first(self._all_synced()):
                        break
                    work = asyncio.create_task(self._controller.run(stop), name=NAME)
                if work.done():
                    break
                await stop.sleep(RESYNC_S)
            if work is not None:
                await work
        finally:
            await self._shut_down(work)

    async def _shut_down(self, work: asyncio.Task[None] | None) -> None:
        if work is not None and not work.done():
            work.cancel()
            await asyncio.wait([work])
        self._watched_for = None
        for resource in list(self._monitors):
            await self._unwatch(resource)

    # What is watched

    async def _watch_all(self) -> None:
        """Watches what is new; stops watching what the server says it no longer has."""
        self._discovery.forget()
        try:
            discovered = await self._discovery.all()
        except HolokubeError as error:
            self._log.warning("Cannot ask for the resources that there are, trying again", error=str(error))
            return
        if discovered is self._watched_for:
            return
        for item in reversed(discovered):
            # The server's preferred version of a kind comes first, so it is written last.
            resource = item.resource
            self._served[resource.api_version, resource.kind] = resource
            self._kinds[resource.group, resource.kind] = resource
        wanted = {item.resource for item in decisions.collectable(discovered)}
        for resource in [resource for resource in self._monitors if resource not in wanted]:
            # One answer that is missing may hide a group that is there: ask for the resource itself.
            if await self._is_gone(resource):
                await self._unwatch(resource)
                self._served.pop((resource.api_version, resource.kind), None)
                self._kinds.pop((resource.group, resource.kind), None)
        covered = {(resource.group, resource.plural) for resource in self._monitors}
        for resource in sorted(wanted, key=str):
            if (resource.group, resource.plural) not in covered:
                self._watch(resource)
        # What is watched without being told of has to be asked for again; else the same answer changes nothing.
        self._watched_for = discovered if wanted.issuperset(self._monitors) else None

    async def _is_gone(self, resource: Resource) -> bool:
        try:
            await self._client.list(resource, limit=1)
        except NotFound:
            return True
        except HolokubeError:
            return False
        return False

    def _watch(self, resource: Resource) -> None:
        informer = self._shared.get(resource) or self._known(resource)
        owned = informer is None
        if informer is None:
            informer = Informer(self._clock, self._client, resource, rng=self._rng.fork(str(resource)))
            informer.start()
        on_event = partial(self._on_event, informer.lister)
        self._monitors[resource] = _Monitor(informer, owned, informer.listen(on_event, heeds=_HEEDED))

    async def _unwatch(self, resource: Resource) -> None:
        monitor = self._monitors.pop(resource)
        monitor.informer.dismiss(monitor.listener)
        if monitor.owned:
            await monitor.informer.stop()

    async def _all_synced(self) -> None:
        """A resource that cannot be read, its webhook being down, say, must not hold up all the others."""
        try:
            async with asyncio.timeout(INITIAL_SYNC_S):
                for monitor in list(self._monitors.values()):
                    await monitor.informer.synced()
        except TimeoutError:
            missing = [str(r) for r, monitor in self._monitors.items() if not monitor.informer.has_synced]
            self._log.warning("Not everything could be read in time, collecting without it", missing=missing)

    def _on_event(
        self, cached: Lister, _type: EventType, old: JsonObject | None, new: JsonObject | None
    ) -> None:
        if new is not None and (meta := new["metadata"]).get("deletionTimestamp"):
            latest = cached.by_key(object_key(new))
            if latest is None or latest["metadata"].get("uid") != meta.get("uid"):
                # It is gone by now, as is told next: what its deletion asked for is asked for by that.
                return
        effects = self.graph.observe(old, new)
        if effects is not NOTHING:
            self._apply(effects)

    def _apply(self, effects: Effects) -> None:
        for uid in effects.to_orphan:
            self._controller.enqueue(("orphan", uid))
        for uid in effects.to_delete:
            self._controller.enqueue(("delete", uid))
        if self._recorder is not None:
            for dependent, owner in effects.wrong_namespace:
                message = f'ownerRef {owner} does not exist in namespace "{dependent.namespace}"'
                self._recorder.event(_reference(dependent), WARNING, "OwnerRefInvalidNamespace", message)

    # What is done

    async def reconcile(self, key: Key) -> Result | None:
        """Looks at one object and does what its state, its owners and its dependents ask for."""
        action, uid = key
        node = self.graph.get(uid)
        if node is None:
            return None
        try:
            if action == "orphan":
                await self._orphan(node)
                return None
            return await self._attempt_delete(node)
        except UnknownKind as error:
            self._log.debug("Kind is not served, looking again later", object=str(node.identity), error=str(error))
            return Result(requeue_after_s=RESYNC_S)

    async def _attempt_delete(self, node: Node) -> Result | None:
        if node.being_deleted and not node.deleting_dependents:
            return None
        latest, looked_at = await self._get(node.identity)
        if latest is None:
            return self._found_absent(node, looked_at)
        if node.deleting_dependents:
            await self._delete_dependents(node, latest)
            return None
        if node.virtual:
            return None
        owners = []
        for reference in owners_of(latest):
            state = await self._owner_state(reference, node.identity)
            if state is None:
                return None
            owners.append((reference.uid, state))
        verdict = decisions.judge(
            latest,
            owners,
            has_dependents=bool(node.dependents),
            dependent_waits=bool(node.dependents) and any(one.deleting_dependents for one in node.dependents.values()),
        )
        if isinstance(verdict, DropReferences):
            await self._patch(latest, partial(decisions.without_owners, owner_uids=verdict.owner_uids))
        elif isinstance(verdict, Delete):
            return await self._delete(node, latest, verdict)
        return None

    def _found_absent(self, node: Node, looked_at: Identity) -> Result | None:
        effects = self.graph.found_absent(looked_at)
        # Dependents that disagree on what a uid is make it turn up again: at a growing distance.
        again = effects.to_delete.pop(node.identity.uid, self) is None
        self._apply(effects)
        return Result(requeue_after_s=0) if again else None

    async def _delete(self, node: Node, latest: JsonObject, verdict: Delete) -> Result | None:
        if verdict.unblock:
            latest = await self._patch(latest, decisions.unblocked) or latest
        meta = latest["metadata"]
        try:
            await self._client.delete(
                self._resource(latest["apiVersion"], latest["kind"]),
                meta["name"],
                meta.get("namespace"),
                propagation=verdict.propagation,
                uid=meta["uid"],
                # Somebody may have given it a new owner since we looked.
                resource_version=meta["resourceVersion"],
            )
        except NotFound:
            return self._found_absent(node, node.identity)
        return None

    async def _delete_dependents(self, node: Node, latest: JsonObject) -> None:
        blocking = node.blocking_dependents()
        if not blocking:
            await self._patch(latest, partial(decisions.without_finalizer, finalizer=FOREGROUND_FINALIZER))
            return
        for dependent in blocking:
            if not dependent.deleting_dependents:
                self._controller.enqueue(("delete", dependent.identity.uid))

    async def _orphan(self, node: Node) -> None:
        uid = frozenset({node.identity.uid})
        for dependent in list(node.dependents.values()):
            latest, _ = await self._get(dependent.identity)
            if latest is not None:
                await self._patch(latest, partial(decisions.without_owners, owner_uids=uid))
        latest, _ = await self._get(node.identity)
        if latest is not None:
            await self._patch(latest, partial(decisions.without_finalizer, finalizer=ORPHAN_FINALIZER))

    async def _owner_state(self, reference: OwnerReference, item: Identity) -> OwnerState | None:
        """How things stand with an owner; None when the reference is nonsense and the item is left alone."""
        identity = reference.identity(item.namespace)
        if identity in self._absent or reference.identity("") in self._absent:
            return OwnerState.DANGLING
        if self._resource(reference.api_version, reference.kind).namespaced and not item.namespace:
            # What belongs to the whole cluster cannot be owned by what lives in a namespace.
            return None
        owner, looked_at = await self._get(identity)
        if owner is None:
            self._absent.add(looked_at)
        return decisions.owner_state(owner, reference.uid)

    async def _get(self, identity: Identity) -> tuple[JsonObject | None, Identity]:
        """The live object, None when it or its uid is gone; and the identity with its true namespace."""
        resource = self._resource(identity.api_version, identity.kind)
        if not resource.namespaced:
            identity = identity._replace(namespace="")
        elif not identity.namespace:
            return None, identity
        try:
            latest = await self._client.get(resource, identity.name, identity.namespace or None)
        except NotFound:
            return None, identity
        if latest["metadata"].get("uid") != identity.uid:
            return None, identity
        if "apiVersion" not in latest or "kind" not in latest:
            latest = {"apiVersion": resource.api_version, "kind": resource.kind, **latest}
        return latest, identity

    async def _patch(
        self, obj: JsonObject, make_patch: Callable[[Mapping[str, Any]], JsonObject | None]
    ) -> JsonObject | None:
        """Patches what was just read; a newer version is a conflict, and the key comes round again."""
        patch = make_patch(obj)
        if patch is None:
            return None
        meta = obj["metadata"]
        resource = self._resource(obj["apiVersion"], obj["kind"])
        try:
            return await self._client.patch(resource, meta["name"], patch, namespace=meta.get("namespace"))
        except (NotFound, Invalid):
            # Gone, or made anew under the same name: the uid in the patch keeps it off the new one.
            return None

    def _resource(self, api_version: str, kind: str) -> Resource:
        """The version referred to if it is served, else whichever is: objects are the same in all."""
        found = self._served.get((api_version, kind)) or self._kinds.get((group_of(api_version), kind))
        if found is None:
            raise UnknownKind(f"the server serves no kind {kind!r} in {api_version!r}")
        return found


def _reference(identity: Identity) -> JsonObject:
    reference: JsonObject = {"kind": identity.kind, "apiVersion": identity.api_version}
    if identity.namespace:
        reference["namespace"] = identity.namespace
    return {**reference, "name": identity.name, "uid": identity.uid}


_SHARED: Final = (
    PODS, NODES, NAMESPACES, LEASES, SERVICES, ENDPOINTS, ENDPOINT_SLICES, SERVICE_ACCOUNTS, CONFIG_MAPS,
    PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, REPLICATION_CONTROLLERS, REPLICA_SETS, DEPLOYMENTS,
    STATEFUL_SETS, DAEMON_SETS, CONTROLLER_REVISIONS, JOBS, CRON_JOBS, POD_DISRUPTION_BUDGETS,
    HORIZONTAL_POD_AUTOSCALERS, RESOURCE_QUOTAS,
)  # fmt: skip
"""What the other controllers watch as well; every server has them."""


def build(
    clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder, rng: Rng
) -> GarbageCollector:
    """The garbage collector, on the shared informers as far as there are any."""
    shared = [informers.get(resource) for resource in _SHARED]
    return GarbageCollector(
        clock, client, shared=shared, known=informers.known, recorder=recorder, rng=rng.fork(NAME)
    )
