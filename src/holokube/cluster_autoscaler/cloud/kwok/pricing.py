"""What machines of kwok groups cost, by the annotation ``price-per-hour`` of their templates.

A pod costs what its requests would cost on the cheapest offer: each group's price is divided over its CPUs and memory
in the proportion in which clouds charge for them, and the lowest rate counts. Accelerators cost what a group with
them charges above that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.kwok.accelerators import GPU_RESOURCES
from holokube.cluster_autoscaler.cloud.kwok.group import KwokNodeGroup
from holokube.cluster_autoscaler.cloud.kwok.marks import GROUP_NAME, PREFIX, annotations_of
from holokube.cluster_autoscaler.cloud.kwok.settings import PRICE
from holokube.kube.resources import parse_resources, pod_requests
from holokube.kube.types import JsonObject

GIB_PER_CORE = 7.5
"""As much memory costs as much as one core, roughly, on the large clouds' general purpose machines."""
_MILLI = 1000
_GIB = 1 << 30
_HOUR_S = 3600.0


class KwokPricing:
    """Prices from annotations."""

    def __init__(self, groups: Sequence[KwokNodeGroup]) -> None:
        self._price = {group.id: group.settings.price_usd_per_hour for group in groups}
        priced = [
            (price, parse_resources(group.template["status"]["capacity"]))
            for group in groups
            if (price := group.settings.price_usd_per_hour) is not None
        ]
        if not priced:
            raise NotImplementedByProvider(f"prices: no template has the annotation {PREFIX}{PRICE}")
        self._rate = min((price / weight for price, has in priced if (weight := _weight(has))), default=0.0)
        self._gpu_rate = min(
            (max(0.0, price - self._rate * _weight(has)) / gpus for price, has in priced if (gpus := _gpus(has))),
            default=0.0,
        )

    async def node_price(self, node: JsonObject, start_s: float, end_s: float) -> float:
        group = annotations_of(node).get(GROUP_NAME, "")
        price = self._price.get(group)
        if price is None:
            name = node["metadata"]["name"]
            why = f"the template of its group {group} has no annotation {PREFIX}{PRICE}"
            raise CloudError(f"node {name} has no price: {why if group in self._price else 'it is of no kwok group'}")
        return price * (end_s - start_s) / _HOUR_S

    async def pod_price(self, pod: JsonObject, start_s: float, end_s: float) -> float:
        asks = pod_requests(pod)
        per_hour = self._rate * _weight(asks) + self._gpu_rate * _gpus(asks)
        return per_hour * (end_s - start_s) / _HOUR_S


def _weight(amounts: Mapping[str, int]) -> float:
    """CPUs and memory together, in cores."""
    return amounts.get("cpu", 0) / _MILLI + amounts.get("memory", 0) / _MILLI / _GIB / GIB_PER_CORE


def _gpus(amounts: Mapping[str, int]) -> float:
    return sum(amounts.get(name, 0) for name in GPU_RESOURCES) / _MILLI
