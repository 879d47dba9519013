"""A provider whose calls are counted: how long they take, and how they fail."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from holokube.base.clock import Clock
from holokube.karpenter.api.node_claim import NodeClaim, NodeClassRef
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provider.protocol import CloudProvider, Instance, ProviderError
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType

T = TypeVar("T")


class MeasuredProvider:
    """Passes everything on to another provider; ``controller`` is who asks."""

    def __init__(self, clock: Clock, inner: CloudProvider, metrics: KarpenterMetrics, controller: str) -> None:
        self._clock = clock
        self._inner = inner
        self._metrics = metrics
        self._controller = controller

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def well_known(self) -> frozenset[str]:
        return self._inner.well_known

    @property
    def drifts(self) -> bool:
        return self._inner.drifts

    def supports(self, ref: NodeClassRef) -> bool:
        return self._inner.supports(ref)

    def owns_node(self, node: JsonObject) -> bool:
        return self._inner.owns_node(node)

    def node_class(self, ref: NodeClassRef) -> JsonObject | None:
        return self._inner.node_class(ref)

    def instance_types(self, pool: NodePool) -> Sequence[InstanceType]:
        return self._inner.instance_types(pool)

    def why_drifted(self, claim: NodeClaim) -> str:
        return self._inner.why_drifted(claim)

    async def create(self, claim: NodeClaim) -> Instance:
        return await self._measure("Create", self._inner.create(claim))

    async def delete(self, claim: NodeClaim) -> None:
        await self._measure("Delete", self._inner.delete(claim))

    async def get(self, provider_id: str) -> Instance:
        return await self._measure("Get", self._inner.get(provider_id))

    async def instances(self) -> list[Instance]:
        return await self._measure("List", self._inner.instances())

    async def _measure(self, method: str, call: Awaitable[T]) -> T:
        started_s = self._clock.monotonic()
        try:
            return await call
        except ProviderError as error:
            self._metrics.provider_failed(self._controller, method, self.name, type(error).__name__)
            raise
        finally:
            took_s = self._clock.monotonic() - started_s
            self._metrics.provider_answered(self._controller, method, self.name, took_s)
