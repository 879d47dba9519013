"""The end of a NodeClaim: first its Node, then its instance, then the claim itself."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.karpenter import events
from holokube.karpenter.api.labels import INSTANCE_TERMINATING, TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.events import Publisher
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, node_ids
from holokube.karpenter.provider.protocol import CloudProvider, InstanceGone
from holokube.karpenter.writes import delete_object, patch_object, patch_status
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.result import Result

INSTANCE_POLL_S: Final = 5.0


class ClaimFinalizer:
    """Carries out the end of claims, a step at each call."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        publisher: Publisher,
        metrics: KarpenterMetrics,
        provider: CloudProvider,
    ) -> None:
        self._clock = clock
        self._client = client
        self._publisher = publisher
        self._metrics = metrics
        self._provider = provider
        self._nodes = informers.indexed(NODES, BY_PROVIDER_ID, node_ids)
        self._log = get_logger("holokube.karpenter.termination")

    async def finalize(self, claim: JsonObject) -> Result | None:
        """The next step for a claim that is being deleted."""
        if TERMINATION_FINALIZER not in (claim["metadata"].get("finalizers") or ()):
            return None
        dated = await self._set_deadline(claim)
        if dated is None:
            return None
        view = NodeClaim.of(dated)
        # A Node that never registered has no finalizer: it goes with its instance.
        if view.is_registered and await self._delete_nodes(view):
            return None
        if view.provider_id:
            return await self._end_instance(dated)
        await self._let_go(dated)
        return None

    async def _set_deadline(self, claim: JsonObject) -> JsonObject | None:
        """Writes down, once, when the drain ends by force."""
        made = with_deadline(claim)
        if made is claim:
            return claim
        written = await patch_object(self._client, NODE_CLAIMS, claim, made)
        if written is not None:
            deadline = made["metadata"]["annotations"][TERMINATION_TIMESTAMP]
            self._publisher.warning(
                claim, events.TERMINATION_GRACE_PERIOD_EXPIRING, f"All pods will be deleted by {deadline}"
            )
        return written

    async def _delete_nodes(self, claim: NodeClaim) -> bool:
        """Whether Nodes are left; their own controller sees to their end."""
        nodes = self._nodes.lister.by_index(BY_PROVIDER_ID, claim.provider_id)
        for node in nodes:
            if not node["metadata"].get("deletionTimestamp"):
                await delete_object(self._client, NODES, node)
        return bool(nodes)

    async def _end_instance(self, claim: JsonObject) -> Result | None:
        gone = False
        try:
            await self._provider.delete(NodeClaim.of(claim))
        except InstanceGone:
            gone = True
        now_s = self._clock.time()
        made = CLAIM_CONDITIONS.with_true(claim, INSTANCE_TERMINATING, now_s)
        written = await patch_status(self._client, NODE_CLAIMS, claim, made)
        if written is None:
            return None
        if not gone:
            return Result(requeue_after_s=INSTANCE_POLL_S)
        since_s = CLAIM_CONDITIONS.since_s(made, INSTANCE_TERMINATING)
        self._metrics.instance_terminated(claim, now_s - since_s if since_s is not None else 0.0)
        await self._let_go(written)
        return None

    async def _let_go(self, claim: JsonObject) -> None:
        metadata = claim["metadata"]
        kept = [one for one in metadata["finalizers"] if one != TERMINATION_FINALIZER]
        made = {**claim, "metadata": {**metadata, "finalizers": kept}}
        await patch_object(self._client, NODE_CLAIMS, claim, made)
        self._log.info("deleted nodeclaim", claim=metadata["name"])
        self._metrics.claim_terminated(claim, self._clock.time() - (NodeClaim.of(claim).deleted_s or 0.0))


def with_deadline(claim: JsonObject) -> JsonObject:
    """The claim with the end of its drain, if it has a grace period and does not carry one yet."""
    view = NodeClaim.of(claim)
    if TERMINATION_TIMESTAMP in view.annotations or view.termination_grace_period_s is None or view.deleted_s is None:
        return claim
    deadline = format_time(view.deleted_s + view.termination_grace_period_s)
    annotations = {**view.annotations, TERMINATION_TIMESTAMP: deadline}
    return {**claim, "metadata": {**claim["metadata"], "annotations": annotations}}
