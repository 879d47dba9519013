"""Begins the judgement on a pool's launches anew when the pool or its node class has changed."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.karpenter.api.labels import NODE_REGISTRATION_HEALTHY
from holokube.karpenter.api.node_claim import NodeClassRef
from holokube.karpenter.api.resources import KWOK_NODE_CLASSES, NODE_POOLS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.conditions import POOL_CONDITIONS
from holokube.karpenter.lifecycle.registration_health import Health, RegistrationHealth
from holokube.karpenter.lifecycle.sources import class_ref_of_pool, pools_of_class
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_status
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self

_HEALTH = {"True": Health.HEALTHY, "False": Health.UNHEALTHY, "Unknown": Health.UNKNOWN}


class PoolRegistrationHealth(ControllerComponent):
    """A component: looks whenever a pool or a node class changes."""

    name = "nodepool.registrationhealth"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        provider: CloudProvider,
        health: RegistrationHealth,
    ) -> None:
        self._clock = clock
        self._client = client
        self._provider = provider
        self._health = health
        self._pools = informers.get(NODE_POOLS)
        self._controller = Controller(
            clock, self.name, self.reconcile,
            sources=[
                InformerSource(self._pools, enqueue_self),
                InformerSource(informers.get(KWOK_NODE_CLASSES), pools_of_class(self._pools)),
            ],
        )  # fmt: skip

    async def reconcile(self, name: str) -> Result | None:
        """Resets one pool if it has to be; after a restart, its condition is what is known."""
        pool = self._pools.lister.get(name)
        ref = NodeClassRef.from_json(class_ref_of_pool(pool)) if pool is not None else None
        if pool is None or ref is None or not self._provider.supports(ref):
            return None
        node_class = self._provider.node_class(ref)
        if node_class is None:
            return None
        uid = pool["metadata"]["uid"]
        if self._health.of(uid) is Health.UNKNOWN:
            self._health.reset(uid, _HEALTH[POOL_CONDITIONS.status(pool, NODE_REGISTRATION_HEALTHY)])
        changed = pool
        if has_changed(pool, node_class):
            changed = POOL_CONDITIONS.with_unknown(pool, NODE_REGISTRATION_HEALTHY, self._clock.time())
            self._health.reset(uid, Health.UNKNOWN)
        generation = node_class["metadata"].get("generation") or 0
        status = {**(changed.get("status") or {}), "nodeClassObservedGeneration": generation}
        await patch_status(self._client, NODE_POOLS, pool, {**changed, "status": status})
        return None


def has_changed(pool: JsonObject, node_class: JsonObject) -> bool:
    """Whether pool or class are others than those the condition speaks of."""
    condition = POOL_CONDITIONS.get(pool, NODE_REGISTRATION_HEALTHY)
    class_generation = node_class["metadata"].get("generation") or 0
    return (
        condition is None
        or (pool.get("status") or {}).get("nodeClassObservedGeneration") != class_generation
        or condition.get("observedGeneration") != pool["metadata"].get("generation")
    )
