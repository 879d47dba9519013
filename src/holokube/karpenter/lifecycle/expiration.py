"""Ends claims that have reached their age, whatever runs on them; the drain is as gentle as any other."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.client.audience import DELETION, SPEC
from holokube.client.client import Client
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.disruption.pods import is_reschedulable
from holokube.karpenter.metrics import EXPIRED, KarpenterMetrics
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.writes import delete_object
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

WORKERS: Final = 4


class Expiration(ControllerComponent):
    """A component: ``spec.expireAfter``."""

    name = "nodeclaim.expiration"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        metrics: KarpenterMetrics,
        provider: CloudProvider,
        state: ClusterState,
    ) -> None:
        self._clock = clock
        self._client = client
        self._metrics = metrics
        self._provider = provider
        self._state = state
        self._claims = informers.get(NODE_CLAIMS)
        self._log = get_logger("holokube.karpenter.expiration")
        self._controller = Controller(
            clock, self.name, self.reconcile, workers=WORKERS,
            sources=[InformerSource(self._claims, enqueue_self, heeds=SPEC | DELETION)],
        )  # fmt: skip

    async def reconcile(self, name: str) -> Result | None:
        """Deletes the claim when its time has come, or looks again then."""
        stored = self._claims.lister.get(name)
        if stored is None:
            return None
        claim = NodeClaim.of(stored)
        left_s = remaining_s(claim, self._clock.time())
        if left_s is None or claim.is_deleting or not self._provider.supports(claim.node_class_ref):
            return None
        if left_s > 0:
            return Result(requeue_after_s=left_s)
        pods = sum(map(is_reschedulable, self._state.pods_on(claim.node_name)))
        if await delete_object(self._client, NODE_CLAIMS, stored):
            self._log.debug("deleting expired nodeclaim", claim=name)
            self._metrics.claim_disrupted(stored, EXPIRED, pods=pods)
        return None


def remaining_s(claim: NodeClaim, now_s: float) -> float | None:
    """How long the claim may still live; None for as long as it likes."""
    if claim.expire_after_s is None:
        return None
    return claim.created_s + claim.expire_after_s - now_s
