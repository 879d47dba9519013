"""Writes into every pool what its nodes have in all."""

from __future__ import annotations

import math
from typing import Final

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.client.informer import EventType
from holokube.karpenter.api.node_claim import NodeClassRef
from holokube.karpenter.api.node_pool import NODES
from holokube.karpenter.api.resources import NODE_POOLS
from holokube.karpenter.component import ControllerComponent, next_turn_s
from holokube.karpenter.lifecycle.sources import class_ref_of_pool
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.writes import patch_status
from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceVector, to_json
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource, enqueue_self

PERIOD_S: Final = 5.0
UNSYNCED_S: Final = 1.0
_ALWAYS: Final = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE, NODES)


class PoolCounter(ControllerComponent):
    """A component: ``status.resources`` and ``status.nodes``, every five seconds."""

    name = "nodepool.counter"

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, provider: CloudProvider, state: ClusterState
    ) -> None:
        self._clock = clock
        self._client = client
        self._provider = provider
        self._state = state
        self._pools = informers.get(NODE_POOLS)
        self._told: dict[str, tuple[JsonObject, int]] = {}
        """Pools that told the truth, each as it was then, with the version of what was counted."""
        self._resting: dict[str, float] = {}
        """Those that still do, as nothing that is counted has changed; each with a time, past perhaps, at which it
        would have been counted."""
        self._controller = Controller(
            clock, self.name, self.reconcile, postpone=self._postpone,
            sources=[InformerSource(self._pools, enqueue_self, predicates=[_is_new])],
        )  # fmt: skip
        state.before_recounts(self._end_all_rest)
        self._pools.add_handler(self._on_pool)

    def _postpone(self, name: str) -> float | None:
        """Counts a pool that told the truth: if it still does, there is nothing to be written until it may not."""
        pool, told = self._pools.lister.get(name), self._told.get(name)
        if pool is None or told is None or told[0] is not pool or not self._state.is_synced():
            return None
        if self._state.usage_version != told[1]:
            return None
        self._resting[name] = self._clock.monotonic() + PERIOD_S
        return math.inf

    def _on_pool(self, _type: EventType, old: JsonObject | None, new: JsonObject | None) -> None:
        pool = new if new is not None else old
        if pool is not None:
            self._end_rest(pool["metadata"]["name"])

    def _end_all_rest(self) -> None:
        for name in (*self._resting,) if self._resting else ():
            self._end_rest(name)

    def _end_rest(self, name: str) -> None:
        """Has a pool counted when its turn would have come if it had been counted all the time."""
        due_s = self._resting.pop(name, None)
        if due_s is not None:
            self._controller.queue.add_at(name, next_turn_s(due_s, PERIOD_S, self._clock.monotonic()))

    async def reconcile(self, name: str) -> Result | None:
        """Counts one pool."""
        # Whoever is started anew is told of all pools, whatever they were doing.
        self._resting.pop(name, None)
        pool = self._pools.lister.get(name)
        if pool is None:
            self._told.pop(name, None)
            return None
        if not self._provider.supports(NodeClassRef.from_json(class_ref_of_pool(pool))):
            return None
        # What is missing right after a start must not be taken for zero.
        if not self._state.is_synced():
            return Result(requeue_after_s=UNSYNCED_S)
        usage, version = self._state.usage_of(name), self._state.usage_version
        told = self._told.get(name)
        if told is None or told[0] is not pool or told[1] != version:
            await patch_status(self._client, NODE_POOLS, pool, counted(pool, usage))
            self._told[name] = pool, version
        return Result(requeue_after_s=PERIOD_S)


def counted(pool: JsonObject, usage: ResourceVector) -> JsonObject:
    """The pool with its usage; common resources are told even when there is nothing of them."""
    total = {**dict.fromkeys(_ALWAYS, 0), **usage}
    told = {"resources": to_json(total), "nodes": total[NODES] // 1000}
    return {**pool, "status": {**(pool.get("status") or {}), **told}}


def _is_new(change: Change) -> bool:
    """Its own writes must not call it again."""
    return change.added
