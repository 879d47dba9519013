"""Counts what is used of ResourceQuotas: at first, when something goes, and every five minutes.

Admission charges a quota for what is created; what is deleted is given back here. Objects are counted live,
between reading the quota and writing it with its version: a charge in between is a conflict, never lost.
Pods, services, claims, config maps and replication controllers are given back at once, all others with the
next round.
"""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.discovery import Discovery
from holokube.client.resources import (
    BUILT_IN,
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource, Need, enqueue_self
from holokube.workloads import quota_decisions as decisions
from holokube.workloads.pod_status import is_terminated, is_terminating
from holokube.workloads.quota_decisions import GroupResource

NAME: Final = "resourcequota-controller"
WORKERS: Final = 5
RESYNC_S: Final = 300.0
"""``--resource-quota-sync-period``."""
_PREFERRED: Final = {(resource.group, resource.plural): resource for resource in reversed(BUILT_IN)}


class Quotas:
    """Counts one quota."""

    def __init__(self, clock: Clock, client: Client, informers: InformerSet) -> None:
        self._clock = clock
        self._client = client
        self._discovery = Discovery(client)
        self._quotas = informers.get(RESOURCE_QUOTAS).lister

    def has_quotas(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether there are quotas where something changed."""
        if not len(self._quotas):
            return False
        latest = new if new is not None else old
        return latest is not None and self._quotas.has_any(latest["metadata"]["namespace"])

    def quotas_of(self, obj: JsonObject) -> list[str]:
        return [object_key(quota) for quota in self._quotas.list(obj["metadata"]["namespace"])]

    async def reconcile(self, key: str) -> Result | None:
        cached = self._quotas.by_key(key)
        if cached is None:
            return None
        meta = cached["metadata"]
        try:
            quota = await self._client.get(RESOURCE_QUOTAS, meta["name"], meta["namespace"])
            objects: dict[GroupResource, list[JsonObject]] = {}
            for wanted in decisions.counted_resources(quota):
                resource = await self._resource(wanted)
                if resource is not None:
                    objects[wanted] = (await self._client.list_all(resource, meta["namespace"])).items
            status = decisions.status_of(quota, objects, self._clock.now())
            if status != quota.get("status"):
                await self._client.update_status(RESOURCE_QUOTAS, {**quota, "status": status})
        except NotFound:
            return None
        return Result(requeue_after_s=RESYNC_S)

    async def _resource(self, wanted: GroupResource) -> Resource | None:
        """Where to count; None for what the server does not serve."""
        known = _PREFERRED.get(wanted)
        if known is not None:
            return known
        group, plural = wanted
        try:
            return await self._discovery.find(f"{plural}.{group}" if group else plural)
        except UsageError:
            return None


def _frees(change: Change) -> bool:
    """Whether a change may give something back: deletions, pods that end, claims and services that change."""
    if change.new is None:
        return True
    if change.old is None:
        return False
    if change.new["kind"] == "Pod":
        return (is_terminated(change.new), is_terminating(change.new)) != (
            is_terminated(change.old), is_terminating(change.old)
        )  # fmt: skip
    return bool(change.old.get("spec") != change.new.get("spec"))


def _is_unsettled(change: Change) -> bool:
    return change.new is not None and (change.old is None or not decisions.is_settled(change.new))


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - as above
) -> Controller[str]:
    """The controller of ResourceQuotas."""
    quotas = Quotas(clock, client, informers)
    informer = informers.get(RESOURCE_QUOTAS)
    watched = (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS, CONFIG_MAPS, REPLICATION_CONTROLLERS)
    return Controller(
        clock, NAME, quotas.reconcile, workers=WORKERS,
        sources=[
            InformerSource(informer, enqueue_self, predicates=[_is_unsettled]),
            *(
                InformerSource(
                    informers.get(r), quotas.quotas_of, predicates=[_frees], concerns=quotas.has_quotas,
                    needs=Need(informer, lambda: len(informer.lister) > 0),
                )
                for r in watched
            ),
        ],
    )  # fmt: skip
