"""Writes the hash of its template on every pool; claims are compared with it."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.client.audience import LABELS
from holokube.client.client import Client
from holokube.karpenter.api.labels import DRIFTED, NODEPOOL_HASH, NODEPOOL_HASH_VERSION
from holokube.karpenter.api.node_claim import NodeClaim, NodeClassRef
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.pool_hash import HASH_VERSION
from holokube.karpenter.api.resources import NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.lifecycle.sources import BY_POOL, class_ref_of_pool, pools_of_claim
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_object
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self


class PoolHashKeeper(ControllerComponent):
    """A component: looks whenever a pool changes."""

    name = "nodepool.hash"

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, provider: CloudProvider) -> None:
        self._client = client
        self._provider = provider
        self._pools = informers.get(NODE_POOLS)
        self._claims = informers.indexed(NODE_CLAIMS, BY_POOL, pools_of_claim, heeds=LABELS)
        self._controller = Controller(
            clock, self.name, self.reconcile, sources=[InformerSource(self._pools, enqueue_self)]
        )

    async def reconcile(self, name: str) -> Result | None:
        """Brings the hash of one pool up to date; first that of its claims, if it is reckoned otherwise now."""
        stored = self._pools.lister.get(name)
        if stored is None or not self._provider.supports(NodeClassRef.from_json(class_ref_of_pool(stored))):
            return None
        try:
            pool = NodePool.of(stored)
        except ValueError:
            # Validation tells it in the pool's condition.
            return None
        if pool.annotations.get(NODEPOOL_HASH_VERSION) != HASH_VERSION:
            for claim in self._claims.lister.by_index(BY_POOL, name):
                await patch_object(self._client, NODE_CLAIMS, claim, rehashed(claim, pool.hash))
        hashed = _annotated(stored, {NODEPOOL_HASH: pool.hash, NODEPOOL_HASH_VERSION: HASH_VERSION})
        await patch_object(self._client, NODE_POOLS, stored, hashed)
        return None


def rehashed(claim: JsonObject, pool_hash: str) -> JsonObject:
    """The claim with the present version of the hash. One that has drifted keeps its hash, and stays so."""
    view = NodeClaim.of(claim)
    if view.annotations.get(NODEPOOL_HASH_VERSION) == HASH_VERSION:
        return claim
    new = {NODEPOOL_HASH_VERSION: HASH_VERSION}
    if view.condition(DRIFTED) is None:
        new[NODEPOOL_HASH] = pool_hash
    return _annotated(claim, new)


def _annotated(obj: JsonObject, annotations: dict[str, str]) -> JsonObject:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}}
