"""Takes every NodeClaim through its life: finalizer, launch, registration, initialization; and to its end.

All steps are looked at each time, and what they change is written once. Whatever is written was made from the version
that it replaces, so that a reconcile on an old copy ends in a conflict and is repeated.
"""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.identity import are_same
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import NODES, PODS
from holokube.karpenter import events
from holokube.karpenter.api.labels import INITIALIZED, LAUNCHED, REGISTERED, TERMINATION_FINALIZER, UNREGISTERED_TAINT
from holokube.karpenter.api.node_claim import NodeClaim, NodeClassRef
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.events import Publisher
from holokube.karpenter.lifecycle.initialization import initialize
from holokube.karpenter.lifecycle.launch import Ending, Launcher, LaunchResult
from holokube.karpenter.lifecycle.liveness import Liveness, liveness
from holokube.karpenter.lifecycle.pool_health import PoolHealthBook
from holokube.karpenter.lifecycle.registration import register
from holokube.karpenter.lifecycle.sources import basis_of
from holokube.karpenter.metrics import INSUFFICIENT_CAPACITY, NODE_CLASS_NOT_READY, KarpenterMetrics
from holokube.karpenter.provider.indexes import BY_PROVIDER_ID, claim_ids, node_ids
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.state.pod_times import PodTimes
from holokube.karpenter.termination.claim_finalizer import ClaimFinalizer
from holokube.karpenter.writes import delete_object, patch_object, patch_status
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.ratelimit import ExponentialBackoff
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

WORKERS: Final = 64
BACKOFF_S: Final = (1.0, 60.0)
_AGAIN: Final = Result(requeue_after_s=0.0)


class ClaimController(ControllerComponent):
    """A component: the life of NodeClaims."""

    name = "nodeclaim.lifecycle"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        publisher: Publisher,
        metrics: KarpenterMetrics,
        provider: CloudProvider,
        finalizer: ClaimFinalizer,
        pool_health: PoolHealthBook,
        pod_times: PodTimes,
    ) -> None:
        self._clock = clock
        self._client = client
        self._publisher = publisher
        self._metrics = metrics
        self._provider = provider
        self._finalizer = finalizer
        self._pool_health = pool_health
        self._pod_times = pod_times
        self._launcher = Launcher(provider)
        self._claims = informers.indexed(NODE_CLAIMS, BY_PROVIDER_ID, claim_ids)
        self._nodes = informers.indexed(NODES, BY_PROVIDER_ID, node_ids)
        self._pods = informers.get(PODS)
        self._at_rest: dict[str, tuple[object, ...]] = {}
        """Claims that are up, with all that it took to see that nothing is left to be done."""
        self._looked_at: dict[str, tuple[JsonObject, list[JsonObject]]] = {}
        """Claims that are on their way up, as the last look has left them, and the Nodes that it saw."""
        self._log = get_logger("holokube.karpenter.lifecycle")
        self._controller = Controller(
            clock, self.name, self.reconcile, workers=WORKERS, limiter=ExponentialBackoff(*BACKOFF_S),
            sources=[
                InformerSource(self._claims, enqueue_self, concerns=self._concerns),
                InformerSource(self._nodes, self._claims_of_node),
            ],
        )  # fmt: skip

    def _concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        if old is None or new is None:
            return True
        # One that was at rest is found to be so still, or again, without a look.
        known = self._at_rest.get(new["metadata"]["name"])
        if known is not None:
            return known != basis_of(new) and not self._has_come_to_rest(new)
        return not self._is_as_left(new) and not self._has_come_to_rest(new)

    def _is_as_left(self, claim: JsonObject) -> bool:
        """Whether the claim is the very one that the last look has written, with the same Nodes: another look would
        find nothing to do, and ask for the next one at the same time."""
        left = self._looked_at.get(claim["metadata"]["name"])
        return left is not None and left[0] is claim and are_same(left[1], self._nodes_of(claim))

    def _rests(self, claim: JsonObject) -> bool:
        """Whether another look at the claim would find nothing to do, whatever its Node is like."""
        known = self._at_rest.get(claim["metadata"]["name"])
        return known is not None and known == basis_of(claim)

    def _has_come_to_rest(self, claim: JsonObject) -> bool:
        """Whether the claim is up, and says so as it should: then none of the steps has anything to do."""
        metadata = claim["metadata"]
        if metadata.get("deletionTimestamp") or TERMINATION_FINALIZER not in (metadata.get("finalizers") or ()):
            return False
        if not CLAIM_CONDITIONS.are_observed(claim, LAUNCHED, REGISTERED, INITIALIZED):
            return False
        self._launcher.forget(metadata["uid"])
        self._looked_at.pop(metadata["name"], None)
        self._at_rest[metadata["name"]] = basis_of(claim)
        return True

    def _claims_of_node(self, node: JsonObject) -> list[str]:
        return [
            claim["metadata"]["name"]
            for provider_id in node_ids(node)
            for claim in self._claims.lister.by_index(BY_PROVIDER_ID, provider_id)
            if not self._rests(claim)
        ]

    async def reconcile(self, name: str) -> Result | None:
        """One look at one claim."""
        claim = self._claims.lister.by_key(name)
        if claim is None:
            self._at_rest.pop(name, None)
            self._looked_at.pop(name, None)
            return None
        if not is_managed(claim, self._provider) or self._rests(claim) or self._has_come_to_rest(claim):
            return None
        if claim["metadata"].get("deletionTimestamp"):
            self._launcher.forget(claim["metadata"]["uid"])
            return await self._finalizer.finalize(claim)
        guarded = await self._guard(claim)
        return await self._live(guarded) if guarded is not None else None

    async def _guard(self, claim: JsonObject) -> JsonObject | None:
        """Nothing is launched before the finalizer is there: it is what gives the instance back."""
        finalizers = claim["metadata"].get("finalizers") or []
        if TERMINATION_FINALIZER in finalizers:
            return claim
        made = {**claim, "metadata": {**claim["metadata"], "finalizers": [*finalizers, TERMINATION_FINALIZER]}}
        return await patch_object(self._client, NODE_CLAIMS, claim, made)

    async def _live(self, stored: JsonObject) -> Result | None:
        launch = await self._launcher.launch(stored, self._clock.time())
        if launch.ending in (Ending.NO_CAPACITY, Ending.CLASS_NOT_READY):
            await self._give_up(stored, launch)
            return None
        now_s = self._clock.time()
        nodes = self._nodes_of(launch.claim)
        claim = await self._register(launch.claim, nodes, now_s)
        claim = await self._initialize(claim, now_s)
        alive = liveness(claim, now_s)
        written = await self._write(stored, claim)
        if written is None:
            return None
        if alive.timed_out:
            await self._time_out(claim, alive)
        elif launch.error is not None:
            self._log.error("failed launching nodeclaim", claim=claim["metadata"]["name"], error=launch.error.message)
            return _AGAIN
        elif basis_of(written) == basis_of(claim):
            # Nobody else has had a say meanwhile.
            self._looked_at[claim["metadata"]["name"]] = written, nodes
        return Result(requeue_after_s=alive.look_again_s) if alive.look_again_s is not None else None

    async def _register(self, claim: JsonObject, nodes: list[JsonObject], now_s: float) -> JsonObject:
        step = register(claim, nodes, now_s)
        if step.lacks_taint:
            self._publisher.warning(
                claim, events.UNREGISTERED_TAINT_MISSING,
                f"Missing {UNREGISTERED_TAINT.key} taint which prevents registration related race conditions on"
                " Karpenter-managed nodes",
            )  # fmt: skip
        if step.node is not None:
            await patch_object(self._client, NODES, nodes[0], step.node)
        return step.claim

    async def _initialize(self, claim: JsonObject, now_s: float) -> JsonObject:
        nodes = self._nodes_of(claim)
        step = initialize(claim, nodes[0] if len(nodes) == 1 else None, now_s)
        if step.node is not None:
            await patch_object(self._client, NODES, nodes[0], step.node)
        return step.claim

    def _nodes_of(self, claim: JsonObject) -> list[JsonObject]:
        provider_id = (claim.get("status") or {}).get("providerID")
        return self._nodes.lister.by_index(BY_PROVIDER_ID, provider_id) if provider_id else []

    async def _write(self, stored: JsonObject, claim: JsonObject) -> JsonObject | None:
        """Writes the claim, and tells what is new about it. The claim as it is now; None when it is gone."""
        if claim is stored:
            return stored
        named = await patch_object(self._client, NODE_CLAIMS, stored, claim)
        if named is None:
            return None
        named = {**stored, "metadata": named["metadata"]}
        written = await patch_status(self._client, NODE_CLAIMS, named, claim)
        if written is None:
            return None
        view = NodeClaim.of(claim)
        if _turned(stored, claim, LAUNCHED):
            self._log.info(
                "launched nodeclaim", claim=view.name, provider_id=view.provider_id, instance_type=view.instance_type,
                zone=view.zone, capacity_type=view.capacity_type,
            )  # fmt: skip
        if _turned(stored, claim, REGISTERED):
            self._log.info("registered nodeclaim", claim=view.name, node=view.node_name)
            self._metrics.node_created(claim)
            await self._pool_health.tell(claim, success=True)
        if _turned(stored, claim, INITIALIZED):
            self._log.info("initialized nodeclaim", claim=view.name, node=view.node_name)
        return written

    async def _give_up(self, claim: JsonObject, launch: LaunchResult) -> None:
        """Nothing will come of it as things are: the pods are looked at anew, with what is known now."""
        assert launch.error is not None
        name, text = claim["metadata"]["name"], launch.error.message
        self._log.error("failed launching nodeclaim", claim=name, error=text)
        if launch.ending is Ending.NO_CAPACITY:
            reason, kind = INSUFFICIENT_CAPACITY, events.INSUFFICIENT_CAPACITY_ERROR
            self._tell_pods(name, text)
        else:
            reason, kind = NODE_CLASS_NOT_READY, events.NODE_CLASS_NOT_READY
        self._publisher.warning(claim, kind, f"NodeClaim {name} event: {text}")
        if await delete_object(self._client, NODE_CLAIMS, claim):
            self._metrics.claim_disrupted(claim, reason)

    def _tell_pods(self, claim_name: str, text: str) -> None:
        for key in self._pod_times.expected_on_claim(claim_name):
            pod = self._pods.lister.by_key(key)
            if pod is None or (pod.get("spec") or {}).get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            self._publisher.warning(
                pod, events.INSUFFICIENT_CAPACITY_ERROR,
                f"NodeClaim {claim_name} nominated for this pod failed to launch: {text}",
                budget=events.LAUNCH_FAILURES,
            )  # fmt: skip

    async def _time_out(self, claim: JsonObject, alive: Liveness) -> None:
        self._log.info("terminating due to timeout", claim=claim["metadata"]["name"], reason=alive.timed_out)
        await self._pool_health.tell(claim, success=False)
        if await delete_object(self._client, NODE_CLAIMS, claim):
            self._metrics.claim_disrupted(claim, alive.timed_out)


def is_managed(claim: JsonObject, provider: CloudProvider) -> bool:
    """Whether the claim is of a kind that our provider launches."""
    return provider.supports(NodeClassRef.from_json((claim.get("spec") or {}).get("nodeClassRef")))


def _turned(old: JsonObject, new: JsonObject, condition: str) -> bool:
    return not CLAIM_CONDITIONS.is_true(old, condition) and CLAIM_CONDITIONS.is_true(new, condition)
