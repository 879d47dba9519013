"""Removes pods that nobody else will: of nodes that are gone or out of service, never bound, or long over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.base.rng import Rng
from holokube.client.client import Client, PatchType
from holokube.client.informer import EventType
from holokube.client.resources import NODES, PODS
from holokube.kube.errors import NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.events import EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.result import Result
from holokube.runtime.singleton import Singleton
from holokube.workloads import pod_cleaning_decisions as decisions
from holokube.workloads.pod_cleaning_decisions import Removal
from holokube.workloads.pod_indexes import (
    ENDING_INDEX,
    NODE_INDEX,
    TERMINATED,
    TERMINATING,
    pods_by_ending,
    pods_by_node,
)
from holokube.workloads.taint_eviction_decisions import disruption_condition

NAME: Final = "pod-garbage-collector-controller"
PERIOD_S: Final = 20.0


class NodeNames:
    """The names of all nodes, so that a round need not ask for each node that has pods."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def on_event(self, _type: EventType, old: JsonObject | None, new: JsonObject | None, /) -> None:
        """Takes over one change, as the informer of nodes tells it."""
        if new is not None:
            self.names.add(new["metadata"]["name"])
        elif old is not None:
            self.names.discard(old["metadata"]["name"])


class PodCleaner:
    """One round over the few pods that may need it; indexes spare it the others."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        *,
        terminated_threshold: int = decisions.TERMINATED_THRESHOLD,
    ) -> None:
        self._clock = clock
        self._client = client
        self._threshold = terminated_threshold
        self._pods_by_node = pods_by_node(informers)
        self._pods = pods_by_ending(informers).lister
        self._node_informer = informers.get(NODES)
        self._nodes = self._node_informer.lister
        self._node_names = informers.attached(NODES, NodeNames)
        self._missing_since: dict[str, datetime] = {}
        self._log = get_logger("holokube.workloads.pod_cleaning")

    async def clean(self) -> Result:
        await self._pods_by_node.synced()
        await self._node_informer.synced()
        terminated = self._pods.by_index(ENDING_INDEX, TERMINATED)
        terminating = self._pods.by_index(ENDING_INDEX, TERMINATING)
        removals = [
            *decisions.surplus_terminated(terminated, self._threshold),
            *decisions.stuck_terminating(terminating, self._nodes),
            *await self._orphaned(),
        ]
        for removal in removals:
            try:
                await self._remove(removal)
            except HolokubeError as error:
                # One that cannot be removed must not spare the others; it has its turn in the next round.
                name = removal.pod["metadata"]["name"]
                self._log.warning("Pod not removed, trying again", pod=name, error=str(error))
        return Result(requeue_after_s=PERIOD_S)

    async def _orphaned(self) -> list[Removal]:
        known = self._node_names.names
        if self._pods.is_indexed_within(NODE_INDEX, known):
            self._missing_since.clear()
            return []
        now = self._clock.now()
        missing = sorted(name for name in self._pods.index_values(NODE_INDEX) if name not in known)
        self._missing_since = {name: self._missing_since.get(name, now) for name in missing}
        removals = []
        for name, since in self._missing_since.items():
            if now - since < timedelta(seconds=decisions.QUARANTINE_S):
                continue
            if await self._is_gone(name):
                removals += decisions.orphaned(self._pods.by_index(NODE_INDEX, name))
        return removals

    async def _is_gone(self, name: str) -> bool:
        """Asks the server itself: the cache may be behind."""
        try:
            await self._client.get(NODES, name)
        except NotFound:
            return True
        except HolokubeError as error:
            self._log.warning("Cannot ask for a node, trying again", node=name, error=str(error))
        return False

    async def _remove(self, removal: Removal) -> None:
        pod = removal.pod
        meta = pod["metadata"]
        try:
            if removal.fails:
                patch = {"metadata": {"uid": meta["uid"]}, "status": self._failed(removal)}
                await self._client.patch_status(
                    PODS, meta["name"], patch, namespace=meta["namespace"], type=PatchType.STRATEGIC
                )
            await self._client.delete(PODS, meta["name"], meta["namespace"], grace_s=0, uid=meta["uid"])
        except NotFound:
            return

    def _failed(self, removal: Removal) -> JsonObject:
        status: JsonObject = {"phase": "Failed"}
        if removal.disruption:
            condition = disruption_condition(
                removal.pod, "DeletionByPodGC", removal.disruption, self._clock.now()
            )
            if condition is not None:
                status["conditions"] = [condition]
        return status


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - as above
    *,
    terminated_threshold: int = decisions.TERMINATED_THRESHOLD,
) -> Singleton:
    """The pod garbage collector."""
    cleaner = PodCleaner(clock, client, informers, terminated_threshold=terminated_threshold)
    return Singleton(clock, NAME, cleaner.clean)
