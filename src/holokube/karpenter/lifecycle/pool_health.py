"""Tells a pool how its launches go: the condition NodeRegistrationHealthy."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.karpenter.api.labels import LAUNCHED, NODE_REGISTRATION_HEALTHY, NODEPOOL_LABEL
from holokube.karpenter.api.resources import NODE_POOLS
from holokube.karpenter.conditions import CLAIM_CONDITIONS, POOL_CONDITIONS
from holokube.karpenter.lifecycle.registration_health import Health, RegistrationHealth
from holokube.karpenter.writes import patch_status
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet


class PoolHealthBook:
    """Keeps the ring of every pool, and its condition with it."""

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, health: RegistrationHealth) -> None:
        self._clock = clock
        self._client = client
        self._pools = informers.get(NODE_POOLS)
        self._health = health

    async def tell(self, claim: JsonObject, *, success: bool) -> None:
        """A launch for the claim's pool ended."""
        pool = self._pools.lister.get((claim["metadata"].get("labels") or {}).get(NODEPOOL_LABEL, ""))
        if pool is None or not _owns(pool, claim):
            return
        uid = pool["metadata"]["uid"]
        told = after_launch(pool, claim, self._health.after(uid, success=success), self._clock.time(), success=success)
        if told is not pool:
            await patch_status(self._client, NODE_POOLS, pool, told)
        self._health.add(uid, success=success)


def after_launch(
    pool: JsonObject, claim: JsonObject, health: Health, now_s: float, *, success: bool
) -> JsonObject:
    """The pool after a launch that leaves it in this health."""
    if success:
        if health is not Health.HEALTHY:
            return pool
        return POOL_CONDITIONS.with_true(pool, NODE_REGISTRATION_HEALTHY, now_s)
    if health is not Health.UNHEALTHY or POOL_CONDITIONS.status(pool, NODE_REGISTRATION_HEALTHY) == "False":
        return pool
    launch = CLAIM_CONDITIONS.get(claim, LAUNCHED)
    if launch is None or launch["status"] == "True":
        reason, message = "RegistrationFailed", "Failed to register node"
    else:
        reason, message = launch["reason"], launch.get("message", "")
    return POOL_CONDITIONS.with_false(pool, NODE_REGISTRATION_HEALTHY, now_s, reason, message)


def _owns(pool: JsonObject, claim: JsonObject) -> bool:
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(one.get("kind") == NODE_POOLS.kind and one.get("uid") == pool["metadata"]["uid"] for one in owners)
