"""Whether a pool makes sense: its condition ValidationSucceeded."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.karpenter.api.labels import VALIDATION_SUCCEEDED
from holokube.karpenter.api.node_claim import NodeClassRef
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.api.resources import NODE_POOLS
from holokube.karpenter.api.validation import problems, unknown_values
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.conditions import POOL_CONDITIONS
from holokube.karpenter.lifecycle.sources import class_ref_of_pool
from holokube.karpenter.provider.protocol import CloudProvider
from holokube.karpenter.writes import patch_status
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self


class PoolValidation(ControllerComponent):
    """A component: looks whenever a pool changes."""

    name = "nodepool.validation"

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, provider: CloudProvider) -> None:
        self._clock = clock
        self._client = client
        self._provider = provider
        self._pools = informers.get(NODE_POOLS)
        self._log = get_logger("holokube.karpenter.validation")
        self._controller = Controller(
            clock, self.name, self.reconcile, sources=[InformerSource(self._pools, enqueue_self)]
        )

    async def reconcile(self, name: str) -> Result | None:
        """Validates one pool."""
        pool = self._pools.lister.get(name)
        if pool is None or not self._provider.supports(NodeClassRef.from_json(class_ref_of_pool(pool))):
            return None
        changed = validated(pool, self._provider.well_known, self._clock.time())
        if changed is not pool:
            for key, values in unknown_values(pool).items():
                self._log.error("unknown values of a pool's requirement are ignored", pool=name, key=key, values=values)
        await patch_status(self._client, NODE_POOLS, pool, changed)
        return None


def validated(pool: JsonObject, well_known: frozenset[str], now_s: float) -> JsonObject:
    """The pool with the condition as it should be."""
    found = problems(pool, well_known)
    if not found:
        try:
            NodePool.of(pool)
        except ValueError as error:
            found = [str(error)]
    if found:
        return POOL_CONDITIONS.with_false(
            pool, VALIDATION_SUCCEEDED, now_s, "NodePoolValidationFailed", "; ".join(found)
        )
    return POOL_CONDITIONS.with_true(pool, VALIDATION_SUCCEEDED, now_s)
