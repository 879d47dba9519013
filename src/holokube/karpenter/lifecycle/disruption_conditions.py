"""Keeps the conditions that disruption goes by on claims: Drifted and Consolidatable."""

from __future__ import annotations

import math
from typing import Final

from holokube.base.clock import Clock
from holokube.client.audience import LABELS
from holokube.client.client import Client
from holokube.karpenter.api.labels import DRIFTED
from holokube.karpenter.api.node_claim import NodeClaim, seconds_of
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_CLAIMS, NODE_POOLS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.lifecycle.consolidatable import consolidatable
from holokube.karpenter.lifecycle.drift import (
    INSTANCE_TYPE_NOT_FOUND,
    LOOK_AGAIN_S,
    TYPE_CHECK_AGE_S,
    TYPE_CHECK_EVERY_S,
    Comparison,
)
from holokube.karpenter.lifecycle.sources import (
    BY_POOL,
    basis_of,
    claims_of_class,
    claims_of_pool,
    is_other_pool,
    pools_of_claim,
)
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import set_status
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

WORKERS: Final = 16


class Settled:
    """A claim whose conditions are as they should be, for as long as nothing but time passes."""

    __slots__ = (
        "_alike", "_alike_since_s", "_basis", "_last_pod_event", "claim", "is_drifted", "pool", "quiet_since_s",
        "type_check_s",
    )  # fmt: skip

    def __init__(self, claim: NodeClaim, pool: NodePool, quiet_since_s: float | None, type_check_s: float) -> None:
        """``quiet_since_s`` is when its pods last changed, if it is not consolidatable because of that; before
        ``type_check_s`` it is not looked up in the catalogue."""
        self.claim = claim
        self.pool = pool
        self.quiet_since_s = quiet_since_s
        self.type_check_s = type_check_s
        self.is_drifted = claim.condition(DRIFTED) is not None
        """Whether it says something of drift, as does any that it is settled with."""
        self._basis = basis_of(claim.object)
        self._last_pod_event = claim.status.get("lastPodEventTime")
        self._alike = claim.object
        """The last object that was found to be settled too: it is asked about again and again."""
        self._alike_since_s = quiet_since_s

    def wait_s(self, claim: NodeClaim, now_s: float) -> float | None:
        """When to look again, if another look would find the same; None if it might find something else."""
        return self.quiet_wait_s(claim.object, now_s) if now_s < self.type_check_s else None

    def quiet_wait_s(self, claim: JsonObject, now_s: float) -> float | None:
        """The same, of a claim whose type is offered."""
        left_s = self.quiet_left_s(claim, now_s)
        return min(LOOK_AGAIN_S, left_s) if left_s is not None else None

    def quiet_left_s(self, claim: JsonObject, now_s: float) -> float | None:
        """For how long looks would find the same, of such a claim, if nothing but time passes."""
        if claim is self._alike:
            quiet_since_s = self._alike_since_s
        else:
            quiet_since_s = self.quiet_since_s
            if basis_of(claim) != self._basis:
                return None
            last = (claim.get("status") or {}).get("lastPodEventTime")
            if last != self._last_pod_event:
                if quiet_since_s is None:
                    return None
                last_s = seconds_of(last)
                if last_s is None or last_s < quiet_since_s:
                    return None
                # Pods that change again and again only make the wait longer.
                quiet_since_s = last_s
            self._alike, self._alike_since_s = claim, quiet_since_s
        if quiet_since_s is None:
            return math.inf
        assert self.pool.consolidate_after_s is not None
        left_s = quiet_since_s + self.pool.consolidate_after_s - now_s
        return left_s if left_s > 0 else None

    def far_wait_s(self, left_s: float, now_s: float) -> float:
        """When to look again at a claim that would be found the same for so long, apart from the catalogue: at the
        end of that, or when the first of the regular looks comes to the catalogue. Those before would find nothing."""
        return min(left_s, LOOK_AGAIN_S * max(math.ceil((self.type_check_s - now_s) / LOOK_AGAIN_S), 1))


class DisruptionConditions(ControllerComponent):
    """A component: conditions that follow from the pool, the pods and the time."""

    name = "nodeclaim.disruption"

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, provider: CloudProvider) -> None:
        self._clock = clock
        self._client = client
        self._provider = provider
        self._claims = informers.indexed(NODE_CLAIMS, BY_POOL, pools_of_claim, heeds=LABELS)
        self._pools = informers.get(NODE_POOLS)
        self._type_seen_s: dict[str, float] = {}
        self._comparisons: dict[str, Comparison] = {}
        self._settled: dict[str, Settled] = {}
        self._pool_views: dict[str, NodePool] = {}
        self._pool_objects: dict[str, JsonObject] = {}
        """The latest objects for which these hold."""
        self._controller = Controller(
            clock, self.name, self.reconcile, workers=WORKERS, postpone=self._wait_s,
            sources=[
                InformerSource(self._claims, enqueue_self, concerns=self._concerns),
                InformerSource(self._pools, claims_of_pool(self._claims), predicates=[is_other_pool]),
                InformerSource(informers.get(KWOK_NODE_CLASSES), claims_of_class(self._claims)),
            ],
        )  # fmt: skip

    def _concerns(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """A claim that is settled is looked at when its time has come; that is in the queue, and not later than what
        another look would ask for."""
        settled = self._settled.get(new["metadata"]["name"]) if old is not None and new is not None else None
        if settled is None or new is None:
            return True
        now_s = self._clock.time()
        if now_s >= settled.type_check_s or settled.quiet_left_s(new, now_s) is None:
            return True
        return (self._provider.drifts and bool(self._provider.why_drifted(NodeClaim.of(new)))) or self._is_due()

    async def reconcile(self, name: str) -> Result | None:
        """Brings the conditions of one claim up to date."""
        stored = self._claims.lister.by_key(name)
        if stored is None:
            self._forget(name)
            return None
        wait_s = self._wait_s(name)
        if wait_s is not None:
            return Result(requeue_after_s=wait_s)
        claim = NodeClaim.of(stored)
        pool_object = self._pools.lister.by_key(claim.pool_name)
        if claim.is_deleting or not self._provider.supports(claim.node_class_ref) or pool_object is None:
            self._type_seen_s.pop(claim.uid, None)
            self._forget(name)
            return None
        try:
            pool, now_s = self._pool(pool_object), self._clock.time()
        except ValueError:
            # Validation tells it in the pool's condition; until that is mended nothing follows from the pool.
            return None
        changed = self._drift(claim, pool, now_s)
        is_launched = claim.is_launched
        waits_s = [LOOK_AGAIN_S] if is_launched else []
        quiet = None
        if not pool.is_static:
            step = consolidatable(changed, pool, now_s)
            changed = step.claim
            waits_s += [] if step.look_again_s is None else [step.look_again_s]
            quiet = step.quiet_since_s
        self._settled.pop(name, None)
        written: JsonObject | None = stored
        if changed is not stored:
            # Nothing else was changed.
            conditions = {"conditions": changed["status"]["conditions"]}
            written = await set_status(self._client, NODE_CLAIMS, stored, conditions)
        if is_launched and written is not None and (written is stored or _is_as_made(written, changed)):
            # A look at what was made would make the same of it.
            settled = self._settled[name] = Settled(NodeClaim.of(written), pool, quiet, self._type_check_s(claim))
            if not self._provider.drifts and now_s < settled.type_check_s:
                left_s = waits_s[-1] if quiet is not None else math.inf
                return Result(requeue_after_s=settled.far_wait_s(left_s, now_s))
        return Result(requeue_after_s=min(waits_s)) if waits_s else None

    def _wait_s(self, name: str) -> float | None:
        """When to look again at a claim of which another look now would find the same; None if it might not."""
        settled = self._settled.get(name)
        stored = self._claims.lister.by_key(name)
        if settled is None or stored is None:
            return None
        pool_object = self._pools.lister.by_key(settled.pool.name)
        if pool_object is None or not self._is_read(settled.pool, pool_object):
            return None
        now_s = self._clock.time()
        left_s = settled.quiet_left_s(stored, now_s)
        if left_s is None:
            return None
        if now_s >= settled.type_check_s:
            # It is the same claim, in all that its type and its age are read from.
            claim = settled.claim
            # What has drifted because its type was gone has not when that is back.
            if settled.is_drifted or not self._is_offered(claim, settled.pool, now_s):
                return None
            settled.type_check_s = self._type_check_s(claim)
        if self._provider.drifts:
            is_changing = settled.is_drifted or self._provider.why_drifted(NodeClaim.of(stored))
            return min(LOOK_AGAIN_S, left_s) if not is_changing else None
        return settled.far_wait_s(left_s, now_s)

    def _forget(self, name: str) -> None:
        self._settled.pop(name, None)
        self._comparisons.pop(name, None)

    def _pool(self, obj: JsonObject) -> NodePool:
        """The pool as it is; what was read of one with the same spec and annotations holds."""
        name = obj["metadata"]["name"]
        known = self._pool_views.get(name)
        if known is None or not self._is_read(known, obj):
            known = self._pool_views[name] = NodePool.of(obj)
            self._pool_objects[name] = obj
        return known

    def _is_read(self, known: NodePool, obj: JsonObject) -> bool:
        """Whether a pool asks for the same as when this was read of it, which is what is still gone by."""
        name = obj["metadata"]["name"]
        if self._pool_views.get(name) is not known:
            return False
        if self._pool_objects[name] is obj:
            return True
        if not _asks_the_same(known.object, obj):
            return False
        self._pool_objects[name] = obj
        return True

    def _type_check_s(self, claim: NodeClaim) -> float:
        """Before when the claim is not looked up in the catalogue."""
        seen_s = self._type_seen_s.get(claim.uid)
        old_enough_s = claim.created_s + TYPE_CHECK_AGE_S
        return old_enough_s if seen_s is None else max(old_enough_s, seen_s + TYPE_CHECK_EVERY_S)

    def _drift(self, claim: NodeClaim, pool: NodePool, now_s: float) -> JsonObject:
        reason = self._why_drifted(claim, pool, now_s)
        if not reason or not claim.is_launched:
            return CLAIM_CONDITIONS.without(claim.object, DRIFTED)
        return CLAIM_CONDITIONS.with_true(claim.object, DRIFTED, now_s, reason=reason, message=reason)

    def _why_drifted(self, claim: NodeClaim, pool: NodePool, now_s: float) -> str:
        reason = self._comparison(claim, pool).reason
        if reason:
            return reason
        if not self._is_offered(claim, pool, now_s):
            return INSTANCE_TYPE_NOT_FOUND
        return self._provider.why_drifted(claim)

    def _comparison(self, claim: NodeClaim, pool: NodePool) -> Comparison:
        found = self._comparisons.get(claim.name)
        if found is None or not found.holds(claim, pool):
            found = self._comparisons[claim.name] = Comparison(claim, pool)
        return found

    def _is_offered(self, claim: NodeClaim, pool: NodePool, now_s: float) -> bool:
        """Whether the catalogue has the claim's type still, or had it not long ago."""
        seen_s = self._type_seen_s.get(claim.uid)
        is_due = seen_s is None or now_s - seen_s >= TYPE_CHECK_EVERY_S
        if is_due and now_s - claim.created_s > TYPE_CHECK_AGE_S:
            types, well_known = self._provider.instance_types(pool), self._provider.well_known
            if not self._comparison(claim, pool).is_still_offered(types, well_known):
                return False
            self._type_seen_s[claim.uid] = now_s
        return True


def _is_as_made(written: JsonObject, made: JsonObject) -> bool:
    """Whether an object as the server has it now is, in all that conditions go by, as it was meant to be."""
    return basis_of(written) == basis_of(made) and (
        written["status"].get("lastPodEventTime") == made["status"].get("lastPodEventTime")
    )


def _asks_the_same(known: JsonObject, pool: JsonObject) -> bool:
    return known.get("spec") == pool.get("spec") and all(
        known["metadata"].get(field) == pool["metadata"].get(field) for field in ("uid", "annotations")
    )
