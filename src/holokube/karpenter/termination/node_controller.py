"""The end of a Node: taint, drain, detachment of volumes, end of the instance; then the finalizer goes."""

from __future__ import annotations

from typing import Final, TypeAlias

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.resources import NODES, PERSISTENT_VOLUME_CLAIMS, VOLUME_ATTACHMENTS
from holokube.karpenter import events
from holokube.karpenter.api.labels import (
    DISRUPTED_TAINT,
    DRAINED,
    EXCLUDE_BALANCERS_LABEL,
    INSTANCE_TERMINATING,
    TERMINATION_FINALIZER,
    TERMINATION_TIMESTAMP,
    VOLUMES_DETACHED,
)
from holokube.karpenter.api.node_claim import NodeClaim, seconds_of
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.events import Publisher
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, only
from holokube.karpenter.provider.protocol import CloudProvider, InstanceGone
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.termination.drain import drain
from holokube.karpenter.termination.eviction_queue import EvictionQueue
from holokube.karpenter.termination.volumes import awaited_attachments
from holokube.karpenter.writes import delete_object, patch_object, patch_status
from holokube.kube.conditions import is_true
from holokube.kube.taints import taints_of
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.ratelimit import ExponentialBackoff
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

_Stage: TypeAlias = tuple[JsonObject | None, float | None]
"""The claim after a stage, and how long to wait before the stage is looked at again; None to go on."""

WORKERS: Final = 32
BACKOFF_S: Final = (0.1, 10.0)
MIN_DRAIN_S: Final = 5.0
DRAIN_POLL_S: Final = 1.0
INSTANCE_POLL_S: Final = 5.0


class NodeTermination(ControllerComponent):
    """A component: Nodes of ours that are being deleted."""

    name = "node.termination"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        publisher: Publisher,
        metrics: KarpenterMetrics,
        provider: CloudProvider,
        state: ClusterState,
        evictions: EvictionQueue,
    ) -> None:
        self._clock = clock
        self._client = client
        self._publisher = publisher
        self._metrics = metrics
        self._provider = provider
        self._state = state
        self._evictions = evictions
        self._nodes = informers.get(NODES)
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._attachments = informers.get(VOLUME_ATTACHMENTS)
        self._volume_claims = informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._log = get_logger("holokube.karpenter.termination")
        self._controller = Controller(
            clock, self.name, self.reconcile, workers=WORKERS, limiter=ExponentialBackoff(*BACKOFF_S),
            sources=[InformerSource(self._nodes, enqueue_self, concerns=self._concerns)],
        )  # fmt: skip

    def _concerns(self, _old: JsonObject | None, new: JsonObject | None) -> bool:
        return (new is not None and bool(new["metadata"].get("deletionTimestamp"))) or self._is_due()

    async def reconcile(self, name: str) -> Result | None:
        """The next step for a Node that is being deleted."""
        node = self._nodes.lister.by_key(name)
        if node is None or not node["metadata"].get("deletionTimestamp") or not self._provider.owns_node(node):
            return None
        if TERMINATION_FINALIZER not in (node["metadata"].get("finalizers") or ()):
            return None
        provider_id = (node.get("spec") or {}).get("providerID") or ""
        claim = only(self._claims, provider_id)
        if claim is not None and not claim["metadata"].get("deletionTimestamp"):
            await delete_object(self._client, NODE_CLAIMS, claim)
        if not is_true(node, "Ready") and await self._is_gone(provider_id):
            await self._let_go(node)
            return None
        tainted = await patch_object(self._client, NODES, node, leaving(node))
        if tainted is None:
            return None
        return await self._terminate(tainted, claim)

    async def _is_gone(self, provider_id: str) -> bool:
        try:
            await self._provider.get(provider_id)
        except InstanceGone:
            return True
        return False

    async def _terminate(self, node: JsonObject, claim: JsonObject | None) -> Result | None:
        made, wait_s = claim, None
        for stage in (self._drain, self._detach, self._end_instance):
            made, wait_s = await stage(node, made)
            if wait_s is not None:
                break
        if claim is not None and made is not None and made is not claim:
            written = await patch_status(self._client, NODE_CLAIMS, claim, made)
            was_drained = CLAIM_CONDITIONS.is_true(claim, DRAINED)
            if written is not None and CLAIM_CONDITIONS.is_true(made, DRAINED) and not was_drained:
                self._metrics.node_drained(node)
        if wait_s is not None:
            return Result(requeue_after_s=wait_s)
        await self._let_go(node)
        return None

    async def _drain(self, node: JsonObject, claim: JsonObject | None) -> _Stage:
        """Pods leave; at least five seconds are given to those that were bound before the taint was seen."""
        now_s = self._clock.time()
        if claim is not None and CLAIM_CONDITIONS.get(claim, DRAINED) is None:
            claim = CLAIM_CONDITIONS.with_unknown(claim, DRAINED, now_s, "Draining", "Draining")
        deadline_s = self._deadline_s(node, claim)
        step = drain(self._state.pods_on(node["metadata"]["name"]), deadline_s, now_s)
        self._evictions.add(step.leaving, deadline_s)
        if not step.is_done:
            self._publisher.warning(
                node, events.FAILED_DRAINING, f"Failed to drain node, {step.waiting} pods are waiting to be evicted"
            )
            return claim, DRAIN_POLL_S
        if claim is None:
            return None, None
        since_s = CLAIM_CONDITIONS.since_s(claim, DRAINED)
        is_draining = CLAIM_CONDITIONS.status(claim, DRAINED) == "Unknown"
        if is_draining and (since_s is None or now_s - since_s < MIN_DRAIN_S):
            return claim, DRAIN_POLL_S
        return CLAIM_CONDITIONS.with_true(claim, DRAINED, now_s), None

    async def _detach(self, node: JsonObject, claim: JsonObject | None) -> _Stage:
        """Volumes of pods that left are detached, by somebody else; after the deadline nobody waits for it."""
        now_s, name = self._clock.time(), node["metadata"]["name"]
        volume_claims = {object_key(one): one for one in self._volume_claims.lister.list()}
        awaited = awaited_attachments(
            self._attachments.lister.list(), name, self._state.pods_on(name), volume_claims, now_s
        )
        if not awaited:
            return (CLAIM_CONDITIONS.with_true(claim, VOLUMES_DETACHED, now_s) if claim is not None else None), None
        deadline_s = self._deadline_s(node, claim)
        if deadline_s is None or now_s <= deadline_s:
            names = ", ".join(one["metadata"]["name"] for one in awaited[:5])
            more = f" and {len(awaited) - 5} other(s)" if len(awaited) > 5 else ""
            self._publisher.normal(
                node, events.AWAITING_VOLUME_DETACHMENT,
                f"Awaiting deletion of bound volumeattachments ({names}{more})",
            )  # fmt: skip
            if claim is not None:
                word = "AwaitingVolumeDetachment"
                claim = CLAIM_CONDITIONS.with_unknown(claim, VOLUMES_DETACHED, now_s, word, word)
            return claim, DRAIN_POLL_S
        if claim is not None:
            word = "TerminationGracePeriodElapsed"
            claim = CLAIM_CONDITIONS.with_false(claim, VOLUMES_DETACHED, now_s, word, word)
        return claim, None

    async def _end_instance(self, _node: JsonObject, claim: JsonObject | None) -> _Stage:
        if claim is None:
            return None, None
        gone = False
        try:
            await self._provider.delete(NodeClaim.of(claim))
        except InstanceGone:
            gone = True
        made = CLAIM_CONDITIONS.with_true(claim, INSTANCE_TERMINATING, self._clock.time())
        return made, None if gone else INSTANCE_POLL_S

    def _deadline_s(self, node: JsonObject, claim: JsonObject | None) -> float | None:
        if claim is None:
            return None
        deadline_s = NodeClaim.of(claim).termination_deadline_s
        if deadline_s is not None:
            text = NodeClaim.of(claim).annotations[TERMINATION_TIMESTAMP]
            self._publisher.warning(
                node, events.TERMINATION_GRACE_PERIOD_EXPIRING, f"All pods will be deleted by {text}"
            )
        return deadline_s

    async def _let_go(self, node: JsonObject) -> None:
        metadata = node["metadata"]
        kept = [one for one in metadata["finalizers"] if one != TERMINATION_FINALIZER]
        await patch_object(self._client, NODES, node, {**node, "metadata": {**metadata, "finalizers": kept}})
        now_s = self._clock.time()
        self._log.info("deleted node", node=metadata["name"])
        self._metrics.node_terminated(
            node, now_s - (seconds_of(metadata.get("deletionTimestamp")) or now_s),
            now_s - (seconds_of(metadata.get("creationTimestamp")) or now_s),
        )  # fmt: skip


def leaving(node: JsonObject) -> JsonObject:
    """The Node with the taint that keeps new pods away, and out of load balancers; the same if it is so already."""
    metadata, spec = node["metadata"], node.get("spec") or {}
    labels = metadata.get("labels") or {}
    if any(taint.is_same(DISRUPTED_TAINT) for taint in taints_of(node)) and EXCLUDE_BALANCERS_LABEL in labels:
        return node
    taints = [taint for taint in spec.get("taints") or () if taint["key"] != DISRUPTED_TAINT.key]
    return {
        **node,
        "metadata": {**metadata, "labels": {**labels, EXCLUDE_BALANCERS_LABEL: "karpenter"}},
        "spec": {**spec, "taints": [*taints, DISRUPTED_TAINT.to_json()]},
    }
