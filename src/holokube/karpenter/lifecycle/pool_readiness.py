"""Whether the node class of a pool can be used: the pool's condition NodeClassReady."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.karpenter.api.labels import NODE_CLASS_READY, READY
from holokube.karpenter.api.node_claim import NodeClassRef
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_POOLS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.conditions import CLASS_CONDITIONS, POOL_CONDITIONS
from holokube.karpenter.lifecycle.sources import class_ref_of_pool, pools_of_class
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_status
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self


class PoolReadiness(ControllerComponent):
    """A component: looks whenever a pool or a node class changes."""

    name = "nodepool.readiness"

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, provider: CloudProvider) -> None:
        self._clock = clock
        self._client = client
        self._provider = provider
        self._pools = informers.get(NODE_POOLS)
        self._controller = Controller(
            clock, self.name, self.reconcile,
            sources=[
                InformerSource(self._pools, enqueue_self),
                InformerSource(informers.get(KWOK_NODE_CLASSES), pools_of_class(self._pools)),
            ],
        )  # fmt: skip

    async def reconcile(self, name: str) -> Result | None:
        """Brings one pool's condition up to date."""
        pool = self._pools.lister.get(name)
        if pool is None:
            return None
        ref = NodeClassRef.from_json(class_ref_of_pool(pool))
        if not self._provider.supports(ref):
            return None
        changed = with_class_readiness(pool, self._provider.node_class(ref), self._clock.time())
        await patch_status(self._client, NODE_POOLS, pool, changed)
        return None


def with_class_readiness(pool: JsonObject, node_class: JsonObject | None, now_s: float) -> JsonObject:
    """The pool with the condition as it should be."""
    if node_class is None:
        reason, message = "NodeClassNotFound", "NodeClass not found on cluster"
    elif node_class["metadata"].get("deletionTimestamp"):
        reason, message = "NodeClassTerminating", "NodeClass is Terminating"
    else:
        ready = CLASS_CONDITIONS.get(node_class, READY)
        status = CLASS_CONDITIONS.status(node_class, READY)
        if status == "True":
            return POOL_CONDITIONS.with_true(pool, NODE_CLASS_READY, now_s)
        if status == "Unknown" or ready is None:
            reason, message = "NodeClassReadinessUnknown", "Node Class Readiness Unknown"
        else:
            reason, message = ready.get("reason") or "NodeClassNotReady", ready.get("message") or ""
    return POOL_CONDITIONS.with_false(pool, NODE_CLASS_READY, now_s, reason, message)
