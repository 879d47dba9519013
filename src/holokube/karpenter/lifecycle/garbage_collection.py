"""Ends claims whose instance is no more, though nobody asked for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.disruption.pods import is_reschedulable
from holokube.karpenter.metrics import GARBAGE_COLLECTED, KarpenterMetrics
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, node_ids
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.writes import delete_object
from holokube.kube.conditions import is_true
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.result import Result
from holokube.runtime.singleton import Singleton
from holokube.runtime.stop import StopSignal

PERIOD_S: Final = 120.0


class GarbageCollection:
    """A component: compares claims with the provider's instances every two minutes."""

    name = "nodeclaim.garbagecollection"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        metrics: KarpenterMetrics,
        provider: CloudProvider,
        state: ClusterState,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._provider = provider
        self._state = state
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._nodes = informers.indexed(NODES, BY_PROVIDER_ID, node_ids)
        self._log = get_logger("holokube.karpenter.garbagecollection")
        self._loop = Singleton(clock, self.name, self.reconcile)

    async def run(self, stop: StopSignal) -> None:
        # An empty cache would make every instance look gone.
        if await stop.finishes_first(self._synced()):
            await self._loop.run(stop)

    async def _synced(self) -> None:
        await self._claims.synced()
        await self._nodes.synced()

    async def reconcile(self) -> Result:
        """One comparison."""
        listed = {one.provider_id for one in await self._provider.instances() if not one.is_terminating}
        claims = self._claims.lister
        ids = claims.index_values(BY_PROVIDER_ID)
        if len(ids) == len(claims) and listed.issuperset(ids):
            # Each claim has an instance of its own, and the provider lists them all, as is the rule.
            return Result(requeue_after_s=PERIOD_S)
        for claim in lost(claims.list(), listed):
            if not self._provider.supports(NodeClaim.of(claim).node_class_ref):
                continue
            nodes = self._nodes.lister.by_index(BY_PROVIDER_ID, NodeClaim.of(claim).provider_id)
            if len(nodes) == 1 and is_true(nodes[0], "Ready"):
                # Whatever the provider says: a kubelet is at work there.
                continue
            pods = sum(map(is_reschedulable, self._state.pods_on(NodeClaim.of(claim).node_name)))
            if await delete_object(self._client, NODE_CLAIMS, claim):
                self._log.info("garbage collecting nodeclaim without an instance", claim=claim["metadata"]["name"])
                self._metrics.claim_disrupted(claim, GARBAGE_COLLECTED, pods=pods)
        return Result(requeue_after_s=PERIOD_S)


def lost(claims: Iterable[JsonObject], listed: set[str]) -> list[JsonObject]:
    """Registered claims whose instance the provider does not list; others have their time-out."""
    found = []
    for claim in claims:
        # Nearly all are listed, so that is asked first.
        if ((claim.get("status") or {}).get("providerID") or "") in listed:
            continue
        view = NodeClaim.of(claim)
        if view.is_registered and not view.is_deleting:
            found.append(claim)
    return found
