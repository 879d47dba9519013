"""price: the option that buys the most for its money, with a preference for nodes that suit the cluster's size.

The price of the nodes is put in relation to what the placed pods would cost on nodes that fit them exactly. Small
clusters prefer small nodes, so that the loss of one hurts little; the preference fades as an option has more nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.cloud.provider import PricingModel
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.objects import has_gpu
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.kube.resources import CPU, parse_resources
from holokube.kube.types import JsonObject

_HOUR_S: Final = 3600.0
_MISSING_GROUP_FACTOR: Final = 2.0
# Nodes with accelerators are for pods that ask for them: whatever else is on offer must look better.
_GPU_UNFITNESS: Final = 1000.0

# The preferred node doubles each time the cluster triples.
_PREFERRED_CPU_MILLI: Final = ((2, 1_000), (6, 2_000), (20, 4_000), (60, 8_000), (200, 16_000))
_PREFERRED_CPU_MILLI_BEYOND: Final = 32_000

# Keeps the ratio from running away where pods ask for next to nothing.
_STABILISING_POD: Final[JsonObject] = {
    "metadata": {"namespace": "default", "name": "stabilize"},
    "spec": {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": str(500 * 1024 * 1024)}}}]},
}


class Prices(NamedTuple):
    """What one option costs in an hour."""

    node: float
    pods: float


class PriceExpander:
    """See the module."""

    name = "price"

    async def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
        """Those with the lowest score. They lose their similar groups on the way, as upstream's do."""
        if ctx.pricing is None:
            # A provider without prices cannot be started with this expander, so this is a provider that lost them.
            return []
        start_s, end_s = ctx.now_s, ctx.now_s + _HOUR_S
        try:
            stabiliser = await ctx.pricing.pod_price(_STABILISING_POD, start_s, end_s)
        except CloudError:
            stabiliser = 0.0
        prices = {}
        for option in options:
            found = await _prices_of(option, ctx.pricing, start_s, end_s)
            if found is not None:
                prices[option.group_id] = found
        return cheapest(options, prices, stabiliser, ctx)


async def _prices_of(option: Option, pricing: PricingModel, start_s: float, end_s: float) -> Prices | None:
    """None if the provider cannot tell: the option is then out of the race."""
    try:
        node_price = await pricing.node_price(option.node.node, start_s, end_s)
        pods_price = 0.0
        for exemplar, pods in option.batches:
            price = await pricing.pod_price(exemplar, start_s, end_s)
            # One by one, for the last digits decide ties, and a product has others than the sum.
            for _ in range(pods):
                pods_price += price
    except CloudError:
        return None
    return Prices(node_price, pods_price)


def cheapest(
    options: Sequence[Option], prices: Mapping[str, Prices], stabiliser: float, ctx: ExpanderContext
) -> list[Option]:
    """The options with the lowest score; only exactly equal numbers are equally good."""
    preferred_milli = preferred_cpu_milli(ctx.cluster_size)
    best: list[Option] = []
    lowest = 0.0
    for option in options:
        if option.group_id not in prices:
            continue
        score, text = _score(option, prices[option.group_id], stabiliser, preferred_milli, ctx.gpu_label)
        ctx.score(option, score, text)
        scored = replace(option, similar=(), debug=f"{option.debug} | price-expander: {text}")
        if not best or score == lowest:
            best.append(scored)
            lowest = score
        elif score < lowest:
            best, lowest = [scored], score
    return best


def _score(
    option: Option, prices: Prices, stabiliser: float, preferred_milli: int, gpu_label: str
) -> tuple[float, str]:
    nodes_price = prices.node * option.node_count
    ratio = _divide(nodes_price + stabiliser, prices.pods + stabiliser)
    unfitness = unfitness_of(option.node.node, preferred_milli)
    suppressed = (unfitness - 1.0) * (1.0 - math.tanh((option.node_count - 1) / 15.0)) + 1.0
    if has_gpu(option.node.node, gpu_label):
        suppressed = _GPU_UNFITNESS
    score = suppressed * ratio
    if not option.exists:
        score *= _MISSING_GROUP_FACTOR
    return score, (
        f"all_nodes_price={nodes_price:f} pods_price={prices.pods:f} stabilized_ratio={ratio:f} "
        f"unfitness={unfitness:f} suppressed={suppressed:f} final_score={score:f}"
    )


def preferred_cpu_milli(cluster_size: int) -> int:
    """How large a node of a cluster of so many nodes should be."""
    for largest, cpu_milli in _PREFERRED_CPU_MILLI:
        if cluster_size <= largest:
            return cpu_milli
    return _PREFERRED_CPU_MILLI_BEYOND


def unfitness_of(node: JsonObject, preferred_milli: int) -> float:
    """How many times a node is larger or smaller than preferred."""
    cpu_milli = parse_resources((node.get("status") or {}).get("capacity")).get(CPU, 0)
    return max(_divide(preferred_milli, cpu_milli), _divide(cpu_milli, preferred_milli))


def _divide(a: float, b: float) -> float:
    # What costs nothing, or has no cpu, gets what IEEE division gives, as upstream has it.
    if b == 0:
        return math.nan if a == 0 else math.copysign(math.inf, a)
    return a / b
